//! Wraps the socket of a session, and breaks the session off if its script says so.

use crate::fault::{BreakKind, BreakOff};
use crate::true_usage::SessionUsage;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

pub(super) enum PeerMessage {
    Event(Value),
    /// Audio, of this many bytes.
    Audio(usize),
}

pub(super) struct SessionOver;

pub(super) struct SessionSocket<S> {
    socket: WebSocketStream<S>,
    stop: Option<BreakOff>,
    pub(super) usage: SessionUsage,
}

impl<S: AsyncRead + AsyncWrite + Unpin> SessionSocket<S> {
    pub(super) fn new(socket: WebSocketStream<S>, stop: Option<BreakOff>) -> Self {
        Self {
            socket,
            stop,
            usage: SessionUsage::default(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<PeerMessage, SessionOver> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    // With a break in the script, the session ends or hangs at the first text message from the peer.
                    match self.stop.map(|stop| stop.how) {
                        Some(BreakKind::Hang) => std::future::pending().await,
                        Some(_) => return Err(SessionOver),
                        None => {}
                    }
                    let event = serde_json::from_str(&text).unwrap_or(Value::Null);
                    return Ok(PeerMessage::Event(event));
                }
                Some(Ok(Message::Binary(audio))) => return Ok(PeerMessage::Audio(audio.len())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(SessionOver),
            }
        }
    }

    pub(super) async fn send_event(&mut self, event: Value) -> Result<(), SessionOver> {
        let message = Message::text(event.to_string());
        self.socket.send(message).await.map_err(|_| SessionOver)
    }

    pub(super) async fn send_audio(&mut self, audio: Vec<u8>) -> Result<(), SessionOver> {
        let message = Message::binary(audio);
        self.socket.send(message).await.map_err(|_| SessionOver)
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
