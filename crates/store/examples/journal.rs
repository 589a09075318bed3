//! A journal of a million rows of a thousand wallets with ten keys each: how fast it is written, the size of a row on
//! disk, the time of searches and reports, and their effect on admission.
//!
//! `cargo run --release -p tollgate-store --example journal -- [ROWS] [FOLDER or postgres:// address]`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints and may stop"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation, UnixMs};
use store::{
    Admit, Close, Digest, Dimension, End, IfLost, JournalPage, JournalQuery, JournalRow, KeyId,
    KeyLimits, KeyRow, MeterText, NewKey, NewWallet, Server, Settings, StatusRange, Store, Timings,
    UsageQuery, UsageStep, WalletId,
};

const DAY_MS: i64 = 86_400_000;
/// The rows span this many days, and belong to this many wallets with so many keys each.
const DAYS: i64 = 30;
const WALLETS: usize = 1_000;
const KEYS: usize = 10;
const ADMISSIONS: u32 = 5_000;
const SEARCHES: u32 = 20;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows: usize = arguments
        .next()
        .map_or(1_000_000, |rows| rows.parse().unwrap());
    let place = arguments
        .next()
        .unwrap_or_else(|| "target/journal-measured".to_owned());
    let (settings, path) = if place.starts_with("postgres") {
        (Settings::on(Server::at(place)), None)
    } else {
        std::fs::create_dir_all(&place).unwrap();
        let path = Path::new(&place).join("tollgate.db");
        (Settings::at(&path), Some(path))
    };
    let (store, _) = Store::open(&Settings {
        journal_retention_days: 0,
        disk_floor_bytes: 0,
        ..settings
    })
    .unwrap();
    let key = funded(&store).await;
    println!(
        "admission with an empty journal: {:?} each",
        admissions(&store, &key).await
    );
    let wallets: Vec<_> = (0..WALLETS)
        .map(|_| (WalletId::random(), std::array::from_fn(|_| KeyId::random())))
        .collect();
    let before = path.as_deref().map(size);
    let began = Instant::now();
    let now = now();
    for n in 0..rows {
        store.journal_append(row(n, rows, now, &wallets));
        if n % 8_192 == 8_191 {
            store.flush().await.unwrap();
        }
    }
    store.flush().await.unwrap();
    let took = began.elapsed();
    println!(
        "{rows} rows in {took:?}; {} rows a second",
        rows as u128 * 1_000 / took.as_millis().max(1)
    );
    if let Some((path, before)) = path.as_deref().zip(before) {
        println!("{} bytes a row", (size(path) - before) / rows as u64);
    }
    println!(
        "admission with {rows} rows:       {:?} each",
        admissions(&store, &key).await
    );
    searches(&store, now, wallets[7]).await;
    reports(&store, now, wallets[7].0).await;
    let searching = async {
        for _ in 0..SEARCHES {
            let query = JournalQuery {
                code: Some("no_such_code".to_owned()),
                ..JournalQuery::default()
            };
            store.journal_page(query).await.unwrap();
        }
    };
    let (beside, ()) = tokio::join!(admissions(&store, &key), searching);
    println!("admission beside searches:       {beside:?} each");
}

