//! One session of the load generator: the handshake and the reading side.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::tally::Tally;
use crate::frame::{Frame, Kind};
use crate::session_frames::{SessionKind, Stamped, nanos};
use crate::wire::{Head, ReadBuffer};

const ERROR_BYTES_MAX: usize = 300;

/// Counts the frames that expect an answer and the answers received.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) asked: AtomicU64,
    answered: AtomicU64,
}

impl Counts {
    pub(super) fn are_all_answered(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == self.answered.load(Ordering::Relaxed)
    }
}

pub(super) struct Session {
    socket: OwnedReadHalf,
    buffer: ReadBuffer,
    answer: Stamped,
    counts: Arc<Counts>,
}

impl Session {
    /// Sends a handshake and waits for the first frame of the upstream. Returns the session and the
    /// writing half.
    pub(super) async fn open(
        address: SocketAddr,
        head: String,
        kind: SessionKind,
    ) -> io::Result<(Self, OwnedWriteHalf)> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (socket, mut speaking) = socket.into_split();
        speaking.write_all(head.as_bytes()).await?;
        let mut session = Self {
            socket,
            buffer: ReadBuffer::new(),
            answer: kind.answer(),
            counts: Arc::default(),
        };
        let head = loop {
            match Head::read(session.buffer.bytes())? {
                Some(head) => break head,
                None => session.fill().await?,
            }
        };
        if !session.buffer.bytes().starts_with(b"HTTP/1.1 101") {
            return Err(error_of(session.buffer.bytes()));
        }
        session.buffer.consume(head.length);
        let first = loop {
            match Frame::read(session.buffer.bytes())? {
                Some(frame) => break frame,
                None => session.fill().await?,
            }
        };
        session.buffer.consume(first.payload.end);
        Ok((session, speaking))
    }

    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Reads the answers until the server closes. Timestamps in frames count from `epoch`.
    pub(super) async fn listen(mut self, epoch: Instant, tally: Arc<Tally>) {
        if let Err(failure) = self.read_answers(epoch, &tally).await {
            tally.record_failure(&failure);
        }
    }

    async fn read_answers(&mut self, epoch: Instant, tally: &Tally) -> io::Result<()> {
        loop {
            self.fill().await?;
            while let Some(frame) = Frame::read(self.buffer.bytes())? {
                match frame.kind {
                    Kind::PingOrPong => {}
                    Kind::Close if self.counts.are_all_answered() => return Ok(()),
                    Kind::Text | Kind::Binary | Kind::Close => self.take(&frame, epoch, tally)?,
                }
                self.buffer.consume(frame.payload.end);
            }
        }
    }

    fn take(&self, frame: &Frame, epoch: Instant, tally: &Tally) -> io::Result<()> {
        let bytes = self.buffer.bytes();
        let Some(asked) = self.answer.stamp_of(frame, bytes).and_then(nanos) else {
            return Err(error_of(&bytes[frame.payload.clone()]));
        };
        if tally.is_measured() {
            let took = epoch.elapsed().saturating_sub(Duration::from_nanos(asked));
            tally.record(took);
        }
        if self.counts.answered.fetch_add(1, Ordering::Relaxed) == 0 {
            tally.clients_answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.buffer.fill(&mut self.socket).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn error_of(bytes: &[u8]) -> io::Error {
    let shown = &bytes[..bytes.len().min(ERROR_BYTES_MAX)];
    io::Error::other(String::from_utf8_lossy(shown).into_owned())
}
