//! Streamed answers: their events, when they are flushed, and callers that leave.

mod chat_stream;
mod client_gone;
mod flushing;
mod whole_answers;