async fn searches(store: &Store, now: UnixMs, (wallet, keys): (WalletId, [KeyId; KEYS])) {
    let day = UnixMs::new(now.get() - 10 * DAY_MS);
    let any = JournalQuery {
        limit: 51,
        without_bodies: true,
        ..JournalQuery::default()
    };
    let by_wallet_and_day = JournalQuery {
        wallet: Some(wallet),
        since: Some(day),
        until: Some(UnixMs::new(day.get() + DAY_MS)),
        ..any.clone()
    };
    let with = |set: &dyn Fn(&mut JournalQuery)| {
        let mut query = any.clone();
        set(&mut query);
        query
    };
    let text = |text: &str| Some(text.to_owned());
    for (what, query) in [
        ("nothing", any.clone()),
        ("wallet and day", by_wallet_and_day),
        ("wallet", with(&|q| q.wallet = Some(wallet))),
        ("key", with(&|q| q.key = Some(keys[0]))),
        (
            "key and a status that it never had",
            with(&|q| {
                q.key = Some(keys[0]);
                q.status = Some(StatusRange::only(418));
            }),
        ),
        ("model", with(&|q| q.model = text("anthropic/opus"))),
        (
            "a model that is rare",
            with(&|q| q.model = text("rare/model")),
        ),
        (
            "a model that was never called",
            with(&|q| q.model = text("no/model")),
        ),
        ("channel", with(&|q| q.channel = text("main"))),
        (
            "model and a channel that it never had",
            with(&|q| {
                q.model = text("anthropic/opus");
                q.channel = text("rare");
            }),
        ),
        (
            "endpoint",
            with(&|q| q.endpoint = text("/v1/chat/completions")),
        ),
        (
            "failures",
            with(&|q| q.status = Some(StatusRange::class(5))),
        ),
        (
            "a status that never was",
            with(&|q| q.status = Some(StatusRange::only(418))),
        ),
        (
            "a code that never was",
            with(&|q| q.code = text("no_such_code")),
        ),
        (
            "one request, an old one",
            with(&|q| q.request_id = text("req_00000000000000000000000100")),
        ),
        (
            "a request that never was",
            with(&|q| q.request_id = text("req_none")),
        ),
        (
            "the beginning of a request id",
            with(&|q| q.request_prefix = text("req_000000000000000000000001")),
        ),
    ] {
        let mut slowest = Duration::ZERO;
        let mut page = JournalPage::default();
        for _ in 0..SEARCHES {
            let began = Instant::now();
            page = store.journal_page(query.clone()).await.unwrap();
            slowest = slowest.max(began.elapsed());
        }
        let goes_on = if page.next.is_some() { ", goes on" } else { "" };
        println!(
            "search by {what}: {} rows{goes_on}, slowest of {SEARCHES}: {slowest:?}",
            page.entries.len()
        );
    }
}

async fn reports(store: &Store, now: UnixMs, wallet: WalletId) {
    use Dimension::{Channel, Endpoint, Key, Model, Wallet};
    let days = |days: i64| UnixMs::new(now.get() - days * DAY_MS + 1_234_567);
    let whole = UsageQuery::between(days(30), now, now);
    let with = |by: &[Dimension], step| UsageQuery {
        by: by.to_vec(),
        step,
        ..whole.clone()
    };
    let hour = UsageQuery {
        from: UnixMs::new(now.get() - DAY_MS / 24),
        step: Some(UsageStep::Minute),
        ..whole.clone()
    };
    for (what, query) in [
        ("30 days", whole.clone()),
        ("30 days by hour", with(&[], Some(UsageStep::Hour))),
        (
            "30 days by day and model",
            with(&[Model], Some(UsageStep::Day)),
        ),
        (
            "30 days by model, channel, endpoint",
            with(&[Model, Channel, Endpoint], None),
        ),
        ("30 days by wallet", with(&[Wallet], None)),
        (
            "30 days by day and wallet",
            with(&[Wallet], Some(UsageStep::Day)),
        ),
        ("30 days by key", with(&[Key], None)),
        ("30 days by wallet and model", with(&[Wallet, Model], None)),
        (
            "30 days of a wallet by model",
            UsageQuery {
                wallet: Some(wallet),
                ..with(&[Model], None)
            },
        ),
        ("an hour by minute", hour.clone()),
        (
            "an hour by minute and key",
            UsageQuery {
                by: vec![Key],
                ..hour
            },
        ),
    ] {
        let mut slowest = Duration::ZERO;
        let mut found = 0;
        for _ in 0..SEARCHES {
            let began = Instant::now();
            found = store.usage(query.clone()).await.unwrap().len();
            slowest = slowest.max(began.elapsed());
        }
        println!("report of {what}: {found} rows, slowest of {SEARCHES}: {slowest:?}");
    }
}

