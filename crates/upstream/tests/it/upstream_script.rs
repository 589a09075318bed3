//! A scripted upstream that sends raw bytes on a loopback socket.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use protocol::Dialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use upstream::{Channel, ChannelSpec, Endpoint, Secret, Timeouts, UpstreamRequest};

pub(crate) const SECRET: &str = "sk-upstream-secret";

pub(crate) fn channel_to(base_url: &str, timeouts: Timeouts) -> Channel {
    let spec = ChannelSpec {
        name: "test".to_owned(),
        preset: "sim".parse().unwrap(),
        base_url: Some(base_url.to_owned()),
        credential: Some(Secret::new(SECRET)),
        account: upstream::Account::default(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    };
    Channel::new(spec, timeouts).unwrap()
}

/// A listener and a channel that calls it.
pub(crate) async fn upstream() -> (TcpListener, Channel) {
    upstream_within(Timeouts::default()).await
}

pub(crate) async fn upstream_within(timeouts: Timeouts) -> (TcpListener, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, channel_to(&base_url, timeouts))
}

pub(crate) fn seconds(connect: u64, first_byte: u64, idle: u64, total: u64) -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(connect),
        first_byte: Duration::from_secs(first_byte),
        idle: Duration::from_secs(idle),
        total: Duration::from_secs(total),
    }
}

pub(crate) fn call(body: &'static str) -> UpstreamRequest {
    call_with(Bytes::from_static(body.as_bytes()))
}

pub(crate) fn call_with(body: Bytes) -> UpstreamRequest {
    let endpoint = Endpoint::Text {
        dialect: Dialect::Chat,
        stream: false,
    };
    UpstreamRequest::json(endpoint, "m", vec![body])
}

/// The upstream's side of one connection.
pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        Self(listener.accept().await.unwrap().0)
    }

    /// Reads one request with its body and returns it as text.
    pub(crate) async fn request(&mut self) -> String {
        let mut text = Vec::new();
        loop {
            let found = text.windows(4).position(|it| it == b"\r\n\r\n");
            if let Some(end) = found {
                let head = String::from_utf8(text[..end].to_vec()).unwrap();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |length| length.parse().unwrap());
                if text.len() == end + 4 + length {
                    return String::from_utf8(text).unwrap();
                }
                assert!(text.len() < end + 4 + length, "more than one request");
            }
            assert_ne!(self.0.read_buf(&mut text).await.unwrap(), 0, "closed");
        }
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn closed(&mut self) {
        let mut rest = [0; 1];
        // A reset counts as a close.
        assert!(!matches!(self.0.read(&mut rest).await, Ok(1..)));
    }

    pub(crate) fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }
}

/// Runs the upstream and the client, and returns the client's result.
pub(crate) async fn both<T>(
    server: impl Future<Output = ()>,
    client: impl Future<Output = T>,
) -> T {
    tokio::join!(server, client).1
}

/// Yields until the other tasks have run and the runtime has polled the sockets.
pub(crate) async fn yield_to_others() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
