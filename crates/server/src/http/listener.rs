//! Accepts connections, bounds them, and ends them when the node stops.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Context;
use std::time::Duration;

use engine::{Engine, LastKey, Tally};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use upstream::Network;

use crate::config::Config;

use super::connection::http2_streams::StreamExecutor;
use super::connection::self_wake::Wakes;
use super::connection::serve_threads::Gates;
use super::connection::timers::{CoarseClock, Patience, Pulse, Watched};
use super::response::cors::Cors;
use super::service::{self, Connection, Shared};

/// How often overdue connections are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// After a failed accept (out of descriptors, as a rule) the listener rests this long.
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// Streams that a stopping node ends have this long to tell their callers so.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// hyper's own buffer: heads above it are refused before they reach us.
pub(super) const READ_BUFFER_BYTES: usize = 128 << 10;
pub(super) const HEADERS_MAX: usize = 100;
const H2_STREAMS_MAX: u32 = 250;

/// Bounds of the public listener.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) target_bytes_max: usize,
    /// One header, name and value.
    pub(crate) header_bytes_max: usize,
    pub(crate) headers_bytes_max: usize,
    pub(crate) body_text_bytes: usize,
    pub(crate) body_embeddings_bytes: usize,
    pub(crate) body_image_bytes: usize,
    pub(crate) body_tts_bytes: usize,
    pub(crate) body_stt_bytes: usize,
    pub(crate) body_video_bytes: usize,
    pub(crate) body_idle: Duration,
    pub(crate) body_total: Duration,
    pub(crate) head: Duration,
    pub(crate) keep_alive: Duration,
    /// How long a reader may take no byte while an answer waits.
    pub(crate) write: Duration,
    /// How often a quiet HTTP/2 connection is pinged, and how long the answer may take.
    pub(crate) ping: Duration,
    pub(crate) ping_answer: Duration,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_address_max: usize,
    /// Whether paths are served that only SDKs know.
    pub(crate) sdk_aliases: bool,
    /// Origins whose pages may read answers in a browser.
    pub(crate) cors_origins: Vec<String>,
    /// Peers exempt from the bound per address.
    pub(crate) trusted_proxies: Vec<Network>,
}

impl Limits {
    /// The bounds that a configuration sets.
    pub(crate) fn of(config: &Config) -> Self {
        let Config {
            limits, timeouts, ..
        } = config;
        Self {
            target_bytes_max: limits.target_bytes,
            headers_bytes_max: limits.header_bytes,
            header_bytes_max: limits.header_one_bytes,
            body_text_bytes: limits.body_text_bytes,
            body_embeddings_bytes: limits.body_embeddings_bytes,
            body_image_bytes: limits.body_image_bytes,
            body_tts_bytes: limits.body_tts_bytes,
            body_stt_bytes: limits.body_stt_bytes,
            body_video_bytes: limits.body_video_bytes,
            body_idle: timeouts.client_body_idle,
            body_total: timeouts.client_body_total,
            head: timeouts.client_header,
            keep_alive: timeouts.client_keep_alive,
            write: timeouts.client_write_idle,
            ping: timeouts.client_ping,
            ping_answer: timeouts.client_ping_answer,
            connections_max: limits.connections,
            connections_per_address_max: limits.connections_per_address,
            sdk_aliases: config.server.sdk_aliases,
            cors_origins: config.server.cors_origins.clone(),
            trusted_proxies: config.server.trusted_proxies.clone(),
        }
    }

    /// The address, if bounds per address hold for it: a trusted proxy stands for many callers.
    pub(crate) fn counted(&self, address: IpAddr) -> Option<IpAddr> {
        let mut trusted = self.trusted_proxies.iter();
        let is_trusted = trusted.any(|network| network.contains(address));
        (!is_trusted).then_some(address)
    }

    fn per_address_max(&self, address: IpAddr) -> usize {
        match self.counted(address) {
            Some(_) => self.connections_per_address_max,
            None => usize::MAX,
        }
    }
}

