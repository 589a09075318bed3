//! Reads outside the writer: a few threads, each with its own connection.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::StoreError;

/// How many reads may wait.
const WAITING_MAX: usize = 4_096;
/// How long a read may take. A longer search is interrupted.
const READ_MAX: Duration = Duration::from_secs(10);
/// How many steps the database takes between two checks of the time.
const STEPS: i32 = 10_000;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// A pool of readers. Jobs that still wait when it is closed are dropped, and their callers are told.
pub(crate) struct Reads {
    queue: Arc<ReadQueue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct ReadQueue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// When the current read of a connection began.
#[derive(Clone, Default)]
struct ReadClock(Arc<Mutex<Option<Instant>>>);

impl ReadClock {
    fn start(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    fn watch(&self, connection: &mut Connection) {
        let clock = self.clone();
        let over = move || {
            clock
                .0
                .lock()
                .is_some_and(|begun| begun.elapsed() > READ_MAX)
        };
        if let Err(error) = connection.progress_handler(STEPS, Some(over)) {
            tracing::warn!(%error, "reads have no time limit");
        }
    }
}

impl Reads {
    pub(crate) fn new(name: &str, connections: Vec<Connection>) -> std::io::Result<Self> {
        let queue = Arc::new(ReadQueue::default());
        let mut reads = Self {
            queue,
            threads: Vec::new(),
        };
        for mut connection in connections {
            let queue = Arc::clone(&reads.queue);
            let clock = ReadClock::default();
            clock.watch(&mut connection);
            let thread = std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || queue.work(&connection, &clock))?;
            reads.threads.push(thread);
        }
        Ok(reads)
    }

    /// Runs a read on one of the connections.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| drop(reply.send(read(connection))));
        {
            let mut state = self.queue.state.lock();
            if state.closed || state.jobs.len() >= WAITING_MAX {
                return Err(StoreError::Unavailable);
            }
            state.jobs.push_back(job);
        }
        self.queue.wake.notify_one();
        Ok(answer.await.map_err(|_| StoreError::Unavailable)??)
    }
}

impl ReadQueue {
    fn work(&self, connection: &Connection, clock: &ReadClock) {
        while let Some(job) = self.next() {
            clock.start();
            // The caller learns of a panic from the dropped answer. The reader continues.
            if catch_unwind(AssertUnwindSafe(|| job(connection))).is_err() {
                tracing::error!("a read of the store panicked");
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            self.wake.wait(&mut state);
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let left = {
            let mut state = self.queue.state.lock();
            state.closed = true;
            std::mem::take(&mut state.jobs)
        };
        drop(left);
        self.queue.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A reader that panicked has told its caller by dropping the answer.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reads")
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_read_that_panics_takes_nobody_with_it() {
        let connection = Connection::open_in_memory().unwrap();
        let reads = Reads::new("test-read", vec![connection]).unwrap();
        let panicked = reads.run(|_| -> rusqlite::Result<()> { panic!("planted") });
        assert!(matches!(panicked.await, Err(StoreError::Unavailable)));
        let one: i64 = reads
            .run(|on| on.query_row("SELECT 1", [], |row| row.get(0)))
            .await
            .unwrap();
        assert_eq!(one, 1);
    }
}
