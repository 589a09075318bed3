//! The baseline: a proxy that only forwards bytes.
//!
//! A hyper server and a pooled hyper-util client, both with `TCP_NODELAY`, run on tokio's multi-threaded runtime. The
//! allocator and the number of threads are the gateway's, because the gateway's cost is stated as a multiple of this
//! proxy's cost. After a handshake, the bytes of a session are copied in both directions without parsing frames.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::copy_bidirectional;
use tokio::net::TcpListener;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where to forward to.
    #[arg(long)]
    upstream: SocketAddr,
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

pub(crate) async fn serve(args: Args) -> io::Result<()> {
    let listener = TcpListener::bind(args.listen).await?;
    crate::process::announce(listener.local_addr()?, args.until_stdin_closes)?;
    let proxy = Arc::new(Proxy::new(args.upstream)?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let proxy = Arc::clone(&proxy);
                async move { Ok::<_, Infallible>(proxy.forward(request).await) }
            });
            // If a client disconnects, only its own connection ends.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .with_upgrades()
                .await;
        });
    }
}

struct Proxy {
    client: Client<HttpConnector, Incoming>,
    authority: Authority,
    host: HeaderValue,
}

impl Proxy {
    fn new(upstream: SocketAddr) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let name = upstream.to_string();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            authority: name.parse().map_err(io::Error::other)?,
            host: name.parse().map_err(io::Error::other)?,
        })
    }

    async fn forward(
        &self,
        mut request: Request<Incoming>,
    ) -> Response<Either<Incoming, Empty<Bytes>>> {
        *request.uri_mut() = self.target(request.uri());
        request.headers_mut().insert(HOST, self.host.clone());
        let client = if request.headers().contains_key(UPGRADE) {
            Some(hyper::upgrade::on(&mut request))
        } else {
            request.headers_mut().remove(CONNECTION);
            None
        };
        let Ok(mut response) = self.client.request(request).await else {
            return bad_gateway();
        };
        if let Some(client) = client
            && response.status() == StatusCode::SWITCHING_PROTOCOLS
        {
            tokio::spawn(copy(client, hyper::upgrade::on(&mut response)));
        }
        response.map(Either::Left)
    }

    fn target(&self, asked: &Uri) -> Uri {
        let mut parts = hyper::http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        let path = asked.path_and_query().cloned();
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        Uri::from_parts(parts).expect("a scheme, an authority and a path make a URI")
    }
}

/// Copies bytes in both directions until both sides have ended or one has failed.
async fn copy(client: OnUpgrade, upstream: OnUpgrade) {
    if let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) {
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let _ = copy_bidirectional(&mut client, &mut upstream).await;
    }
}

fn bad_gateway() -> Response<Either<Incoming, Empty<Bytes>>> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