/// The public listener, bound and ready to run.
#[derive(Debug)]
pub(crate) struct Public {
    listener: TcpListener,
    shared: Arc<Shared>,
    crowd: Arc<Crowd>,
    clock: Arc<CoarseClock>,
    gates: Arc<Gates>,
    /// What each gate counts.
    tallies: Vec<Arc<Tally>>,
    connections: TaskTracker,
}

impl Public {
    /// Binds the address; nothing is accepted yet.
    pub(crate) async fn bind(
        address: SocketAddr,
        gates: Arc<Gates>,
        engine: Arc<Engine>,
        limits: Limits,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let connections = TaskTracker::new();
        let tallies = (0..gates.count()).map(|_| engine.metrics().tally());
        Ok(Self {
            listener,
            tallies: tallies.collect(),
            gates,
            shared: Arc::new(Shared {
                engine,
                aliases: limits.sdk_aliases,
                cors: Cors::of(&limits.cors_origins),
                sessions: connections.clone(),
                limits,
            }),
            crowd: Arc::default(),
            clock: Arc::new(CoarseClock::new()),
            connections,
        })
    }

    /// The address that was bound.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, then gives open work `drain` to end. What is left is ended by an error
    /// of its protocol, or cut off where that cannot be told.
    pub(crate) async fn run(self, stop: CancellationToken, drain: Duration) {
        let sweeper = tokio::spawn(sweep(
            Arc::clone(&self.crowd),
            Arc::clone(&self.clock),
            self.patience(),
        ));
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((socket, peer)) => self.welcome(socket, peer),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
        drop(self.listener);
        self.crowd.leave(Parting::Soon);
        self.connections.close();
        if !emptied_within(drain, &self.connections).await {
            self.shared.engine.end_streams();
            if !emptied_within(LAST_WORDS, &self.connections).await {
                self.crowd.leave(Parting::AtOnce);
                self.connections.wait().await;
            }
        }
        sweeper.abort();
    }

    fn patience(&self) -> Patience {
        let limits = &self.shared.limits;
        Patience {
            head: limits.head,
            keep_alive: limits.keep_alive,
            write: limits.write,
        }
    }

    fn welcome(&self, socket: TcpStream, peer: SocketAddr) {
        let limits = &self.shared.limits;
        let pulse = Arc::new(Pulse::new(Arc::clone(&self.clock)));
        let Some(seat) = self.crowd.enter(peer.ip(), &pulse, limits) else {
            // Nothing is read from a connection above the bound: it costs a close.
            return;
        };
        // Answers are small and joined by us; waiting for acknowledgements would cost 40 ms.
        let _ = socket.set_nodelay(true);
        // Without a runtime, so that the gate's own can watch it.
        let Ok(socket) = socket.into_std() else {
            return;
        };
        let Some((gate, runtime)) = self.gates.emptiest() else {
            return;
        };
        let Some(tally) = self.tallies.get(gate) else {
            return;
        };
        let executor = StreamExecutor {
            clock: Arc::clone(&self.clock),
            streams: Arc::clone(pulse.streams()),
            threads: self.gates.stream_threads(gate),
        };
        let connection = Connection {
            shared: Arc::clone(&self.shared),
            tally: Arc::clone(tally),
            pulse,
            seat,
            last_key: LastKey::default(),
        };
        self.connections
            .spawn_on(serve(socket, connection, executor), runtime);
    }
}

async fn emptied_within(time: Duration, connections: &TaskTracker) -> bool {
    tokio::time::timeout(time, connections.wait()).await.is_ok()
}

