//! An upstream that sends a stream piece by piece, and each piece only when the test allows it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::request::read_request;

/// A running upstream. It stops when dropped.
#[derive(Debug)]
pub(crate) struct SteppedUpstream {
    pub(crate) address: SocketAddr,
    /// One permit for each piece that may be sent.
    steps: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl SteppedUpstream {
    /// Answers each request with these pieces of an event stream.
    pub(crate) async fn start(pieces: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let steps = Arc::new(Semaphore::new(0));
        let task = tokio::spawn(accept(listener, pieces, Arc::clone(&steps)));
        Self {
            address,
            steps,
            task,
        }
    }

    /// Allows the next piece to be sent.
    pub(crate) fn step(&self) {
        self.steps.add_permits(1);
    }
}

impl Drop for SteppedUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one connection at a time, because the tests make one call at a time.
async fn accept(listener: TcpListener, pieces: Vec<String>, steps: Arc<Semaphore>) {
    while let Ok((mut socket, _)) = listener.accept().await {
        // If the peer leaves early, the test notices it.
        let _ = serve(&mut socket, &pieces, &steps).await;
    }
}

async fn serve(
    socket: &mut TcpStream,
    pieces: &[String],
    steps: &Semaphore,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    socket.set_nodelay(true)?;
    // Read the whole request. Closing a socket with unread bytes would reset the connection, and the peer would lose
    // data that it has not read.
    read_request(socket).await.ok_or("the peer left")?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    for piece in pieces {
        steps.acquire().await?.forget();
        socket.write_all(piece.as_bytes()).await?;
    }
    socket.shutdown().await?;
    Ok(())
}
