//! Speech, transcripts and realtime sessions.

mod sockets;
mod speech;
mod transcript;
