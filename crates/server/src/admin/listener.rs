//! Accepts and serves the connections of operators.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http_server::TlsAcceptor;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::access::Peer;
use super::api::state::AdminState;
use super::router::router;
use super::write_timeout_socket::WriteTimeoutSocket;

#[derive(Debug, Clone, Copy)]
struct ClientTimeouts {
    /// The time limit for the TLS handshake, for the head of a request, and between two requests.
    head: Duration,
    /// The time limit for 64 KiB of an answer, or for the rest of it.
    answer: Duration,
}

const CLIENT_TIMEOUTS: ClientTimeouts = ClientTimeouts {
    head: Duration::from_secs(10),
    answer: Duration::from_secs(20),
};
/// The maximum number of connections at the same time. A connection whose client is inactive ends within a bounded
/// time: heads, bodies and the reading of answers have deadlines (`write_timeout_socket`). There are fewer event
/// streams than connections, and each stream ends after a fixed time.
const CONNECTIONS_MAX: usize = 256;
/// The maximum number of connections of one network, so that a visitor without a token leaves some for health checks.
const NETWORK_CONNECTIONS_MAX: usize = 128;

/// Counts the open connections of each network.
#[derive(Debug, Default)]
struct OpenConnections(Mutex<HashMap<IpAddr, usize>>);

impl OpenConnections {
    /// Counts one more connection, unless its network has reached its limit.
    fn enter(self: &Arc<Self>, network: IpAddr) -> Option<ConnectionSlot> {
        let mut open = self.0.lock();
        let count = open.entry(network).or_default();
        if *count >= NETWORK_CONNECTIONS_MAX {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot {
            open: Arc::clone(self),
            network,
        })
    }
}

/// One of the connections of a network. Dropping it frees its place.
struct ConnectionSlot {
    open: Arc<OpenConnections>,
    network: IpAddr,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.open.0.lock();
        if let Entry::Occupied(mut count) = open.entry(self.network) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// The operators' listener, bound and ready to run.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: TcpListener,
    router: Router,
    state: AdminState,
    tls: Option<Arc<TlsAcceptor>>,
}

impl AdminListener {
    pub(crate) async fn bind(
        address: SocketAddr,
        state: AdminState,
        tls: Option<Arc<TlsAcceptor>>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            listener,
            router: router(state.clone()),
            state,
            tls,
        })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is cancelled. That happens after the public listener has drained, so that operators can
    /// watch the drain.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let open = Arc::<OpenConnections>::default();
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            let Ok((socket, peer)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            if connections.len() >= CONNECTIONS_MAX {
                continue;
            }
            let Some(slot) = open.enter(Peer(peer).network()) else {
                continue;
            };
            let (router, tls) = (self.router.clone(), self.tls.clone());
            let connection = async move {
                let _slot = slot;
                match tls {
                    None => serve(socket, peer, router, CLIENT_TIMEOUTS).await,
                    Some(tls) => {
                        let accepted =
                            tokio::time::timeout(CLIENT_TIMEOUTS.head, tls.accept(socket));
                        if let Ok(Ok(socket)) = accepted.await {
                            serve(socket, peer, router, CLIENT_TIMEOUTS).await;
                        }
                    }
                }
            };
            let stop = stop.clone();
            connections.spawn(async move {
                stop.run_until_cancelled(connection).await;
            });
        }
        connections.close();
        connections.wait().await;
        self.state.events.finish().await;
    }
}

async fn serve<S>(socket: S, peer: SocketAddr, router: Router, timeouts: ClientTimeouts)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let socket = WriteTimeoutSocket::new(socket, timeouts.answer);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.head)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    // An error means that the client has left, was too slow or broke the protocol. There is nobody to report it to.
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    const REQUEST: &str = "GET /large HTTP/1.1\r\nhost: a\r\n\r\n";

    /// Serves a connection on which the client sends these bytes. Returns the client's end, and a task that ends with
    /// the connection.
    async fn connect(sent: &str) -> (DuplexStream, tokio::task::JoinHandle<()>) {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let large = async || Bytes::from(vec![b'x'; 1 << 20]);
        let router = Router::new().route("/large", get(large));
        let short = ClientTimeouts {
            head: Duration::from_millis(50),
            answer: Duration::from_millis(50),
        };
        let served = tokio::spawn(serve(ours, peer, router, short));
        theirs.write_all(sent.as_bytes()).await.unwrap();
        (theirs, served)
    }

    /// Without time limits, each of these clients would keep its connection forever.
    #[tokio::test]
    async fn no_client_holds_a_connection_by_doing_nothing() {
        for sent in ["", "GET /lar", REQUEST] {
            let (_theirs, served) = connect(sent).await;
            served.await.unwrap();
        }
    }

    #[test]
    fn one_network_leaves_connections_for_others() {
        let open = Arc::<OpenConnections>::default();
        let [one, other] = [1, 2].map(|n| IpAddr::from([127, 0, 0, n]));
        let mut slots: Vec<_> = std::iter::from_fn(|| open.enter(one)).collect();
        assert_eq!(slots.len(), NETWORK_CONNECTIONS_MAX);
        assert!(open.enter(other).is_some());
        slots.pop();
        assert!(open.enter(one).is_some());
        drop(slots);
        assert!(
            open.0.lock().is_empty(),
            "nothing is kept of networks that have left"
        );
    }

    #[tokio::test]
    async fn a_connection_that_is_idle_after_an_answer_ends() {
        let (mut theirs, served) = connect(REQUEST).await;
        let mut answer = Vec::new();
        theirs.read_to_end(&mut answer).await.unwrap();
        assert!(answer.len() > 1 << 20);
        served.await.unwrap();
    }
}