async fn serve(socket: std::net::TcpStream, connection: Connection, executor: StreamExecutor) {
    let Ok(socket) = TcpStream::from_std(socket) else {
        return;
    };
    let connection = Arc::new(connection);
    let io = TokioIo::new(Watched::new(socket, Arc::clone(&connection.pulse)));
    let builder = builder(&connection.shared.limits, executor);
    let requested = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let connection = Arc::clone(&requested);
        async move { Ok::<_, Infallible>(service::serve(connection, request).await) }
    });
    let mut exchange = std::pin::pin!(builder.serve_connection_with_upgrades(io, service));
    let mut wakes = Wakes::default();
    loop {
        let served = poll_fn(|cx| {
            let cx = &mut Context::from_waker(wakes.of(cx.waker()));
            exchange.as_mut().poll(cx)
        });
        tokio::select! {
            // A request that is there already is still served.
            biased;
            _ = served => return,
            parting = connection.seat.parting.told() => match parting {
                Parting::Soon => exchange.as_mut().graceful_shutdown(),
                Parting::AtOnce => return,
            },
        }
    }
}

fn builder(limits: &Limits, executor: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        // The sweep times heads without a timer per request.
        .header_read_timeout(None)
        .max_buf_size(READ_BUFFER_BYTES)
        .max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping)
        .keep_alive_timeout(limits.ping_answer)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits.headers_bytes_max).unwrap_or(u32::MAX));
    builder
}

/// All open connections.
#[derive(Debug, Default)]
struct Crowd {
    next: AtomicU64,
    open: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    by_id: HashMap<u64, (Arc<Pulse>, Arc<PartingBell>)>,
    by_address: HashMap<IpAddr, usize>,
}

impl Crowd {
    fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        pulse: &Arc<Pulse>,
        limits: &Limits,
    ) -> Option<Seat> {
        let mut seats = self.open.lock();
        if seats.by_id.len() >= limits.connections_max {
            return None;
        }
        let from_there = seats.by_address.entry(address).or_default();
        if *from_there >= limits.per_address_max(address) {
            return None;
        }
        *from_there += 1;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let parting = Arc::new(PartingBell::default());
        seats
            .by_id
            .insert(id, (Arc::clone(pulse), Arc::clone(&parting)));
        Some(Seat {
            id,
            address,
            parting,
            crowd: Arc::clone(self),
        })
    }

    fn end_overdue(&self, patience: &Patience) {
        for (pulse, parting) in self.open.lock().by_id.values() {
            if pulse.is_overdue(patience) {
                parting.ring(Parting::AtOnce);
            }
            pulse.streams().end_overdue(patience.write);
        }
    }

    fn leave(&self, when: Parting) {
        for (_, parting) in self.open.lock().by_id.values() {
            parting.ring(when);
        }
    }
}

/// When a connection must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parting {
    /// After the request that it serves.
    Soon,
    AtOnce,
}

/// Tells a connection to go; a single wait for both kinds, since it is looked at whenever anything
/// happens on the connection.
#[derive(Debug, Default)]
struct PartingBell {
    rings: Notify,
    at_once: AtomicBool,
}

impl PartingBell {
    fn ring(&self, when: Parting) {
        if when == Parting::AtOnce {
            self.at_once.store(true, Ordering::Release);
        }
        self.rings.notify_one();
    }

    async fn told(&self) -> Parting {
        self.rings.notified().await;
        if self.at_once.load(Ordering::Acquire) {
            Parting::AtOnce
        } else {
            Parting::Soon
        }
    }
}

/// One connection's place in the crowd, given back when it ends, or the session that came of it.
#[derive(Debug)]
pub(super) struct Seat {
    id: u64,
    address: IpAddr,
    parting: Arc<PartingBell>,
    crowd: Arc<Crowd>,
}

impl Seat {
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.crowd.open.lock();
        seats.by_id.remove(&self.id);
        if let Some(count) = seats.by_address.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                seats.by_address.remove(&self.address);
            }
        }
    }
}

async fn sweep(crowd: Arc<Crowd>, clock: Arc<CoarseClock>, patience: Patience) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        clock.advance();
        crowd.end_overdue(&patience);
    }
}
