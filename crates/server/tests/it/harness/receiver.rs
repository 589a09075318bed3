//! A receiver of callbacks and webhooks, which records its deliveries.

use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::request::read_request;
use super::wait::eventually;

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// How a delivery is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Status(u16),
    Never,
}

/// A running receiver. It stops when dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    told: Arc<Mutex<Vec<Told>>>,
    _listening: JoinSet<()>,
}

impl Receiver {
    /// Answers with each status in turn, and repeats the last one.
    pub(crate) async fn start(statuses: &[u16]) -> Self {
        Self::replying(statuses.iter().copied().map(Reply::Status).collect()).await
    }

    /// Answers with each reply in turn, and repeats the last one.
    pub(crate) async fn replying(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/told?token=t", listener.local_addr().unwrap());
        let told = Arc::default();
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, replies, Arc::clone(&told)));
        Self {
            url,
            told,
            _listening: listening,
        }
    }

    /// All deliveries so far.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until there are this many deliveries, and returns them.
    pub(crate) async fn heard(&self, count: usize) -> Vec<Told> {
        eventually("the deliveries", async || {
            let told = self.told();
            (told.len() >= count).then_some(told)
        })
        .await
    }
}

async fn listen(listener: TcpListener, replies: Vec<Reply>, told: Arc<Mutex<Vec<Told>>>) {
    // Sockets that get no reply stay open.
    let mut silent = Vec::new();
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        let Some((head, body)) = read_request(&mut socket).await else {
            continue;
        };
        let reply = {
            let mut told = told.lock().unwrap();
            told.push(Told { head, body });
            *replies.get(told.len() - 1).or(replies.last()).unwrap()
        };
        match reply {
            Reply::Status(status) => answer(&mut socket, status).await,
            Reply::Never => silent.push(socket),
        }
    }
}

async fn answer(socket: &mut TcpStream, status: u16) {
    let answer =
        format!("HTTP/1.1 {status} x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
    let _ = socket.write_all(answer.as_bytes()).await;
}
