//! A session's socket, with the faults of its script.

use crate::fault::{How, Stop};
use crate::told::Talked;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// What the peer said.
pub(super) enum Said {
    Event(Value),
    /// So many bytes.
    Audio(usize),
}

/// The session is over.
pub(super) struct Over;

pub(super) struct Talk<S> {
    socket: WebSocketStream<S>,
    stop: Option<Stop>,
    pub(super) talked: Talked,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    pub(super) fn new(socket: WebSocketStream<S>, stop: Option<Stop>) -> Self {
        Self {
            socket,
            stop,
            talked: Talked::default(),
        }
    }

    /// The next event or audio of the peer.
    pub(super) async fn next(&mut self) -> Result<Said, Over> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    // A script cuts the session off at the first thing that is said.
                    match self.stop.map(|stop| stop.how) {
                        Some(How::Hang) => std::future::pending().await,
                        Some(_) => return Err(Over),
                        None => {}
                    }
                    let event = serde_json::from_str(&text).unwrap_or(Value::Null);
                    return Ok(Said::Event(event));
                }
                Some(Ok(Message::Binary(audio))) => return Ok(Said::Audio(audio.len())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(Over),
            }
        }
    }

    pub(super) async fn say(&mut self, event: Value) -> Result<(), Over> {
        let message = Message::text(event.to_string());
        self.socket.send(message).await.map_err(|_| Over)
    }

    pub(super) async fn sound(&mut self, audio: Vec<u8>) -> Result<(), Over> {
        let message = Message::binary(audio);
        self.socket.send(message).await.map_err(|_| Over)
    }

    pub(super) async fn close(&mut self) {
        let frame = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        if self.socket.close(Some(frame)).await.is_ok() {
            while let Some(Ok(_)) = self.socket.next().await {}
        }
    }
}
