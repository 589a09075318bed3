//! Tests of streamed answers: events, flushing, and callers that leave.

mod chat_stream;
mod client_gone;
mod early_streams;
mod flushing;
mod whole_answers;
