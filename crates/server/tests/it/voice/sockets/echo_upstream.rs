//! An upstream for sessions. It sends every frame back unchanged, freezes, or closes the session.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderMap;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::harness::eventually;

/// How the upstream treats a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionBehaviour {
    Echoes,
    /// Accepts the session and then neither reads nor writes.
    Freezes,
    /// Closes at the first frame, with a reason that identifies the upstream.
    Closes(u16),
}

/// The close reason. Callers may see only its first two words.
pub(super) const REASON: &str = "over at echo-secret-1 https://inner.example/x";

#[derive(Debug, Default)]
struct Seen {
    handshakes: Vec<(String, HeaderMap)>,
    is_over: bool,
    close: Option<CloseFrame>,
}

#[derive(Debug)]
pub(super) struct EchoUpstream {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _sessions: JoinSet<()>,
}

impl EchoUpstream {
    pub(super) async fn start(behaviour: SessionBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Seen>>::default();
        let mut sessions = JoinSet::new();
        let all = Arc::clone(&seen);
        sessions.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                open.spawn(hold(tcp, behaviour, Arc::clone(&all)));
            }
        });
        Self {
            address,
            seen,
            _sessions: sessions,
        }
    }

    /// Configuration entries for this upstream and its model.
    pub(super) fn entries(&self) -> String {
        format!(
            "[[channel]]
            name = \"echo\"
            preset = \"sim\"
            base_url = \"http://{}/v1\"
            credential = {{ file = \"upstream-key\" }}
            [[model]]
            id = \"maker/echo\"
            kind = \"audio\"
            routes = [{{ channel = \"echo\", model = \"echo-secret-1\" }}]
            price = {{ realtime_minute = \"0.06\", tts_stream_characters = \"15\", stt_stream_second = \"0.0001\" }}",
            self.address
        )
    }

    /// The target and the headers of the only handshake.
    pub(super) fn handshake(&self) -> (String, HeaderMap) {
        self.seen.lock().unwrap().handshakes[0].clone()
    }

    /// Waits until the gateway has closed the only session, and returns its close frame.
    pub(super) async fn closed(&self) -> Option<CloseFrame> {
        eventually("the upstream's session is closed", async || {
            let seen = self.seen.lock().unwrap();
            seen.is_over.then(|| seen.close.clone())
        })
        .await
    }
}

#[expect(clippy::result_large_err, reason = "the library's own shape")]
async fn hold(tcp: TcpStream, behaviour: SessionBehaviour, seen: Arc<Mutex<Seen>>) {
    let note = |request: &Request, response: Response| {
        let target = request.uri().to_string();
        let headers = request.headers().clone();
        seen.lock().unwrap().handshakes.push((target, headers));
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(tcp, note).await else {
        return;
    };
    if behaviour == SessionBehaviour::Freezes {
        return std::future::pending().await;
    }
    while let Some(Ok(message)) = socket.next().await {
        match (message, behaviour) {
            (Message::Close(close), _) => {
                seen.lock().unwrap().close = close;
            }
            (Message::Text(_) | Message::Binary(_), SessionBehaviour::Closes(code)) => {
                let frame = CloseFrame {
                    code: code.into(),
                    reason: REASON.into(),
                };
                let _ = socket.close(Some(frame)).await;
            }
            (message @ (Message::Text(_) | Message::Binary(_)), _) => {
                let _ = socket.send(message).await;
            }
            _ => {}
        }
    }
    seen.lock().unwrap().is_over = true;
}
