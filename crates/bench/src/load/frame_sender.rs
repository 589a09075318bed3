//! Sends the frames of all sessions, spread evenly over the duration of a frame.
//!
//! The sender has its own thread, because the runtime's timers have a resolution of one millisecond: 500 sessions would
//! send in bursts of 25. When the machine delays the thread, the schedule shifts and does not catch up. Independent
//! sessions would not all send at once either.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::tcp::OwnedWriteHalf;

use super::session::Counts;
use super::tally::{LAST_ANSWERS, Tally};
use crate::frame::{self, Kind, Sender};
use crate::session_frames::{FRAME_TIME, Stamped, UNSTAMPED, is_answered, stamp};

/// The WebSocket close code for a normal end.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
/// The pause between two attempts to write, and between two checks for outstanding answers.
const RETRY_PAUSE: Duration = Duration::from_millis(1);
/// If the thread is late by more than this, the whole schedule shifts.
const LATE_MAX: Duration = Duration::from_micros(500);

pub(super) struct SessionWriter {
    pub(super) socket: OwnedWriteHalf,
    pub(super) counts: Arc<Counts>,
}

pub(super) struct FrameSender {
    pub(super) writers: Vec<SessionWriter>,
    pub(super) audio: Stamped,
    /// Timestamps in frames count from here.
    pub(super) epoch: Instant,
    pub(super) tally: Arc<Tally>,
}

impl FrameSender {
    /// Sends until the measurement is over, waits for the last answers, and closes every session.
    pub(super) fn run(mut self) {
        if let Err(failure) = self.send_frames() {
            self.tally.record_failure(&failure);
        }
        let over = Instant::now();
        while over.elapsed() < LAST_ANSWERS
            && !self.writers.iter().all(|it| it.counts.are_all_answered())
        {
            thread::sleep(RETRY_PAUSE);
        }
        let close = frame::write(Kind::Close, Sender::Client, &NORMAL);
        for writer in &self.writers {
            if let Err(failure) = send(&writer.socket, &close) {
                self.tally.record_failure(&failure);
            }
        }
    }

    fn send_frames(&mut self) -> io::Result<()> {
        let sessions = u32::try_from(self.writers.len()).unwrap_or(u32::MAX);
        let mut round = self.epoch;
        let mut number = 0;
        while !self.writers.is_empty() {
            number += 1;
            for (writer, index) in self.writers.iter().zip(0..) {
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
                    writer.counts.asked.fetch_add(1, Ordering::Relaxed);
                    let now = self.epoch.elapsed().as_nanos();
                    stamp(u64::try_from(now).unwrap_or(u64::MAX))
                } else {
                    UNSTAMPED
                };
                send(&writer.socket, self.audio.with(stamp))?;
            }
            round += FRAME_TIME;
        }
        Ok(())
    }
}

/// Sends a frame. It is an error if the socket accepts no bytes for too long.
fn send(socket: &OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    let started = Instant::now();
    while !bytes.is_empty() {
        match socket.try_write(bytes) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if started.elapsed() < LAST_ANSWERS => thread::sleep(RETRY_PAUSE),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    Ok(())
}
