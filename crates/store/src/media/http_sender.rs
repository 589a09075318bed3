//! Sends HTTP requests to the media storage, with the same HTTP and TLS libraries as the rest of the gateway.
//!
//! `object_store` signs requests, parses answers and retries. This module only sends the requests.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Response, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::tls;

/// The time limit for connecting, including TLS.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The time limit from the first byte of a request, whose body may be several MiB, to the head of its answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);
const IDLE_MAX: Duration = Duration::from_secs(10);
const IDLE_COUNT_MAX: usize = 32;

/// Creates the clients that `object_store` asks for. All of them share one pool of connections.
#[derive(Clone)]
pub(super) struct HttpSender {
    tls: Arc<ClientConfig>,
    pool: Arc<Pool>,
}

type Pool = Mutex<Vec<Idle>>;

struct Idle {
    to: Target,
    sender: SendRequest<HttpRequestBody>,
    since: Instant,
}

/// The server to which a connection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    is_tls: bool,
    authority: Authority,
}

impl HttpSender {
    /// A client that trusts the public authorities and those in `ca_file`.
    pub(super) fn trusting(ca_file: Option<&Path>) -> Result<Self, String> {
        Ok(Self {
            tls: tls::trusting(ca_file)?,
            pool: Arc::default(),
        })
    }

    /// Takes an idle connection, or opens a new one.
    async fn connection(&self, to: &Target) -> Result<SendRequest<HttpRequestBody>, HttpError> {
        while let Some(mut waiting) = self.take(to) {
            // The connection is ready when its task has read the previous answer to the end.
            if let Ok(Ok(())) = timeout(CONNECT_MAX, waiting.ready()).await {
                return Ok(waiting);
            }
        }
        match timeout(CONNECT_MAX, self.connect(to)).await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(error)) => Err(HttpError::new(HttpErrorKind::Connect, error)),
            Err(late) => Err(HttpError::new(HttpErrorKind::Connect, late)),
        }
    }

    fn take(&self, to: &Target) -> Option<SendRequest<HttpRequestBody>> {
        let mut pool = self.pool.lock();
        pool.retain(|idle| idle.since.elapsed() < IDLE_MAX && !idle.sender.is_closed());
        let at = pool.iter().rposition(|idle| idle.to == *to)?;
        Some(pool.swap_remove(at).sender)
    }

    async fn connect(&self, to: &Target) -> io::Result<SendRequest<HttpRequestBody>> {
        let host = to.authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let default_port = if to.is_tls { 443 } else { 80 };
        let port = to.authority.port_u16().unwrap_or(default_port);
        let tcp = TcpStream::connect((bare, port)).await?;
        tcp.set_nodelay(true)?;
        if !to.is_tls {
            return begin(tcp).await;
        }
        let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        begin(connector.connect(name, tcp).await?).await
    }
}

/// Starts HTTP on a connection. Its background task ends with the connection.
async fn begin<S>(stream: S) -> io::Result<SendRequest<HttpRequestBody>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        // The sender reports the error to the task that awaits the answer.
        let _ = connection.await;
    });
    Ok(sender)
}

impl HttpConnector for HttpSender {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for HttpSender {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let to = Target::of(&mut request)?;
        let mut sender = self.connection(&to).await?;
        let response = match timeout(ANSWER_MAX, sender.send_request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(broken(error)),
            Err(late) => return Err(HttpError::new(HttpErrorKind::Timeout, late)),
        };
        let (head, body) = response.into_parts();
        let body = Answer {
            body,
            then: Some((to, sender)),
            pool: Arc::clone(&self.pool),
        };
        Ok(Response::from_parts(head, HttpResponseBody::new(body)))
    }
}

impl Target {
    /// Takes the server from a request and leaves only the path.
    fn of(request: &mut HttpRequest) -> Result<Self, HttpError> {
        let uri = std::mem::take(request.uri_mut()).into_parts();
        let unusable = || io::Error::from(io::ErrorKind::InvalidInput);
        let authority = uri.authority.ok_or_else(unusable);
        let authority = authority.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let path = uri.path_and_query.unwrap_or(PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        if !request.headers().contains_key(HOST) {
            let host = HeaderValue::from_str(authority.as_str());
            let host = host.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            request.headers_mut().insert(HOST, host);
        }
        Ok(Self {
            is_tls: uri.scheme != Some(Scheme::HTTP),
            authority,
        })
    }
}

/// The body of an answer. At its end, the connection becomes idle.
struct Answer {
    body: Incoming,
    then: Option<(Target, SendRequest<HttpRequestBody>)>,
    pool: Arc<Pool>,
}

impl Answer {
    fn return_to_pool(&mut self) {
        let Some((to, sender)) = self.then.take() else {
            return;
        };
        let mut pool = self.pool.lock();
        if pool.len() < IDLE_COUNT_MAX {
            let since = Instant::now();
            pool.push(Idle { to, sender, since });
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // A connection with a half-read answer cannot be reused.
        if self.body.is_end_stream() {
            self.return_to_pool();
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() {
            self.return_to_pool();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn broken(error: hyper::Error) -> HttpError {
    // The service may have closed an idle connection just as it was being reused.
    let is_closed = error.is_canceled() || error.is_closed() || error.is_incomplete_message();
    let kind = if is_closed {
        HttpErrorKind::Request
    } else if error.is_timeout() {
        HttpErrorKind::Timeout
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
}

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender").finish_non_exhaustive()
    }
}
