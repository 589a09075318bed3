//! Measures the cost of a call in the store: CPU time per admitted and settled call, including its journal row.
//!
//! `cargo run --release -p tollgate-store --example throughput [folder [keys [line]]]`
//!
//! A `postgres://` URL in place of the folder measures that server, which should have an empty database:
//! `scripts/with-postgres sh -c 'cargo run --release -p tollgate-store --example throughput "$TOLLGATE_TEST_POSTGRES"'`
//!
//! Each line of the output is one load: callers that repeatedly admit a call, possibly wait for the disk or an
//! upstream, settle, and write the journal row. The CPU time is that of the whole process, including the callers, from
//! `/proc`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a measuring program for people"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation, UnixMs};
use store::{
    Admit, AdmitError, Basis, Close, Digest, End, IfLost, JournalRow, KeyId, KeyLimits, KeyRow,
    MeterText, NewKey, NewWallet, PriceVersion, Server, Settings, Store, Timings,
};

// The same allocator as in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of calls that were refused as busy.
static BUSY: AtomicU64 = AtomicU64::new(0);

/// How long each load runs.
const RUN: Duration = Duration::from_secs(4);
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Clone, Copy)]
struct Load {
    callers: usize,
    keys: usize,
    /// Whether the answer waits for the disk, which is the default.
    before_answer: bool,
    upstream: Duration,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let place = std::env::args().nth(1);
    let place = place.unwrap_or_else(|| "target/throughput".to_owned());
    let folder = PathBuf::from(&place);
    let settings = if place.starts_with("postgres") {
        Settings::on(Server::at(&place))
    } else {
        drop(std::fs::remove_dir_all(&folder));
        Settings::at(folder.join("bench.db"))
    };
    let (store, _) = Store::open(&settings).unwrap();
    let price = store
        .price_version("bench/model", r#"{"input":"1","output":"1"}"#)
        .await
        .unwrap();
    let many = std::env::args()
        .nth(2)
        .map_or(10_000, |count| count.parse().unwrap());
    let begun = Instant::now();
    let keys: Arc<[KeyRow]> = accounts(&store, many).await.into();
    println!(
        "{many} wallets and keys in {:.1} s, resident {} KiB",
        begun.elapsed().as_secs_f64(),
        resident_kib()
    );
    println!(
        "{:>7} {:>7} {:>14} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6}",
        "callers",
        "keys",
        "answer",
        "upstream",
        "calls/s",
        "CPU us",
        "batch",
        "p50 us",
        "p99 us",
        "wal MiB",
        "RSS MiB",
        "busy"
    );
    let line: Option<usize> = std::env::args().nth(3).map(|line| line.parse().unwrap());
    let instant = Duration::ZERO;
    let slow = Duration::from_millis(50);
    let loads = [
        (1, 1, false, instant),
        (16, 1, false, instant),
        (64, 1, false, instant),
        (512, 1, false, instant),
        (1, 1, true, instant),
        (64, 1, true, instant),
        (512, 1, true, instant),
        (512, 1, true, slow),
        (64, many, false, instant),
        (512, many, false, instant),
        (512, many, true, slow),
    ];
    for (n, (callers, keys_used, before_answer, upstream)) in loads.into_iter().enumerate() {
        if line.is_some_and(|line| line != n) {
            continue;
        }
        let load = Load {
            callers,
            keys: keys_used,
            before_answer,
            upstream,
        };
        measure(&store, &keys, price, load, &folder).await;
    }
    let begun = Instant::now();
    let report = store.verify().await.unwrap();
    println!(
        "verify: {} entries in {:.1} s, clean: {}",
        report.entries,
        begun.elapsed().as_secs_f64(),
        report.is_clean()
    );
    println!("{:#?}", store.stats());
    let sizes: Vec<String> = ["bench.db", "bench.db-wal", "bench.db-calls"]
        .map(|name| format!("{name} {} MiB", mib(&folder.join(name))))
        .into();
    println!("{}", sizes.join(", "));
}

async fn accounts(store: &Store, count: usize) -> Vec<KeyRow> {
    let mut making = tokio::task::JoinSet::new();
    let mut keys = Vec::new();
    for n in 0..count {
        let store = store.clone();
        making.spawn(async move {
            let balance = Micro::new(1_000_000_000_000);
            let (gift, credit_limit) = (Micro::ZERO, Micro::ZERO);
            let wallet = store
                .create_wallet(
                    NewWallet {
                        name: format!("w{n}"),
                        balance,
                        gift,
                        credit_limit,
                    },
                    &store::Actor::cli("test"),
                )
                .await
                .unwrap();
            let digest = Digest::of(KeyId::random().to_string().as_bytes());
            let limits = KeyLimits {
                rpm: Some(u32::MAX),
                tpm: Some(u32::MAX),
                ..KeyLimits::default()
            };
            let new = NewKey {
                wallet: wallet.id,
                name: None,
                digest,
                shown_prefix: "sk-tg-ab".to_owned(),
                limits,
                tags: Vec::new(),
            };
            store
                .create_key(new, &store::Actor::cli("test"))
                .await
                .unwrap()
        });
        if making.len() >= 1_000 {
            keys.push(making.join_next().await.unwrap().unwrap());
        }
    }
    while let Some(key) = making.join_next().await {
        keys.push(key.unwrap());
    }
    keys
}

async fn measure(
    store: &Store,
    keys: &Arc<[KeyRow]>,
    price: PriceVersion,
    load: Load,
    folder: &Path,
) {
    store.flush().await.unwrap();
    let before = store.stats();
    let (cpu, begun) = (cpu_seconds(), Instant::now());
    let calls = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..load.callers)
        .map(|n| {
            let (store, keys, calls) = (store.clone(), Arc::clone(keys), Arc::clone(&calls));
            tokio::spawn(async move {
                let mut waits = Vec::new();
                let mut next = n.wrapping_mul(7_919);
                while begun.elapsed() < RUN {
                    next = next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % (1 << 31);
                    let key = &keys[(next >> 7) % load.keys];
                    waits.push(call(&store, key, price, load).await);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for caller in callers {
        waits.extend(caller.await.unwrap());
    }
    store.flush().await.unwrap();
    let (cpu, wall) = (cpu_seconds() - cpu, begun.elapsed().as_secs_f64());
    let after = store.stats();
    waits.sort_unstable();
    let calls = calls.load(Ordering::Relaxed).max(1) as f64;
    let at = |percent: usize| {
        let place = (waits.len() * percent / 100).min(waits.len() - 1);
        waits[place].as_micros()
    };
    println!(
        "{:>7} {:>7} {:>14} {:>8} {:>9.0} {:>9.1} {:>9.1} {:>9} {:>9} {:>8} {:>8} {:>6}",
        load.callers,
        load.keys,
        if load.before_answer {
            "after the disk"
        } else {
            "at once"
        },
        format!("{} ms", load.upstream.as_millis()),
        calls / wall,
        cpu * 1e6 / calls,
        calls / (after.batches - before.batches) as f64,
        at(50),
        at(99),
        mib(&folder.join("bench.db-wal")),
        resident_kib() / 1024,
        BUSY.swap(0, Ordering::Relaxed),
    );
}

/// Runs one call. Returns how long the store made the call wait.
async fn call(store: &Store, key: &KeyRow, price: PriceVersion, load: Load) -> Duration {
    let now =
        UnixMs::new(i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap());
    let begun = Instant::now();
    let ask = Reservation {
        hold: Micro::new(4_000),
        exposure: Micro::ZERO,
        tokens: 4_000,
        counts_in_flight: true,
    };
    let admitted = loop {
        let admit = Admit {
            wallet: key.wallet,
            key: key.id,
            ask,
            request_id: "req_0123456789abcdefghij".into(),
            now,
        };
        match store.admit(admit).await {
            Ok(admitted) => break admitted,
            Err(error) => {
                assert_eq!(error, AdmitError::Busy);
                BUSY.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let mut waited = begun.elapsed();
    if load.upstream > Duration::ZERO {
        tokio::time::sleep(load.upstream).await;
    }
    if load.before_answer {
        let begun = Instant::now();
        admitted.durable.wait().await.unwrap();
        waited += begun.elapsed();
    }
    let meter = MeterText::from(&Meter {
        input: 800,
        cached_input: 100,
        output: 300,
        ..Meter::default()
    });
    let charge = Micro::new(1_200);
    let basis = Basis::Reported;
    let end = End::Settled {
        charge,
        meter: meter.clone(),
        price_version: price,
        basis,
        tokens: Some(1_200),
        cost: None,
    };
    store.close(Close {
        if_lost: IfLost::Charge,
        hold: admitted.hold,
        end,
        now,
    });
    store.journal_append(JournalRow {
        at: now,
        request_id: "req_0123456789abcdefghij".into(),
        wallet: Some(key.wallet),
        key: Some(key.id),
        endpoint: "/v1/chat/completions".into(),
        model: "bench/model".into(),
        channel: Some("main".into()),
        upstream_model: Some("large-2026".into()),
        status: 200,
        outcome: Some("settled".into()),
        meter: Some(meter),
        charge,
        timings: Timings {
            queued_us: Some(9),
            admitted_us: Some(20),
            upstream_us: Some(900),
            first_byte_us: Some(950),
            total_us: 1_000,
        },
        ..JournalRow::default()
    });
    waited
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The command's name may contain anything, so the fields are counted after it. User and system time are fields 14
    // and 15.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / TICKS_PER_SECOND
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn mib(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len()) / (1024 * 1024)
}
