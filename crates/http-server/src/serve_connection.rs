//! Serves one connection with hyper, from its first byte to its last.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Context;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::connection::{Close, Connection, ConnectionWaker, MonitoredSocket, StreamExecutor};
use super::limits::{HEADERS_MAX, Limits, READ_BUFFER_BYTES};
use super::service;
use crate::tls::TlsAcceptor;

const H2_STREAMS_MAX: u32 = 250;

/// Serves the requests of a connection until it ends or is told to close.
pub(super) async fn serve_connection(
    socket: std::net::TcpStream,
    tls: Option<Arc<TlsAcceptor>>,
    connection: Connection,
    executor: StreamExecutor,
) {
    let Ok(socket) = TcpStream::from_std(socket) else {
        return;
    };
    match tls {
        None => serve(socket, connection, executor).await,
        // Boxed, so that the tasks of connections without TLS stay small.
        Some(tls) => Box::pin(serve_tls(socket, tls, connection, executor)).await,
    }
}

/// Performs the handshake within the time limit of a request head, and serves the connection.
async fn serve_tls(
    socket: TcpStream,
    tls: Arc<TlsAcceptor>,
    connection: Connection,
    executor: StreamExecutor,
) {
    let accepted = tokio::select! {
        accepted = tls.accept(socket) => accepted,
        _ = connection.slot.told_to_close() => return,
    };
    match accepted {
        Ok(socket) => serve(socket, connection, executor).await,
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: Connection,
    executor: StreamExecutor,
) {
    let connection = Arc::new(connection);
    let io = TokioIo::new(MonitoredSocket::new(
        socket,
        Arc::clone(&connection.timers),
        Arc::clone(&connection.refused),
    ));
    let builder = builder(&connection.listener.limits, executor);
    let of_requests = Arc::clone(&connection);
    let service = service_fn(move |request| service::serve(Arc::clone(&of_requests), request));
    let mut exchange = std::pin::pin!(builder.serve_connection_with_upgrades(io, service));
    let mut waker = ConnectionWaker::default();
    loop {
        let served = poll_fn(|cx| {
            let cx = &mut Context::from_waker(waker.of(cx.waker()));
            exchange.as_mut().poll(cx)
        });
        tokio::select! {
            // Poll the connection first, so that a request that has already arrived is still served.
            biased;
            _ = served => return,
            close = connection.slot.told_to_close() => match close {
                Close::AfterRequest => exchange.as_mut().graceful_shutdown(),
                Close::Now => return,
            },
        }
    }
}

fn builder(limits: &Limits, executor: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        // The sweep closes connections with slow heads, so that no request needs a timer.
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
