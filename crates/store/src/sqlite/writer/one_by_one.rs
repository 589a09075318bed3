//! Runs each command in its own transaction, after a command has made the transaction of its batch fail. A close that
//! fails even alone is set aside, so that it does not affect the others.

use std::collections::VecDeque;
use std::time::Duration;

use super::thread::Writer;
use crate::error::AdmitError;
use crate::queue::command::Command;
use crate::records::call::Close;
use crate::sqlite::connection::errors::FailureKind;
use crate::sync::Instant;

/// The interval at which closes that were set aside are retried.
const STUCK_PAUSE: Duration = Duration::from_secs(60);

impl Writer<'_> {
    /// Adds the closes that were set aside to the next commands to run, if their retry is due.
    pub(crate) fn retry_stuck(&mut self) {
        if self.stuck_due.is_some_and(|due| Instant::now() >= due) {
            self.retry.extend(self.stuck.drain(..));
            self.stuck_due = None;
            self.one_by_one = true;
        }
    }

    pub(crate) fn run_one_by_one(&mut self) {
        let mut drained = Vec::new();
        self.shared.queue.drain(&mut drained);
        let retry = std::mem::take(&mut self.retry)
            .into_iter()
            .map(Command::Close);
        let commands: Vec<Command> = retry
            .chain(drained.into_iter().map(|queued| queued.command))
            .collect();
        let mut commands = commands.into_iter();
        self.one_by_one = false;
        while let Some(command) = commands.next() {
            if self.is_failing() && !self.probe() {
                self.keep(std::iter::once(command).chain(commands));
                self.one_by_one = true;
                return;
            }
            if let Err(error) = self.ledger.begin() {
                self.begin_failed(&error);
                self.keep(std::iter::once(command).chain(commands));
                self.one_by_one = true;
                return;
            }
            let batch = self.next_batch();
            let mut undecided = VecDeque::new();
            self.ledger
                .apply(command, &self.shared.queue, &batch, &mut undecided);
            match self.end(batch, 1, Ok(())) {
                Ok(()) | Err(FailureKind::Permanent) => {
                    // The command was alone in its transaction, so it caused the failure.
                    let failed = std::mem::take(&mut self.retry);
                    self.set_aside(failed.into_iter().chain(undecided));
                }
                Err(FailureKind::Locked | FailureKind::DiskFull | FailureKind::Environment) => {
                    self.retry.extend(undecided);
                    self.keep(commands);
                    self.one_by_one = true;
                    return;
                }
            }
        }
        // A command that fails alone does not affect the others, so calls can be admitted again if commits succeed.
        if self.is_failing() {
            self.one_by_one = !self.probe();
        }
    }

    /// Commits a write that changes no value, to find out whether commits succeed again.
    fn probe(&mut self) -> bool {
        if let Err(error) = self.ledger.begin() {
            self.begin_failed(&error);
            return false;
        }
        let batch = self.next_batch();
        self.end(batch, 0, Ok(())).is_ok()
    }

    /// Keeps the closes among commands that were not run, and refuses the other commands.
    pub(crate) fn keep(&mut self, commands: impl Iterator<Item = Command>) {
        for command in commands {
            match command {
                Command::Close(closing) => self.retry.push_back(closing),
                other => other.refuse(AdmitError::Unavailable),
            }
        }
    }

    /// Sets aside closes that fail even alone.
    fn set_aside(&mut self, closings: impl Iterator<Item = Close>) {
        self.stuck.extend(closings);
        if !self.stuck.is_empty() {
            self.stuck_due.get_or_insert(Instant::now() + STUCK_PAUSE);
        }
        self.ledger
            .books
            .counters
            .stuck_closes
            .set(self.stuck.len() as u64);
    }
}
