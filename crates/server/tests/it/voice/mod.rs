//! Tests of speech, transcripts and realtime sessions.

mod sockets;
mod speech;
mod transcript;
