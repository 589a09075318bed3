//! A test upstream that answers with exactly the bytes that a test provides, and only when the test allows it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::request::read_request;
use super::wait::within;

/// The public id of the model that this upstream serves.
pub(crate) const CANNED_MODEL: &str = "maker/canned";
/// The upstream's own name for [`CANNED_MODEL`].
pub(crate) const CANNED_NAME: &str = "hidden-name-1";

/// A running upstream. It stops when dropped.
#[derive(Debug)]
pub(crate) struct CannedUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    answer: Mutex<Vec<u8>>,
    is_open: watch::Sender<bool>,
    /// How many requests have arrived.
    bodies: watch::Sender<usize>,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl CannedUpstream {
    /// Answers every request with a JSON body.
    pub(crate) async fn json(body: &str) -> Self {
        Self::start("application/json", body, true).await
    }

    /// Answers every request with an event stream.
    pub(crate) async fn stream(body: &str) -> Self {
        Self::start("text/event-stream", body, true).await
    }

    /// Answers with a JSON body, but not before [`CannedUpstream::release_answers`].
    pub(crate) async fn paused(body: &str) -> Self {
        Self::start("application/json", body, false).await
    }

    /// Answers with an event stream in one piece, and never ends the body.
    pub(crate) async fn unending_stream(body: &str) -> Self {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
        Self::answering(
            format!("{head}\r\n\r\n{:x}\r\n{body}\r\n", body.len()),
            true,
        )
        .await
    }

    async fn start(content_type: &str, body: &str, is_open: bool) -> Self {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}");
        Self::answering(format!("{head}\r\n\r\n{body}"), is_open).await
    }

    async fn answering(answer: String, is_open: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answer: Mutex::new(answer.into_bytes()),
            is_open: watch::Sender::new(is_open),
            bodies: watch::Sender::new(0),
            kept: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            task,
        }
    }

    /// Configuration entries for this upstream and its model, with the prices of the test gateway's own model.
    pub(crate) fn entries(&self) -> String {
        self.entries_of(
            "text",
            r#"{ input = "1.25", cached_input = "0.125", output = "10" }"#,
            "{ context_tokens = 400000, max_output_tokens = 128000 }",
        )
    }

    /// Like `entries`, for a model of another kind.
    pub(crate) fn entries_of(&self, kind: &str, price: &str, profile: &str) -> String {
        format!(
            "[[channel]]
            name = \"canned\"
            preset = \"sim\"
            base_url = \"http://{}/v1\"
            [[model]]
            id = \"{CANNED_MODEL}\"
            kind = \"{kind}\"
            routes = [{{ channel = \"canned\", model = \"{CANNED_NAME}\" }}]
            price = {price}
            profile = {profile}",
            self.address
        )
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer to all further requests.
    pub(crate) fn answers(&self, status: u16, content_type: &str, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} Told\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        *self.shared.answer.lock().unwrap() = answer.into_bytes();
    }

    pub(crate) fn release_answers(&self) {
        self.shared.is_open.send_replace(true);
    }

    pub(crate) fn pause_answers(&self) {
        self.shared.is_open.send_replace(false);
    }

    /// Waits until this many requests have arrived.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let mut bodies = self.shared.bodies.subscribe();
        within("the requests", bodies.wait_for(|arrived| *arrived >= count))
            .await
            .unwrap();
    }

    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        self.shared.kept.lock().unwrap().clone()
    }
}

impl Drop for CannedUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            return;
        };
        connections.spawn(serve(socket, Arc::clone(&shared)));
    }
}

/// Serves the requests of one connection one after the other, until the peer closes it.
async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    let mut open = shared.is_open.subscribe();
    let _ = socket.set_nodelay(true);
    while let Some((_, body)) = read_request(&mut socket).await {
        shared.kept.lock().unwrap().push(body);
        shared.bodies.send_modify(|count| *count += 1);
        if open.wait_for(|is_open| *is_open).await.is_err() {
            return;
        }
        let answer = shared.answer.lock().unwrap().clone();
        if socket.write_all(&answer).await.is_err() {
            return;
        }
    }
}
