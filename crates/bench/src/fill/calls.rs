//! Writes journal rows, spread over the days before now.

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ledger::{DAY_MS, Meter, Micro, UnixMs};
use store::{JournalRow, MeterText, Store, Timings};

use super::accounts::Accounts;
use super::command::Size;
use super::random::Random;

/// The number of rows that are queued before we wait for the writer. With `PostgreSQL`, a quarter of the queue is for
/// calls without a hold, such as these.
const QUEUED: usize = 4_096;
pub(crate) const MODELS: [&str; 8] = [
    "openai/gpt-large",
    "openai/gpt-small",
    "anthropic/opus",
    "anthropic/sonnet",
    "google/pro",
    "google/flash",
    "maker/embedding",
    "maker/rare",
];
const CHANNELS: [&str; 4] = ["primary", "secondary", "europe", "spare"];
const ENDPOINTS: [&str; 4] = [
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/v1/embeddings",
];

/// Appends the rows, oldest first, and returns how long that took.
pub(super) async fn append(store: &Store, accounts: &Accounts, size: Size) -> io::Result<Duration> {
    let mut random = Random::new(7);
    let began = Instant::now();
    let now = now();
    for number in 0..size.rows {
        store.journal_append(row(number, now, accounts, size, &mut random));
        if number % QUEUED == QUEUED - 1 {
            store.flush().await.map_err(io::Error::other)?;
        }
    }
    store.flush().await.map_err(io::Error::other)?;
    let dropped = store.stats().journal_dropped;
    if dropped > 0 {
        return Err(io::Error::other(format!("{dropped} rows were dropped")));
    }
    Ok(began.elapsed())
}

pub(crate) fn request_id(number: usize) -> String {
    format!(
        "req_{:08x}{number:018}",
        number.wrapping_mul(0x9e37_79b1) & 0xffff_ffff
    )
}

fn row(
    number: usize,
    now: UnixMs,
    accounts: &Accounts,
    size: Size,
    random: &mut Random,
) -> JournalRow {
    let span_ms = i64::from(size.days) * DAY_MS;
    let place = i64::try_from(number).unwrap_or(0);
    let age_ms = span_ms - span_ms * place / i64::try_from(size.rows.max(1)).unwrap_or(1);
    let key_number = random.skewed(accounts.keys.len());
    let key = accounts.keys.get(key_number);
    // A key mostly calls two models through one endpoint. Each model has two channels.
    let model_number = match random.below(20) {
        0 => random.below(MODELS.len()),
        choice => (key_number + choice % 2) % (MODELS.len() - 1),
    };
    let is_rare = random.below(100_000) == 0;
    let model = if is_rare {
        "maker/rare"
    } else {
        MODELS[model_number]
    };
    let channel = CHANNELS[(model_number + random.below(10) / 9) % CHANNELS.len()];
    let endpoint = ENDPOINTS[key_number % ENDPOINTS.len()];
    let (status, code) = match random.below(100) {
        0 => (502, Some("upstream_error")),
        1 => (429, Some("rate_limit_exceeded")),
        _ => (200, None),
    };
    let meter = Meter {
        input: 200 + random.below(4_000) as u64,
        cached_input: 64,
        output: 20 + random.below(900) as u64,
        ..Meter::default()
    };
    let first_byte_us = 200_000 + random.below(900_000) as u64;
    JournalRow {
        at: now.minus_ms(age_ms),
        request_id: request_id(number).as_str().into(),
        wallet: key.map(|key| key.wallet),
        key: key.map(|key| key.id),
        endpoint: endpoint.into(),
        model: model.into(),
        channel: (status != 429).then(|| channel.into()),
        upstream_model: Some("upstream-model".into()),
        status,
        code: code.map(Into::into),
        stream: number.is_multiple_of(2),
        outcome: Some(
            if code.is_none() {
                "settled"
            } else {
                "released"
            }
            .into(),
        ),
        meter: code.is_none().then(|| MeterText::from(&meter)),
        charge: Micro::new(if code.is_none() { 4_711 } else { 0 }),
        timings: Timings {
            admitted_us: Some(210),
            queued_us: Some(90),
            upstream_us: Some(first_byte_us - 1_000),
            first_byte_us: code.is_none().then_some(first_byte_us),
            total_us: first_byte_us + random.below(9_000_000) as u64,
        },
        ..JournalRow::default()
    }
}

pub(super) fn now() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    UnixMs::new(i64::try_from(ms).unwrap_or(i64::MAX))
}
