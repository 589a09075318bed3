//! Accepts connections, assigns each to a serving thread, and drains them when the node stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, LastKey, Tally};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::callers_page::CallersPage;
use super::connection::{
    Close, CoarseClock, Connection, ConnectionTimers, ListenerState, OpenConnections, OpenStreams,
    ServeThreads, StreamExecutor, WaitLimits,
};
use super::framing::RefusedRequests;
use super::in_process::InProcess;
use super::limits::Limits;
use super::response::Cors;
use super::serve_connection::serve_connection;
use crate::tls::TlsAcceptor;

/// The time between two sweeps for overdue connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failed accept, which usually means that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long streams have to send their last error event when a stopping node ends them.
const LAST_EVENT_TIME: Duration = Duration::from_secs(1);

/// The public listener, bound and ready to run.
#[derive(Debug)]
pub struct PublicListener {
    listener: TcpListener,
    state: Arc<ListenerState>,
    open: Arc<OpenConnections>,
    clock: Arc<CoarseClock>,
    threads: Arc<ServeThreads>,
    /// The request counters of each serving thread.
    tallies: Vec<Arc<Tally>>,
    connections: TaskTracker,
    tls: Option<Arc<TlsAcceptor>>,
}

impl PublicListener {
    /// Binds the address, but does not accept connections yet.
    pub async fn bind(
        address: SocketAddr,
        threads: Arc<ServeThreads>,
        engine: Arc<Engine>,
        limits: Limits,
        tls: Option<Arc<TlsAcceptor>>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let connections = TaskTracker::new();
        let tallies = (0..threads.count()).map(|_| engine.metrics().tally());
        Ok(Self {
            listener,
            tallies: tallies.collect(),
            threads,
            state: Arc::new(ListenerState {
                engine,
                cors: Cors::of(&limits.cors_origins),
                page: limits.page.then(|| CallersPage::new(limits.page_models)),
                sessions: connections.clone(),
                limits,
            }),
            open: Arc::default(),
            clock: Arc::new(CoarseClock::new()),
            connections,
            tls,
        })
    }

    /// The address that was bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The service of this listener, for requests from inside the process.
    pub fn in_process(&self) -> InProcess {
        InProcess {
            state: Arc::clone(&self.state),
            open: Arc::clone(&self.open),
            clock: Arc::clone(&self.clock),
            tally: self.state.engine.metrics().tally(),
            connections: self.connections.clone(),
        }
    }

    /// Serves until `stop` is cancelled, then waits up to `drain` for open work. Streams that are still open then end
    /// with an error event of their protocol, and the remaining connections are closed.
    pub async fn run(self, stop: CancellationToken, drain: Duration) {
        let sweeper = tokio::spawn(sweep(
            Arc::clone(&self.open),
            Arc::clone(&self.clock),
            self.state.limits.waits,
        ));
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((socket, peer)) => self.assign(socket, peer),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        self.open.close_all(Close::AfterRequest);
        self.connections.close();
        if !all_ended_within(drain, &self.connections).await {
            self.state.engine.end_streams();
            if !all_ended_within(LAST_EVENT_TIME, &self.connections).await {
                self.open.close_all(Close::Now);
                self.connections.wait().await;
            }
        }
        sweeper.abort();
    }

    /// Assigns a connection to the least busy serving thread. Drops the connection if a limit on connections is
    /// reached.
    fn assign(&self, socket: TcpStream, peer: SocketAddr) {
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&self.clock)));
        let streams = Arc::<OpenStreams>::default();
        let slot = self.open.enter(
            peer.ip(),
            &timers,
            &streams,
            self.state.limits.connections_from(peer.ip()),
        );
        let Some(slot) = slot else { return };
        // We already write each answer in one piece, so Nagle's algorithm would only delay it by 40 ms.
        let _ = socket.set_nodelay(true);
        // Deregisters the socket from this runtime, so that the serving thread's runtime can poll it.
        let Ok(socket) = socket.into_std() else {
            return;
        };
        let Some((thread, runtime)) = self.threads.least_busy() else {
            return;
        };
        let Some(tally) = self.tallies.get(thread) else {
            return;
        };
        let executor = StreamExecutor {
            clock: Arc::clone(&self.clock),
            streams,
            threads: self.threads.stream_threads(thread),
        };
        let connection = Connection {
            listener: Arc::clone(&self.state),
            tally: Arc::clone(tally),
            timers,
            refused: Arc::new(RefusedRequests::default()),
            slot,
            last_key: LastKey::default(),
            known_key: None,
            continues_traces: self.state.limits.continues_traces(peer.ip()),
        };
        let serve = serve_connection(socket, self.tls.clone(), connection, executor);
        self.connections.spawn_on(serve, runtime);
    }
}

async fn all_ended_within(time: Duration, connections: &TaskTracker) -> bool {
    tokio::time::timeout(time, connections.wait()).await.is_ok()
}

async fn sweep(open: Arc<OpenConnections>, clock: Arc<CoarseClock>, waits: WaitLimits) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        clock.advance();
        open.close_overdue(&waits);
    }
}
