//! A TCP proxy between a store and its database, which can simulate failures.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How the proxy treats connections and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Open connections are closed, and new ones are closed at once.
    Cut,
    /// Connections stay open, but nothing passes.
    BlackHole,
    /// Each piece is delayed by this time.
    Slow(Duration),
    /// The next piece with these bytes is forwarded to the server. The server's answer contains them too, and is not
    /// forwarded: the connection is closed instead. After that, bytes pass again.
    LoseAnswerTo(&'static [u8]),
    /// The next piece with these bytes is not forwarded to the server. Open connections are closed instead, and new
    /// ones are closed at once.
    CutBefore(&'static [u8]),
}

#[derive(Debug)]
pub(crate) struct FaultyProxy {
    address: SocketAddr,
    mode: Arc<watch::Sender<Mode>>,
    lost: Arc<Mutex<u32>>,
    turned_away: Arc<AtomicU32>,
}

impl FaultyProxy {
    /// Starts a proxy in front of a server.
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mode = Arc::new(watch::Sender::new(Mode::Pass));
        let lost = Arc::new(Mutex::new(0));
        let turned_away = Arc::new(AtomicU32::new(0));
        let (to, count) = (Arc::clone(&mode), Arc::clone(&lost));
        let away = Arc::clone(&turned_away);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *to.borrow() == Mode::Cut {
                    away.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                tokio::spawn(relay(client, server, Arc::clone(&to), Arc::clone(&count)));
            }
        });
        Self {
            address,
            mode,
            lost,
            turned_away,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// The number of connections that were refused.
    pub(crate) fn turned_away(&self) -> u32 {
        self.turned_away.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u32 {
        *self.lost.lock()
    }
}

async fn relay(
    client: TcpStream,
    server: SocketAddr,
    mode: Arc<watch::Sender<Mode>>,
    lost: Arc<Mutex<u32>>,
) {
    let Ok(upstream) = TcpStream::connect(server).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = upstream.into_split();
    let unanswered = Arc::new(Mutex::new(None));
    let there = {
        let (mode, unanswered) = (Arc::clone(&mode), Arc::clone(&unanswered));
        async move {
            let mut piece = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = from_client.read(&mut piece).await {
                let bytes = &piece[..count];
                wait(&mode).await;
                let now = *mode.borrow();
                if let Mode::CutBefore(needle) = now
                    && contains(bytes, needle)
                {
                    *lost.lock() += 1;
                    mode.send_replace(Mode::Cut);
                    return;
                }
                if let Mode::LoseAnswerTo(needle) = now
                    && contains(bytes, needle)
                {
                    *unanswered.lock() = Some(needle);
                    *lost.lock() += 1;
                    mode.send_replace(Mode::Pass);
                }
                if to_server.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    };
    let back = {
        let mode = Arc::clone(&mode);
        async move {
            let mut piece = vec![0; 64 * 1024];
            let mut kept_back = Vec::new();
            while let Ok(count @ 1..) = from_server.read(&mut piece).await {
                if let Some(needle) = *unanswered.lock() {
                    // The answer proves that the server has run the statement, regardless of how long that took.
                    kept_back.extend_from_slice(&piece[..count]);
                    if contains(&kept_back, needle) {
                        return;
                    }
                    continue;
                }
                wait(&mode).await;
                if to_client.write_all(&piece[..count]).await.is_err() {
                    return;
                }
            }
        }
    };
    let mut watched = mode.subscribe();
    let cut = async { drop(watched.wait_for(|mode| *mode == Mode::Cut).await) };
    tokio::select! {
        () = there => {}
        () = back => {}
        () = cut => {}
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// Waits as long as the mode requires.
async fn wait(mode: &watch::Sender<Mode>) {
    let now = *mode.borrow();
    match now {
        Mode::Slow(time) => tokio::time::sleep(time).await,
        Mode::BlackHole => {
            let mut watched = mode.subscribe();
            drop(watched.wait_for(|mode| *mode != Mode::BlackHole).await);
        }
        Mode::Pass | Mode::Cut | Mode::LoseAnswerTo(_) | Mode::CutBefore(_) => {}
    }
}
