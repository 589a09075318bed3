//! The upstream's side of a session: it listens, and answers stamped frames of audio at once.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::frame::{self, Frame, Kind, Sender};
use crate::topic::Topic;
use crate::wire::{Inbox, header, target};

/// A session that a request asks for.
pub(crate) struct Session {
    topic: Topic,
    /// The proof that the handshake was understood.
    accept: String,
}

impl Session {
    /// `None` where the head is that of another request.
    pub(crate) fn asked_for(head: &[u8]) -> Option<Self> {
        let key = header(head, b"sec-websocket-key:")?;
        let topic = Topic::of_target(str::from_utf8(target(head)).ok()?)?;
        Some(Self {
            topic,
            accept: derive_accept_key(key),
        })
    }

    /// Switches, and answers until the other side closes or leaves.
    pub(crate) async fn hold(self, mut socket: TcpStream, mut inbox: Inbox) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: {}\r\n\r\n",
            self.accept
        );
        let opening = [head.as_bytes(), &self.topic.opening()].concat();
        socket.write_all(&opening).await?;
        let audio = self.topic.audio();
        let mut answer = self.topic.answer();
        loop {
            while let Some(frame) = Frame::read(inbox.bytes())? {
                if frame.kind == Kind::Close {
                    let code: [u8; 2] = frame.piece(inbox.bytes(), 0).unwrap_or_default();
                    let close = frame::write(Kind::Close, Sender::Server, &code);
                    return socket.write_all(&close).await;
                }
                if let Some(stamp) = audio.stamp_of(&frame, inbox.bytes()) {
                    socket.write_all(answer.with(stamp)).await?;
                }
                inbox.consume(frame.payload.end);
            }
            if inbox.fill(&mut socket).await? == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handshake_asks_for_a_session() {
        // The key and its proof are those of RFC 6455, section 1.3.
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        for (target, lines, accept) in [
            (
                "/v1/realtime?model=x",
                key,
                Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ),
            ("/v1/realtime?model=x", "", None),
            ("/v1/chat/completions", key, None),
        ] {
            let head = format!("GET {target} HTTP/1.1\r\nhost: x\r\n{lines}\r\n");
            let session = Session::asked_for(head.as_bytes());
            assert_eq!(session.map(|it| it.accept).as_deref(), accept, "{head}");
        }
    }
}
