//! Each endpoint: reads its request, calls the engine, and returns what to answer.

pub(super) mod catalog;
pub(super) mod media;
mod range;
pub(super) mod tasks;
pub(super) mod voice;
pub(super) mod websocket;
