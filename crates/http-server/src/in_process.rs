//! Serves requests from inside the process: calls of the console's playground.
//!
//! Such a request passes through the same service as a request from a socket, over an in-memory pipe, so that it is
//! limited, billed, recorded and streamed like any other. There is one difference: the id of a key identifies its
//! caller, because only digests of secrets are stored. A request from a socket cannot set this id.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use engine::{LastKey, Tally};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use store::KeyId;
use tokio::io::DuplexStream;
use tokio_util::task::TaskTracker;

use super::connection::{
    Close, CoarseClock, Connection, ConnectionTimers, ListenerState, MonitoredSocket,
    OpenConnections, OpenStreams,
};
use super::framing::RefusedRequests;
use super::limits::{HEADERS_MAX, READ_BUFFER_BYTES};
use super::service;

/// The number of bytes that the pipe buffers in each direction.
const PIPE_BYTES: usize = 64 << 10;

/// The public service, for requests from inside the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct InProcess {
    pub(super) state: Arc<ListenerState>,
    pub(super) open: Arc<OpenConnections>,
    pub(super) clock: Arc<CoarseClock>,
    pub(super) tally: Arc<Tally>,
    pub(super) connections: TaskTracker,
}

/// Why a request could not be served.
#[derive(Debug, thiserror::Error)]
pub enum InProcessError {
    /// The node is stopping, or has as many connections as it may have.
    #[error("the node is stopping or has too many connections")]
    Busy,
    /// The exchange broke off.
    #[error("the request was not answered: {0}")]
    Broken(#[from] hyper::Error),
}

impl InProcess {
    /// Serves a request on behalf of this key. The answer streams as the public service writes it.
    pub async fn call<B>(
        &self,
        key: KeyId,
        request: Request<B>,
    ) -> Result<Response<Incoming>, InProcessError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        // When the node stops, it waits for these connections and accepts no new ones.
        if self.connections.is_closed() {
            return Err(InProcessError::Busy);
        }
        let connection = self.connection(key).ok_or(InProcessError::Busy)?;
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        self.connections.spawn(serve(far, connection));
        let (mut sender, exchange) = client::handshake(TokioIo::new(near)).await?;
        self.connections.spawn(async {
            // The reader of the answer sees the error, so it is ignored here.
            let _ = exchange.with_upgrades().await;
        });
        Ok(sender.send_request(request).await?)
    }

    /// Runs work that continues after an answer, such as a session. A stopping node waits for it.
    pub fn spawn(&self, after: impl Future<Output = ()> + Send + 'static) {
        self.connections.spawn(after);
    }

    fn connection(&self, key: KeyId) -> Option<Connection> {
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&self.clock)));
        let streams = Arc::<OpenStreams>::default();
        let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let limits = &self.state.limits;
        let slot = self
            .open
            .enter(address, &timers, &streams, limits.connections_from(address))?;
        Some(Connection {
            listener: Arc::clone(&self.state),
            tally: Arc::clone(&self.tally),
            timers,
            refused: Arc::new(RefusedRequests::default()),
            slot,
            last_key: LastKey::default(),
            continues_traces: false,
            known_key: Some(key),
        })
    }
}

/// Serves the single request of a pipe.
async fn serve(pipe: DuplexStream, connection: Connection) {
    let connection = Arc::new(connection);
    let io = TokioIo::new(MonitoredSocket::new(
        pipe,
        Arc::clone(&connection.timers),
        Arc::clone(&connection.refused),
    ));
    let of_requests = Arc::clone(&connection);
    let service = service_fn(move |request| service::serve(Arc::clone(&of_requests), request));
    let exchange = server::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .keep_alive(false)
        .max_buf_size(READ_BUFFER_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(io, service)
        .with_upgrades();
    let mut exchange = pin!(exchange);
    loop {
        tokio::select! {
            biased;
            _ = exchange.as_mut() => return,
            close = connection.slot.told_to_close() => match close {
                Close::AfterRequest => exchange.as_mut().graceful_shutdown(),
                Close::Now => return,
            },
        }
    }
}
