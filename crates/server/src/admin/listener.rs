//! Serves the endpoints for operators.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::Engine;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::{Failure, Family};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::AdminToken;

const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 256;

/// The operators' listener, bound and ready to run.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: TcpListener,
    endpoints: Arc<Endpoints>,
}

/// Answers the requests of all connections.
#[derive(Debug)]
struct Endpoints {
    engine: Arc<Engine>,
    token: Option<AdminToken>,
    ready: Arc<AtomicBool>,
}

impl AdminListener {
    pub(crate) async fn bind(
        address: SocketAddr,
        engine: Arc<Engine>,
        token: Option<AdminToken>,
        ready: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            listener,
            endpoints: Arc::new(Endpoints {
                engine,
                token,
                ready,
            }),
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
            let Ok((socket, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            if connections.len() >= CONNECTIONS_MAX {
                continue;
            }
            let endpoints = Arc::clone(&self.endpoints);
            let service = service_fn(move |request| {
                let endpoints = Arc::clone(&endpoints);
                async move { Ok::<_, Infallible>(endpoints.answer(&request)) }
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
    }
}

impl Endpoints {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        // hyper omits the body of an answer to HEAD.
        let method = match request.method().as_str() {
            "HEAD" => "GET",
            method => method,
        };
        match (method, request.uri().path()) {
            // Healthy means that the event loop still answers.
            ("GET", "/healthz") => reply(StatusCode::OK, "application/json", "{\"status\":\"ok\"}"),
            ("GET", "/readyz") => self.readiness(),
            ("GET", "/metrics") => {
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                reply(StatusCode::OK, kind, self.engine.scrape())
            }
            _ if !self.is_authorised(request) => refuse(&Failure::invalid_api_key()),
            _ => refuse(&Failure::not_found("There is no such endpoint.")),
        }
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let draining = !self.ready.load(Ordering::Relaxed);
        let is_store_healthy = self.engine.store().healthy();
        let is_ready = !draining && is_store_healthy;
        let detail = json!({
            "ready": is_ready,
            "draining": draining,
            "store": is_store_healthy,
            // Does not affect readiness, because most calls need no media storage.
            "storage": self.engine.storage_state().as_str(),
            "channels": self.engine.channel_states().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        });
        let status = if is_ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        reply(status, "application/json", detail.to_string())
    }

    fn is_authorised(&self, request: &Request<Incoming>) -> bool {
        let given = request
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        matches!((&self.token, given), (Some(token), Some(given)) if token.matches(given))
    }
}

fn refuse(failure: &Failure) -> Response<Full<Bytes>> {
    let status =
        StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply(
        status,
        "application/json",
        failure.write(Family::OpenAi, ""),
    )
}

fn reply(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
