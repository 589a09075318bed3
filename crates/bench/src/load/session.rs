//! One session of the load generator.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Interval, interval_at};

use super::tally::Tally;
use crate::frame::{self, Frame, Kind, Sender};
use crate::topic::{FRAME_TIME, Stamped, Topic, nanos, stamp};
use crate::wire::{Head, Inbox};

const COMPLAINT_BYTES_MAX: usize = 300;
/// The code of a close that is meant.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

pub(super) struct Session {
    socket: TcpStream,
    inbox: Inbox,
    topic: Topic,
}

impl Session {
    /// Asks for a session with the head of a handshake, and returns when the upstream has spoken.
    pub(super) async fn open(address: SocketAddr, head: String, topic: Topic) -> io::Result<Self> {
        let mut socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        socket.write_all(head.as_bytes()).await?;
        let mut session = Self {
            socket,
            inbox: Inbox::new(),
            topic,
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
        let first = session.frame().await?;
        session.inbox.consume(first.payload.end);
        Ok(session)
    }

    /// Speaks from `start` until the drive is over, hears the answers out, and closes.
    pub(super) async fn speak(mut self, start: Instant, epoch: Instant, tally: Arc<Tally>) {
        let mut speech = Speech {
            audio: self.topic.audio(),
            answer: self.topic.answer(),
            ticks: interval_at(start.into(), FRAME_TIME),
            epoch,
            unanswered: 0,
        };
        let spoken = match speech.run(&mut self, &tally).await {
            Ok(()) => self.close().await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = spoken {
            tally.note(&failure);
        }
    }

    /// Closes, and reads until the other side has closed too.
    async fn close(&mut self) -> io::Result<()> {
        let close = frame::write(Kind::Close, Sender::Client, &NORMAL);
        self.socket.write_all(&close).await?;
        loop {
            let frame = self.frame().await?;
            if frame.kind == Kind::Close {
                return Ok(());
            }
            self.inbox.consume(frame.payload.end);
        }
    }

    async fn frame(&mut self) -> io::Result<Frame> {
        loop {
            match Frame::read(self.inbox.bytes())? {
                Some(frame) => return Ok(frame),
                None => self.fill().await?,
            }
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.inbox.fill(&mut self.socket).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Frames are sent when they are due, whether or not the last ones were answered.
struct Speech {
    audio: Stamped,
    answer: Stamped,
    ticks: Interval,
    epoch: Instant,
    unanswered: u64,
}

impl Speech {
    async fn run(&mut self, session: &mut Session, tally: &Tally) -> io::Result<()> {
        let mut was_answered = false;
        loop {
            let is_over = tally.is_over();
            if is_over && self.unanswered == 0 {
                return Ok(());
            }
            tokio::select! {
                _ = self.ticks.tick(), if !is_over => {
                    let now = stamp(self.since_epoch());
                    session.socket.write_all(self.audio.with(now)).await?;
                    self.unanswered += 1;
                }
                filled = session.fill() => {
                    filled?;
                    self.hear(&mut session.inbox, tally)?;
                    if !was_answered {
                        was_answered = true;
                        tally.clients_answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn hear(&mut self, inbox: &mut Inbox, tally: &Tally) -> io::Result<()> {
        while let Some(frame) = Frame::read(inbox.bytes())? {
            if frame.kind != Kind::Sign {
                let stamp = self.answer.stamp_of(&frame, inbox.bytes()).and_then(nanos);
                let Some(asked) = stamp else {
                    return Err(complaint(&inbox.bytes()[frame.payload]));
                };
                self.unanswered = self.unanswered.saturating_sub(1);
                if tally.is_measured() {
                    let took = self.since_epoch().saturating_sub(asked);
                    tally.record(Duration::from_nanos(took));
                }
            }
            inbox.consume(frame.payload.end);
        }
        Ok(())
    }

    fn since_epoch(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn complaint(bytes: &[u8]) -> io::Error {
    let shown = &bytes[..bytes.len().min(COMPLAINT_BYTES_MAX)];
    io::Error::other(String::from_utf8_lossy(shown).into_owned())
}
