//! Drives a number of connections for a while and measures them.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::histogram::Histogram;
use super::request::{Request, Shape};
use crate::proc;

/// A target that fails this often is not asked further.
const FAILURES_MAX: u64 = 100;
const FAILURE_REST: Duration = Duration::from_millis(20);
/// Connections that are served side by side end side by side. So that no window falls between two
/// such waves, it is prolonged until each has been answered a few times on average.
const ANSWERS_EACH_MIN: u64 = 4;
const MEASURE_TIMES_MAX: u32 = 4;
const WARM_UP_MAX: Duration = Duration::from_secs(5);
const WAIT_STEP: Duration = Duration::from_millis(20);
/// How long the last requests may take when the time is up.
const LAST_ANSWERS: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) ask: AskArgs,
    /// Time before the measurement starts.
    #[arg(long, default_value_t = 200)]
    warm_up_ms: u64,
    /// Length of the measurement; longer when the answers are few.
    #[arg(long, default_value_t = 1000)]
    measure_ms: u64,
    /// The connections start evenly over this time, so that they do not ask in step.
    #[arg(long, default_value_t = 0)]
    stagger_ms: u64,
    /// The process whose CPU time is measured.
    #[arg(long)]
    watch: Option<u32>,
    /// Asks once with each key, as fast as it goes, and measures that.
    #[arg(long)]
    each_key_once: bool,
}

/// Who is asked what.
#[derive(clap::Args)]
pub(crate) struct AskArgs {
    #[arg(long)]
    pub(super) address: SocketAddr,
    #[arg(long, default_value = "/v1/chat/completions")]
    path: String,
    #[arg(long, default_value = "bench/chat")]
    model: String,
    #[arg(long, value_enum, default_value = "plain")]
    pub(super) shape: Shape,
    #[arg(long, default_value_t = 1)]
    pub(super) connections: u32,
    /// A file of API keys, one per line; requests go through them in turn.
    #[arg(long)]
    keys: Option<PathBuf>,
}

impl AskArgs {
    pub(super) fn request(&self) -> Request {
        Request::new(
            self.shape,
            &self.address.to_string(),
            &self.path,
            &self.model,
        )
    }

    pub(super) fn keys(&self) -> io::Result<Vec<String>> {
        self.keys
            .as_deref()
            .map_or_else(|| Ok(vec!["sk-none".to_owned()]), read_keys)
    }
}

/// What one drive has shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    /// Of the watched process; 0 when none was.
    pub(crate) cpu_us: u64,
    pub(crate) failures: u64,
    pub(crate) first_failure: Option<String>,
}

/// Runs the load and prints what it measured as JSON.
pub(crate) async fn drive(args: Args) -> io::Result<()> {
    let measured = if args.each_key_once {
        once_with_each_key(args).await?
    } else {
        measure(args).await?
    };
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &measured)?;
    output.write_all(b"\n")
}

async fn measure(args: Args) -> io::Result<Measured> {
    let load = Arc::new(Load::new(&args.ask)?);
    let stagger = Duration::from_millis(args.stagger_ms);
    let mut tasks = JoinSet::new();
    for (client, index) in connect(&args.ask).await?.into_iter().zip(0..) {
        let start_after = stagger * index / args.ask.connections;
        tasks.spawn(Arc::clone(&load).ask_until_over(client, start_after));
    }

    let connections = u64::from(args.ask.connections);
    let warm_up = Duration::from_millis(args.warm_up_ms);
    wait(warm_up, WARM_UP_MAX, || {
        load.clients_answered.load(Ordering::Relaxed) >= connections
    })
    .await;
    let cpu_before = cpu_time(args.watch)?;
    let started = Instant::now();
    load.phase.store(MEASURED, Ordering::Relaxed);
    let measure = Duration::from_millis(args.measure_ms);
    wait(measure, measure * MEASURE_TIMES_MAX, || {
        load.latencies.count() >= connections * ANSWERS_EACH_MIN
    })
    .await;
    load.phase.store(OVER, Ordering::Relaxed);
    let elapsed = started.elapsed();
    let cpu = cpu_time(args.watch)?.saturating_sub(cpu_before);

    // The last requests are answered to their end: a call that is cut off would be work of
    // another kind for the one who is measured.
    if timeout(LAST_ANSWERS, tasks.join_all()).await.is_err() {
        load.note(&io::Error::other("the last answers did not come"));
    }
    Ok(load.measured(elapsed, cpu))
}

/// Waits for `least`, and then until it is enough, but not longer than `most`.
async fn wait(least: Duration, most: Duration, enough: impl Fn() -> bool) {
    let started = Instant::now();
    sleep(least).await;
    while !enough() && started.elapsed() < most {
        sleep(WAIT_STEP).await;
    }
}

