//! A journal of a million rows: the size of a row on disk, the time of a search, and its effect on admission.
//!
//! `cargo run --release -p tollgate-store --example journal -- [ROWS] [FOLDER]`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints and may stop"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation, UnixMs};
use store::{
    Admit, Close, Digest, End, IfLost, JournalQuery, JournalRow, KeyId, KeyLimits, KeyRow,
    MeterText, NewKey, NewWallet, Settings, Store, Timings, WalletId,
};

const DAY_MS: i64 = 86_400_000;
/// The rows span this many days, and belong to this many wallets with two keys each.
const DAYS: i64 = 30;
const WALLETS: usize = 100;
const ADMISSIONS: u32 = 5_000;
const SEARCHES: u32 = 20;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows: usize = arguments
        .next()
        .map_or(1_000_000, |rows| rows.parse().unwrap());
    let folder = arguments
        .next()
        .unwrap_or_else(|| "target/journal-measured".to_owned());
    std::fs::create_dir_all(&folder).unwrap();
    let path = Path::new(&folder).join("tollgate.db");
    let (store, _) = Store::open(&Settings {
        journal_retention_days: 0,
        disk_floor_bytes: 0,
        ..Settings::at(&path)
    })
    .unwrap();
    let key = funded(&store).await;

    println!(
        "admission with an empty journal: {:?} each",
        admissions(&store, &key).await
    );
    let wallets: Vec<_> = (0..WALLETS)
        .map(|_| (WalletId::random(), [KeyId::random(), KeyId::random()]))
        .collect();
    let before = size(&path);
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
    let grown = size(&path) - before;
    println!(
        "{rows} rows in {took:?}; {} bytes a row",
        grown / rows as u64
    );
    println!(
        "admission with {rows} rows:       {:?} each",
        admissions(&store, &key).await
    );

    let (wallet, keys) = wallets[7];
    let day = UnixMs::new(now.get() - 10 * DAY_MS);
    let by_wallet_and_day = JournalQuery {
        wallet: Some(wallet),
        since: Some(day),
        until: Some(UnixMs::new(day.get() + DAY_MS)),
        ..JournalQuery::default()
    };
    for (what, query) in [
        ("wallet and day", by_wallet_and_day.clone()),
        (
            "wallet and day, failures only",
            JournalQuery {
                status: Some(store::StatusRange::class(5)),
                ..by_wallet_and_day.clone()
            },
        ),
        (
            "key and day",
            JournalQuery {
                wallet: None,
                key: Some(keys[0]),
                ..by_wallet_and_day
            },
        ),
        ("the newest", JournalQuery::default()),
        (
            "one request, an old one",
            JournalQuery {
                request_id: Some("req_00000000000000000000000100".to_owned()),
                ..JournalQuery::default()
            },
        ),
    ] {
        let mut slowest = Duration::ZERO;
        let mut found = 0;
        for _ in 0..SEARCHES {
            let began = Instant::now();
            found = store.journal(query.clone()).await.unwrap().len();
            slowest = slowest.max(began.elapsed());
        }
        println!("search by {what}: {found} rows, slowest of {SEARCHES}: {slowest:?}");
    }
}

fn row(n: usize, rows: usize, now: UnixMs, wallets: &[(WalletId, [KeyId; 2])]) -> JournalRow {
    let (wallet, keys) = wallets[n * 31 % wallets.len()];
    let age =
        DAYS * DAY_MS - i64::try_from(n).unwrap() * (DAYS * DAY_MS / i64::try_from(rows).unwrap());
    let failed = n.is_multiple_of(50);
    JournalRow {
        at: UnixMs::new(now.get() - age),
        request_id: format!("req_{n:026}").as_str().into(),
        wallet: Some(wallet),
        key: Some(keys[n % 2]),
        endpoint: "/v1/chat/completions".into(),
        model: ["openai/gpt-6-luna", "anthropic/opus", "google/pro"][n % 3].into(),
        channel: Some("main".into()),
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
            first_byte_us: Some(421_000),
            total_us: 2_345_678,
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
