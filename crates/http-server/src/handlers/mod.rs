//! Request handlers: `dispatch` chooses the handler, which reads the request and calls the engine.

mod catalog;
mod dispatch;
mod embeddings;
mod images;
mod media;
mod output;
mod page;
mod range;
mod tasks;
mod text;
mod voice;
mod websocket;

pub(super) use dispatch::dispatch;
pub(super) use media::MediaReply;
pub(super) use output::Output;
pub(super) use websocket::WebSocketUpgrade;
