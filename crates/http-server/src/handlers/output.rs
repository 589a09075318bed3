//! The type of a handler's result.

use super::media::MediaReply;
use super::websocket::WebSocketUpgrade;

/// The result of a handler, which `response` turns into an answer.
pub(crate) enum Output {
    Document(Vec<u8>),
    /// An answer of the engine, which may be a stream.
    Answer(engine::Answer),
    WebSocket(Box<WebSocketUpgrade>),
    Media(MediaReply),
    /// A page or one of its files.
    File(http::Response<bytes::Bytes>),
}
