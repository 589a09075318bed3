//! The upstream's side of a session. It answers stamped audio frames immediately.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::frame::{self, Frame, Kind, Sender};
use crate::session_frames::SessionKind;
use crate::wire::{ReadBuffer, header, target};

/// A session that a client requests.
pub(crate) struct UpstreamSession {
    kind: SessionKind,
    /// The value of `sec-websocket-accept`.
    accept: String,
}

impl UpstreamSession {
    /// Reads a handshake; `None` if the request is not one.
    pub(crate) fn requested_by(head: &[u8]) -> Option<Self> {
        let key = header(head, b"sec-websocket-key:")?;
        let kind = SessionKind::of_target(str::from_utf8(target(head)).ok()?)?;
        Some(Self {
            kind,
            accept: derive_accept_key(key),
        })
    }

    /// Accepts the handshake and answers frames until the client closes or disconnects.
    pub(crate) async fn hold(
        self,
        mut socket: TcpStream,
        mut buffer: ReadBuffer,
    ) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: {}\r\n\r\n",
            self.accept
        );
        let opening = [head.as_bytes(), &self.kind.opening()].concat();
        socket.write_all(&opening).await?;
        let audio = self.kind.audio();
        let mut answer = self.kind.answer();
        loop {
            while let Some(frame) = Frame::read(buffer.bytes())? {
                if frame.kind == Kind::Close {
                    let code: [u8; 2] = frame.piece(buffer.bytes(), 0).unwrap_or_default();
                    let close = frame::write(Kind::Close, Sender::Server, &code);
                    return socket.write_all(&close).await;
                }
                if let Some(stamp) = audio.stamp_of(&frame, buffer.bytes()) {
                    socket.write_all(answer.with(stamp)).await?;
                }
                buffer.consume(frame.payload.end);
            }
            if buffer.fill(&mut socket).await? == 0 {
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
        // The key and the accept value are those of RFC 6455, section 1.3.
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
            let session = UpstreamSession::requested_by(head.as_bytes());
            assert_eq!(session.map(|it| it.accept).as_deref(), accept, "{head}");
        }
    }
}
