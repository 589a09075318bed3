//! An HTTP/2 client that controls how many bytes the server may send.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;

use super::test_gateway::Key;
use super::wait::within;

/// One connection, which carries any number of calls.
#[derive(Debug, Clone)]
pub(crate) struct Http2(SendRequest<Full<Bytes>>);

impl Http2 {
    /// Connects with a flow-control window of this many bytes for each answer.
    pub(crate) async fn open(address: SocketAddr, window_bytes: u32) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window_bytes)
            .initial_connection_window_size(1 << 20)
            .handshake(TokioIo::new(socket))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a chat call and returns the head of its answer. The body is read on demand.
    pub(crate) async fn chat(&self, key: &Key, body: &Value) -> http::Response<Incoming> {
        let request = http::Request::post("http://gateway/v1/chat/completions")
            .header("authorization", format!("Bearer {}", key.secret))
            .header("content-type", "application/json")
            .body(Full::from(body.to_string()))
            .unwrap();
        self.send(request).await
    }

    /// Sends a request without a body and returns the head of its answer.
    pub(crate) async fn ask(
        &self,
        method: &str,
        target: &str,
        key: &Key,
    ) -> http::Response<Incoming> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://gateway{target}"))
            .header("authorization", format!("Bearer {}", key.secret))
            .body(Full::default())
            .unwrap();
        self.send(request).await
    }

    pub(crate) async fn send(
        &self,
        request: http::Request<Full<Bytes>>,
    ) -> http::Response<Incoming> {
        let mut sender = self.0.clone();
        within("a place", sender.ready()).await.unwrap();
        within("an answer", sender.send_request(request))
            .await
            .unwrap()
    }
}

/// The remaining body of an answer, or the error if the stream was reset.
pub(crate) async fn take_rest(answer: http::Response<Incoming>) -> Result<Bytes, hyper::Error> {
    let body = within("an answer", answer.into_body().collect()).await?;
    Ok(body.to_bytes())
}