fn row(n: usize, rows: usize, now: UnixMs, wallets: &[(WalletId, [KeyId; KEYS])]) -> JournalRow {
    // Steps that have no common factor with the numbers of wallets and keys.
    let (wallet, keys) = wallets[n * 7_919 % wallets.len()];
    let span_ms = DAYS * DAY_MS;
    let age = span_ms - i64::try_from(n).unwrap() * span_ms / i64::try_from(rows).unwrap();
    let failed = n.is_multiple_of(50);
    let is_rare = n.is_multiple_of(100_003);
    let model = ["openai/gpt-6-luna", "anthropic/opus", "google/pro"][n % 3];
    JournalRow {
        at: UnixMs::new(now.get() - age),
        request_id: format!("req_{n:026}").as_str().into(),
        wallet: Some(wallet),
        key: Some(keys[n * 31 / WALLETS % KEYS]),
        endpoint: ["/v1/chat/completions", "/v1/messages"][n % 2].into(),
        model: if is_rare { "rare/model" } else { model }.into(),
        channel: Some(if is_rare { "rare" } else { "main" }.into()),
        upstream_model: Some("gpt-6-luna-2026".into()),
        status: if failed { 502 } else { 200 },
        code: failed.then(|| "upstream_error".into()),
        stream: n.is_multiple_of(2),
        outcome: Some(if failed { "released" } else { "settled" }.into()),
        meter: (!failed).then(|| {
            MeterText::from(&Meter {
                input: 800 + n as u64 % 4_000,
                cached_input: 256,
                output: 120 + n as u64 % 900,
                ..Meter::default()
            })
        }),
        charge: Micro::new(4_711),
        timings: Timings {
            admitted_us: Some(210),
            queued_us: Some(90),
            upstream_us: Some(420_000),
            first_byte_us: Some(421_000 + n as u64 * 7 % 900_000),
            total_us: 2_345_678 + n as u64 * 13 % 9_000_000,
        },
        ..JournalRow::default()
    }
}

/// The mean time from a request to the ledger's decision, one after the other.
async fn admissions(store: &Store, key: &KeyRow) -> Duration {
    let began = Instant::now();
    for _ in 0..ADMISSIONS {
        let admitted = store
            .admit(Admit {
                wallet: key.wallet,
                key: key.id,
                ask: Reservation {
                    hold: Micro::new(10),
                    exposure: Micro::ZERO,
                    tokens: 1,
                    counts: true,
                },
                request_id: "req_measured".into(),
                now: now(),
            })
            .await
            .unwrap();
        store.close(Close {
            if_lost: IfLost::Charge,
            hold: admitted.hold,
            end: End::Released,
            now: now(),
        });
    }
    began.elapsed() / ADMISSIONS
}

async fn funded(store: &Store) -> KeyRow {
    let wallet = store
        .create_wallet(
            NewWallet {
                name: format!("measured {}", WalletId::random()),
                balance: Micro::new(1_000_000_000),
                gift: Micro::ZERO,
                credit_limit: Micro::ZERO,
            },
            &store::Actor::cli("test"),
        )
        .await
        .unwrap();
    let secret = KeyId::random().to_string();
    store
        .create_key(
            NewKey {
                wallet: wallet.id,
                name: None,
                digest: Digest::of(secret.as_bytes()),
                shown_prefix: secret[..8].to_owned(),
                limits: KeyLimits::default(),
                tags: Vec::new(),
            },
            &store::Actor::cli("test"),
        )
        .await
        .unwrap()
}

/// All files of the journal.
fn size(path: &Path) -> u64 {
    let folder = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let files = folder
        .map(Result::unwrap)
        .filter(|file| file.file_name().to_string_lossy().contains("-calls"));
    files.map(|file| file.metadata().unwrap().len()).sum()
}

fn now() -> UnixMs {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap())
}
