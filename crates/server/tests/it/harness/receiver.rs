//! A receiver of callbacks and webhooks, which records its deliveries.

use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::request::read_request;
use super::wait::eventually;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Status(u16),
    Never,
}

/// A running receiver. It stops when dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
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
        let deliveries = Arc::default();
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, replies, Arc::clone(&deliveries)));
        Self {
            url,
            deliveries,
            _listening: listening,
        }
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap().clone()
    }

    /// Waits until there are this many deliveries, and returns them.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Delivery> {
        eventually("the deliveries", async || {
            let deliveries = self.deliveries();
            (deliveries.len() >= count).then_some(deliveries)
        })
        .await
    }
}

async fn listen(listener: TcpListener, replies: Vec<Reply>, deliveries: Arc<Mutex<Vec<Delivery>>>) {
    // Sockets that get no reply stay open.
    let mut silent = Vec::new();
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        let Some((head, body)) = read_request(&mut socket).await else {
            continue;
        };
        let reply = {
            let mut deliveries = deliveries.lock().unwrap();
            deliveries.push(Delivery { head, body });
            *replies
                .get(deliveries.len() - 1)
                .or(replies.last())
                .unwrap()
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