async fn once_with_each_key(args: Args) -> io::Result<Measured> {
    let load = Arc::new(Load::new(&args.ask)?);
    let clients = connect(&args.ask).await?;
    let cpu_before = cpu_time(args.watch)?;
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(Arc::clone(&load).ask_with_keys_left(client));
    }
    tasks.join_all().await;
    let cpu = cpu_time(args.watch)?.saturating_sub(cpu_before);
    Ok(load.measured(started.elapsed(), cpu))
}

async fn connect(ask: &AskArgs) -> io::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..ask.connections {
        clients.push(Client::connect(ask.address).await?);
    }
    Ok(clients)
}

const WARM_UP: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// What the connections share.
struct Load {
    address: SocketAddr,
    shape: Shape,
    request: Request,
    keys: Vec<String>,
    keys_used: AtomicUsize,
    phase: AtomicU8,
    clients_answered: AtomicU64,
    latencies: Histogram,
    failures: AtomicU64,
    first_failure: OnceLock<String>,
}

impl Load {
    fn new(ask: &AskArgs) -> io::Result<Self> {
        Ok(Self {
            address: ask.address,
            shape: ask.shape,
            request: ask.request(),
            keys: ask.keys()?,
            keys_used: AtomicUsize::new(0),
            phase: AtomicU8::new(WARM_UP),
            clients_answered: AtomicU64::new(0),
            latencies: Histogram::new(),
            failures: AtomicU64::new(0),
            first_failure: OnceLock::new(),
        })
    }

    async fn ask_until_over(self: Arc<Self>, mut client: Client, start_after: Duration) {
        sleep(start_after).await;
        let key = self.next_key();
        if let Err(failure) = client
            .call_and_check_all(&self.request, key, self.shape)
            .await
        {
            self.recover(&mut client, &failure).await;
        }
        self.clients_answered.fetch_add(1, Ordering::Relaxed);
        while self.phase.load(Ordering::Relaxed) != OVER {
            let key = self.next_key();
            let started = Instant::now();
            match client
                .call_and_check_end(&self.request, key, self.shape)
                .await
            {
                Ok(()) if self.phase.load(Ordering::Relaxed) == MEASURED => self.record(started),
                Ok(()) => {}
                Err(failure) => self.recover(&mut client, &failure).await,
            }
        }
    }

    async fn ask_with_keys_left(self: Arc<Self>, mut client: Client) {
        while let Some(key) = self
            .keys
            .get(self.keys_used.fetch_add(1, Ordering::Relaxed))
        {
            let started = Instant::now();
            match client
                .call_and_check_end(&self.request, key, self.shape)
                .await
            {
                Ok(()) => self.record(started),
                Err(failure) => self.recover(&mut client, &failure).await,
            }
            if self.phase.load(Ordering::Relaxed) == OVER {
                return;
            }
        }
    }

    fn next_key(&self) -> &str {
        let used = self.keys_used.fetch_add(1, Ordering::Relaxed);
        &self.keys[used % self.keys.len()]
    }

    fn record(&self, started: Instant) {
        let nanos = started.elapsed().as_nanos();
        self.latencies
            .record(u64::try_from(nanos).unwrap_or(u64::MAX));
    }

    /// Counts a failure and connects again, unless there were too many.
    async fn recover(&self, client: &mut Client, failure: &io::Error) {
        self.note(failure);
        sleep(FAILURE_REST).await;
        match Client::connect(self.address).await {
            Ok(connected) => *client = connected,
            Err(failure) => self.note(&failure),
        }
    }

    fn note(&self, failure: &io::Error) {
        let _ = self.first_failure.set(failure.to_string());
        if self.failures.fetch_add(1, Ordering::Relaxed) >= FAILURES_MAX {
            self.phase.store(OVER, Ordering::Relaxed);
        }
    }

    fn measured(&self, elapsed: Duration, cpu: Duration) -> Measured {
        Measured {
            requests: self.latencies.count(),
            elapsed_us: micros(elapsed),
            p50_ns: self.latencies.quantile(500),
            p99_ns: self.latencies.quantile(990),
            cpu_us: micros(cpu),
            failures: self.failures.load(Ordering::Relaxed),
            first_failure: self.first_failure.get().cloned(),
        }
    }
}

fn read_keys(path: &Path) -> io::Result<Vec<String>> {
    let keys: Vec<String> = fs::read_to_string(path)?
        .lines()
        .map(str::to_owned)
        .collect();
    if keys.is_empty() {
        Err(io::Error::other("a file without keys"))
    } else {
        Ok(keys)
    }
}

fn cpu_time(watched: Option<u32>) -> io::Result<Duration> {
    watched.map_or(Ok(Duration::ZERO), proc::cpu_time)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
