//! Many open tasks on one node: polls keep their schedule. The latencies of text calls, without and with the tasks, are
//! printed for comparison.
//!
//! The result depends on the machine, so the test runs only on request:
//! `TOLLGATE_OPEN_TASKS=10000 cargo test --release -p tollgate-server --test it many_open -- --ignored --nocapture`.
//! `TOLLGATE_POLL_MS` is the pause between two polls of a task, 5,000 by default.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::every_protocol::create_on;
use super::videos::ENTRIES;
use crate::harness::{Connection, GatewayBuilder, Key, Request, TestGateway, ask};

const CREATORS: usize = 32;
/// Concurrent callers of text models, each of which sends one call per interval.
const CALLERS: usize = 8;
const CALL_EVERY: Duration = Duration::from_millis(40);

fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

/// Measurements in ascending order.
struct Measurements(Vec<u64>);

impl Measurements {
    fn of(mut figures: Vec<u64>) -> Self {
        figures.sort_unstable();
        Self(figures)
    }

    fn at(&self, percent: usize) -> u64 {
        self.0[(self.0.len() - 1) * percent / 100]
    }
}

/// The latencies of short text calls at a constant rate, in microseconds.
async fn text_calls(node: SocketAddr, key: Key, during: Duration) -> Measurements {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let secret = key.secret.clone();
        callers.spawn(async move {
            let request = Request::chat(&ask("hello")).bearer(&secret);
            let mut connection = Connection::open(node).await;
            let mut took = Vec::new();
            let offset =
                CALL_EVERY * u32::try_from(caller).unwrap() / u32::try_from(CALLERS).unwrap();
            let first = tokio::time::Instant::now() + offset;
            let mut ticks = tokio::time::interval_at(first, CALL_EVERY);
            let begun = Instant::now();
            while begun.elapsed() < during {
                ticks.tick().await;
                let sent = Instant::now();
                connection.send(&request).await;
                connection.answer().await.ok();
                took.push(u64::try_from(sent.elapsed().as_micros()).unwrap());
            }
            took
        });
    }
    Measurements::of(callers.join_all().await.concat())
}

/// The pauses between two polls of the same task during this time, in milliseconds.
async fn poll_intervals(gateway: &TestGateway, during: Duration) -> Measurements {
    let mut poll_times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut seen = gateway.sim.stats().received;
    let begun = Instant::now();
    while begun.elapsed() < during {
        for call in gateway.sim.calls_after(seen) {
            assert_eq!(call.seq, seen + 1, "calls that nobody has seen");
            seen = call.seq;
            if call.method == "GET" {
                poll_times.entry(call.path).or_default().push(call.at_ms);
            }
        }
        // The simulator keeps a thousand calls, and polls come in bursts.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let intervals = poll_times.values().flat_map(|times| times.windows(2));
    Measurements::of(intervals.map(|two| two[1] - two[0]).collect())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures the machine"]
async fn many_open_tasks_are_looked_at_on_time_and_slow_no_text_call() {
    let count = usize::try_from(asked("TOLLGATE_OPEN_TASKS", 1_000)).unwrap();
    let pause_ms = asked("TOLLGATE_POLL_MS", 5_000);
    let builder = GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("tasks", &format!("poll_first_ms = {pause_ms}"))
        .setting("tasks", &format!("poll_max_ms = {pause_ms}"));
    let gateway = builder.start().await;
    gateway.wallet("films", &["--balance", "1000000"]).await;
    gateway.wallet("texts", &["--balance", "1000000"]).await;
    let (films, texts) = (
        gateway.key("films", &[]).await,
        gateway.key("texts", &[]).await,
    );
    let calls = |during| text_calls(gateway.address(), texts.clone(), during);
    calls(Duration::from_secs(2)).await;
    let alone = calls(Duration::from_secs(10)).await;
    let mut creators = JoinSet::new();
    for creator in 0..CREATORS {
        let (key, node) = (films.clone(), gateway.address());
        creators.spawn(async move {
            for _ in (creator..count).step_by(CREATORS) {
                create_on(node, &key, "a boat [polls=1000000]").await;
            }
        });
    }
    creators.join_all().await;
    // This is enough time for at least three rounds of polls.
    let during = Duration::from_millis(4 * pause_ms);
    let (intervals, beside) = tokio::join!(poll_intervals(&gateway, during), calls(during));
    eprintln!(
        "{count} open tasks, a look every {pause_ms} ms and up to a tenth more: {} pauses, p1 {} ms, p50 {} ms, \
         p99 {} ms, longest {} ms",
        intervals.0.len(),
        intervals.at(1),
        intervals.at(50),
        intervals.at(99),
        intervals.at(100)
    );
    for (name, took) in [("without", &alone), ("with", &beside)] {
        eprintln!(
            "text calls {name} them: {}, p50 {} us, p99 {} us",
            took.0.len(),
            took.at(50),
            took.at(99)
        );
    }
    // The configured pause, a tenth for its jitter, and a tenth of tolerance.
    assert!(intervals.at(99) <= pause_ms * 12 / 10);
}
