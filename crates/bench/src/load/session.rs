//! One session of the load generator: its handshake, and the side of it that listens.

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
use crate::topic::{Stamped, Topic, nanos};
use crate::wire::{Head, Inbox};

const COMPLAINT_BYTES_MAX: usize = 300;

/// How many frames were sent that are answered, and how many answers came.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) asked: AtomicU64,
    answered: AtomicU64,
}

impl Counts {
    /// Whether nothing is under way.
    pub(super) fn is_even(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == self.answered.load(Ordering::Relaxed)
    }
}

pub(super) struct Session {
    socket: OwnedReadHalf,
    inbox: Inbox,
    answer: Stamped,
    counts: Arc<Counts>,
}

impl Session {
    /// Asks for a session with the head of a handshake, and returns when the upstream has spoken.
    /// Gives the other half too, to speak with.
    pub(super) async fn open(
        address: SocketAddr,
        head: String,
        topic: Topic,
    ) -> io::Result<(Self, OwnedWriteHalf)> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (socket, mut speaking) = socket.into_split();
        speaking.write_all(head.as_bytes()).await?;
        let mut session = Self {
            socket,
            inbox: Inbox::new(),
            answer: topic.answer(),
            counts: Arc::default(),
        };
        let head = loop {
            match Head::read(session.inbox.bytes())? {
                Some(head) => break head,
                None => session.fill().await?,
            }
        };
        if !session.inbox.bytes().starts_with(b"HTTP/1.1 101") {
            return Err(complaint(session.inbox.bytes()));
        }
        session.inbox.consume(head.length);
        let first = loop {
            match Frame::read(session.inbox.bytes())? {
                Some(frame) => break frame,
                None => session.fill().await?,
            }
        };
        session.inbox.consume(first.payload.end);
        Ok((session, speaking))
    }

    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Hears the answers, until the other side closes. Stamps count from `epoch`.
    pub(super) async fn listen(mut self, epoch: Instant, tally: Arc<Tally>) {
        if let Err(failure) = self.hear_out(epoch, &tally).await {
            tally.note(&failure);
        }
    }

    async fn hear_out(&mut self, epoch: Instant, tally: &Tally) -> io::Result<()> {
        loop {
            self.fill().await?;
            while let Some(frame) = Frame::read(self.inbox.bytes())? {
                match frame.kind {
                    Kind::Sign => {}
                    Kind::Close if self.counts.is_even() => return Ok(()),
                    Kind::Text | Kind::Binary | Kind::Close => self.take(&frame, epoch, tally)?,
                }
                self.inbox.consume(frame.payload.end);
            }
        }
    }

    fn take(&self, frame: &Frame, epoch: Instant, tally: &Tally) -> io::Result<()> {
        let bytes = self.inbox.bytes();
        let Some(asked) = self.answer.stamp_of(frame, bytes).and_then(nanos) else {
            return Err(complaint(&bytes[frame.payload.clone()]));
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
        match self.inbox.fill(&mut self.socket).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn complaint(bytes: &[u8]) -> io::Error {
    let shown = &bytes[..bytes.len().min(COMPLAINT_BYTES_MAX)];
    io::Error::other(String::from_utf8_lossy(shown).into_owned())
}
