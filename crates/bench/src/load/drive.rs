//! Sends requests over a number of connections and measures them.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::args::{Args, TargetArgs};
use super::client::Client;
use super::request::{Request, Shape};
use super::sessions;
use super::tally::{ANSWERS_EACH_MIN, LAST_ANSWERS, Measured, Tally};

const FAILURE_REST: Duration = Duration::from_millis(20);
/// Runs the load and prints the results as JSON.
pub(crate) async fn drive(args: Args) -> io::Result<()> {
    let measured = match args.target.shape.session_kind() {
        Some(kind) => sessions::measure(&args, kind).await?,
        None if args.each_key_once => once_with_each_key(args).await?,
        None => measure(args).await?,
    };
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &measured)?;
    output.write_all(b"\n")
}

async fn measure(args: Args) -> io::Result<Measured> {
    let load = Arc::new(Load::new(&args.target)?);
    let stagger = Duration::from_millis(args.stagger_ms);
    let mut tasks = JoinSet::new();
    for (client, index) in connect(&args.target).await?.into_iter().zip(0..) {
        let start_after = stagger * index / args.target.connections;
        tasks.spawn(Arc::clone(&load).ask_until_over(client, start_after));
    }

    let connections = u64::from(args.target.connections);
    let answers_min = connections * ANSWERS_EACH_MIN;
    let times = load.tally.measure(&args.window, connections, answers_min);
    let times = times.await?;

    // Wait for the last answers. If these calls were aborted, the measured process would have
    // different work to do.
    if timeout(LAST_ANSWERS, tasks.join_all()).await.is_err() {
        let late = io::Error::other("the last answers did not come");
        load.tally.record_failure(&late);
    }
    Ok(load.tally.measured(times))
}

async fn once_with_each_key(args: Args) -> io::Result<Measured> {
    let load = Arc::new(Load::new(&args.target)?);
    let clients = connect(&args.target).await?;
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

async fn connect(target: &TargetArgs) -> io::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..target.connections {
        clients.push(Client::connect(target.address).await?);
    }
    Ok(clients)
}

struct Load {
    address: SocketAddr,
    shape: Shape,
    request: Request,
    keys: Vec<String>,
    keys_used: AtomicUsize,
    tally: Tally,
}

impl Load {
    fn new(target: &TargetArgs) -> io::Result<Self> {
        Ok(Self {
            address: target.address,
            shape: target.shape,
            request: target.request(),
            keys: target.keys()?,
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

    async fn recover(&self, client: &mut Client, failure: &io::Error) {
        self.tally.record_failure(failure);
        sleep(FAILURE_REST).await;
        match Client::connect(self.address).await {
            Ok(connected) => *client = connected,
            Err(failure) => self.tally.record_failure(&failure),
        }
    }
}
