//! Accepts the connections of operators and serves them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::access::Peer;
use super::api::state::AdminState;
use super::router::router;

const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 256;

/// The operators' listener, bound and ready to run.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: TcpListener,
    router: Router,
    state: AdminState,
}

impl AdminListener {
    pub(crate) async fn bind(address: SocketAddr, state: AdminState) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            listener,
            router: router(state.clone()),
            state,
        })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, which comes after the public listener has drained, so that operators can watch
    /// the drain.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let connections = TaskTracker::new();
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            let Ok((socket, peer)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            if connections.len() >= CONNECTIONS_MAX {
                continue;
            }
            let router = TowerToHyperService::new(self.router.clone());
            let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(Peer(peer));
                router.call(request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(socket), service);
            let stop = stop.clone();
            connections.spawn(async move {
                let _ = stop.run_until_cancelled(connection).await;
            });
        }
        connections.close();
        connections.wait().await;
        self.state.events.finish().await;
    }
}
