//! Speaks for all sessions, one frame after the other, evenly spread over the time of a frame.
//!
//! It is a thread of its own: the runtime's timers are as coarse as a millisecond, and 500 sessions
//! would speak in bursts of 25. A thread that the machine held up goes on from there, and does not
//! make up for it: sessions of their own would not all speak at once either.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::tcp::OwnedWriteHalf;

use super::drive::LAST_ANSWERS;
use super::session::Counts;
use super::tally::Tally;
use crate::frame::{self, Kind, Sender};
use crate::topic::{FRAME_TIME, Stamped, UNSTAMPED, is_answered, stamp};

/// The code of a close that is meant.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
/// Between two looks at a socket that takes no more, or at answers that are still to come.
const REST: Duration = Duration::from_millis(1);
/// Later than this, what is still to be said moves back.
const LATE_MAX: Duration = Duration::from_micros(500);

/// The side of a session that speaks.
pub(super) struct Voice {
    pub(super) socket: OwnedWriteHalf,
    pub(super) counts: Arc<Counts>,
}

pub(super) struct Speaker {
    pub(super) voices: Vec<Voice>,
    pub(super) audio: Stamped,
    /// Stamps count from here.
    pub(super) epoch: Instant,
    pub(super) tally: Arc<Tally>,
}

impl Speaker {
    /// Speaks until the drive is over, waits for the last answers, and closes every session.
    pub(super) fn run(mut self) {
        if let Err(failure) = self.speak() {
            self.tally.note(&failure);
        }
        let over = Instant::now();
        while over.elapsed() < LAST_ANSWERS && !self.voices.iter().all(|it| it.counts.is_even()) {
            thread::sleep(REST);
        }
        let close = frame::write(Kind::Close, Sender::Client, &NORMAL);
        for voice in &self.voices {
            if let Err(failure) = send(&voice.socket, &close) {
                self.tally.note(&failure);
            }
        }
    }

    fn speak(&mut self) -> io::Result<()> {
        let sessions = u32::try_from(self.voices.len()).unwrap_or(u32::MAX);
        let mut round = self.epoch;
        let mut number = 0;
        while !self.voices.is_empty() {
            number += 1;
            for (voice, index) in self.voices.iter().zip(0..) {
                if self.tally.is_over() {
                    return Ok(());
                }
                let due = round + FRAME_TIME * index / sessions;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let late = due.elapsed();
                if late > LATE_MAX {
                    round += late;
                }
                let stamp = if is_answered(number, index.into()) {
                    voice.counts.asked.fetch_add(1, Ordering::Relaxed);
                    let now = self.epoch.elapsed().as_nanos();
                    stamp(u64::try_from(now).unwrap_or(u64::MAX))
                } else {
                    UNSTAMPED
                };
                send(&voice.socket, self.audio.with(stamp))?;
            }
            round += FRAME_TIME;
        }
        Ok(())
    }
}

/// Sends a frame; one who takes nothing for too long has failed.
fn send(socket: &OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    let started = Instant::now();
    while !bytes.is_empty() {
        match socket.try_write(bytes) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if started.elapsed() < LAST_ANSWERS => thread::sleep(REST),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    Ok(())
}
