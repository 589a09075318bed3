//! Drives a number of connections for a while and measures them.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::request::{Request, Shape};
use super::talk;
use super::tally::{Measured, Tally, Window};

const FAILURE_REST: Duration = Duration::from_millis(20);
/// Connections that are served side by side end side by side. So that no window falls between two
/// such waves, it is prolonged until each has been answered a few times on average.
pub(super) const ANSWERS_EACH_MIN: u64 = 4;
/// How long the last requests may take when the time is up.
pub(super) const LAST_ANSWERS: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) ask: AskArgs,
    #[command(flatten)]
    pub(super) window: Window,
    /// The connections start evenly over this time, so that they do not ask in step.
    #[arg(long, default_value_t = 0)]
    stagger_ms: u64,
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
    pub(super) path: String,
    #[arg(long, default_value = "bench/chat")]
    pub(super) model: String,
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

/// Runs the load and prints what it measured as JSON.
pub(crate) async fn drive(args: Args) -> io::Result<()> {
    let measured = match args.ask.shape.topic() {
        Some(topic) => talk::measure(&args, topic).await?,
        None if args.each_key_once => once_with_each_key(args).await?,
        None => measure(args).await?,
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
    let answers_min = connections * ANSWERS_EACH_MIN;
    let times = load.tally.measure(&args.window, connections, answers_min);
    let times = times.await?;

    // The last requests are answered to their end: a call that is cut off would be work of
    // another kind for the one who is measured.
    if timeout(LAST_ANSWERS, tasks.join_all()).await.is_err() {
        let late = io::Error::other("the last answers did not come");
        load.tally.note(&late);
    }
    Ok(load.tally.measured(times))
}

async fn once_with_each_key(args: Args) -> io::Result<Measured> {
    let load = Arc::new(Load::new(&args.ask)?);
    let clients = connect(&args.ask).await?;
    let cpu_before = args.window.cpu_time()?;
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(Arc::clone(&load).ask_with_keys_left(client));
    }
    tasks.join_all().await;
    let cpu = args.window.cpu_time()?.saturating_sub(cpu_before);
    Ok(load.tally.measured((started.elapsed(), cpu)))
}

async fn connect(ask: &AskArgs) -> io::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..ask.connections {
        clients.push(Client::connect(ask.address).await?);
    }
    Ok(clients)
}

/// What the connections share.
struct Load {
    address: SocketAddr,
    shape: Shape,
    request: Request,
    keys: Vec<String>,
    keys_used: AtomicUsize,
    tally: Tally,
}

impl Load {
    fn new(ask: &AskArgs) -> io::Result<Self> {
        Ok(Self {
            address: ask.address,
            shape: ask.shape,
            request: ask.request(),
            keys: ask.keys()?,
            keys_used: AtomicUsize::new(0),
            tally: Tally::new(),
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
        self.tally.clients_answered.fetch_add(1, Ordering::Relaxed);
        while !self.tally.is_over() {
            let key = self.next_key();
            let started = Instant::now();
            match client
                .call_and_check_end(&self.request, key, self.shape)
                .await
            {
                Ok(()) if self.tally.is_measured() => self.tally.record(started.elapsed()),
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
                Ok(()) => self.tally.record(started.elapsed()),
                Err(failure) => self.recover(&mut client, &failure).await,
            }
            if self.tally.is_over() {
                return;
            }
        }
    }

    fn next_key(&self) -> &str {
        let used = self.keys_used.fetch_add(1, Ordering::Relaxed);
        &self.keys[used % self.keys.len()]
    }

    /// Counts a failure and connects again, unless there were too many.
    async fn recover(&self, client: &mut Client, failure: &io::Error) {
        self.tally.note(failure);
        sleep(FAILURE_REST).await;
        match Client::connect(self.address).await {
            Ok(connected) => *client = connected,
            Err(failure) => self.tally.note(&failure),
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
