//! Runs reads on a few threads, each with its own connection.
//!
//! Calls wait for lookups, so lookups have connections of their own. A long search does not delay them.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::settings::SEARCHES_WAITING_MAX;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimits {
    /// The time limit of a read. A read that takes longer is interrupted.
    pub(crate) time: Duration,
    /// The maximum number of reads that wait.
    pub(crate) waiting: usize,
}

impl ReadLimits {
    /// Limits of lookups, which find rows by an index.
    pub(crate) const LOOKUPS: Self = Self {
        time: Duration::from_secs(10),
        waiting: 4_096,
    };

    /// Limits of lists, searches and reports.
    pub(crate) fn searches(time: Duration) -> Self {
        Self {
            time,
            waiting: SEARCHES_WAITING_MAX,
        }
    }
}

/// The number of steps of the database's virtual machine between two checks of the time.
const STEPS: i32 = 10_000;

/// A queued read.
struct Job {
    run: Box<dyn FnOnce(&Connection) + Send>,
    caller: Caller,
}

/// A flag that is set when the caller of a read stops waiting for its result.
#[derive(Clone, Default)]
struct Caller(Arc<AtomicBool>);

impl Caller {
    fn has_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that marks the caller as gone when it is dropped.
    fn watch(&self) -> CallerGuard {
        CallerGuard(self.clone())
    }
}

/// A guard that lives as long as the caller waits.
struct CallerGuard(Caller);

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A pool of reading threads. When it is closed, waiting jobs are dropped, and their callers get an error.
pub(crate) struct Reads {
    queue: Arc<ReadQueue>,
    threads: Vec<JoinHandle<()>>,
    limits: ReadLimits,
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

/// The running read of a connection: its deadline and its caller.
#[derive(Clone, Default)]
struct CurrentRead(Arc<Mutex<Option<(Instant, Caller)>>>);

impl CurrentRead {
    fn begin(&self, within: Duration, caller: Caller) {
        *self.0.lock() = Some((Instant::now() + within, caller));
    }

    /// Makes the connection interrupt a read that takes too long or whose caller is gone.
    fn watch(&self, connection: &mut Connection) {
        let current = self.clone();
        let over = move || {
            let current = current.0.lock();
            let current = current.as_ref();
            current.is_some_and(|(at, caller)| caller.has_left() || Instant::now() > *at)
        };
        if let Err(error) = connection.progress_handler(STEPS, Some(over)) {
            tracing::warn!(%error, "reads have no time limit");
        }
    }
}

impl Reads {
    pub(crate) fn new(
        name: &str,
        connections: Vec<Connection>,
        limits: ReadLimits,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(ReadQueue::default());
        let mut reads = Self {
            queue,
            threads: Vec::new(),
            limits,
        };
        for mut connection in connections {
            let queue = Arc::clone(&reads.queue);
            let current = CurrentRead::default();
            current.watch(&mut connection);
            let thread = std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || queue.work(&connection, &current, limits.time))?;
            reads.threads.push(thread);
        }
        Ok(reads)
    }

    /// Runs a read on one of the connections. If the caller leaves, the read is skipped or interrupted.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let caller = Caller::default();
        let _waits = caller.watch();
        let job = Job {
            run: Box::new(move |connection| {
                if !reply.is_closed() {
                    drop(reply.send(read(connection)));
                }
            }),
            caller,
        };
        {
            let mut state = self.queue.state.lock();
            if state.closed || state.jobs.len() >= self.limits.waiting {
                return Err(StoreError::Unavailable);
            }
            state.jobs.push_back(job);
        }
        self.queue.wake.notify_one();
        let found = answer.await.map_err(|_| StoreError::Unavailable)?;
        found.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => StoreError::TooSlow {
                limit: self.limits.time,
            },
            _ => error.into(),
        })
    }
}

impl ReadQueue {
    fn work(&self, connection: &Connection, current: &CurrentRead, time_max: Duration) {
        while let Some(job) = self.next() {
            current.begin(time_max, job.caller);
            // A panic drops the reply, so the caller gets an error. The thread continues.
            if catch_unwind(AssertUnwindSafe(|| (job.run)(connection))).is_err() {
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
            // If a thread panicked, its caller already got an error from the dropped reply.
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
        let reads = Reads::new("test-read", vec![connection], ReadLimits::LOOKUPS).unwrap();
        let panicked = reads.run(|_| -> rusqlite::Result<()> { panic!("planted") });
        assert!(matches!(panicked.await, Err(StoreError::Unavailable)));
        let one: i64 = reads
            .run(|on| on.query_row("SELECT 1", [], |row| row.get(0)))
            .await
            .unwrap();
        assert_eq!(one, 1);
    }

    const ENDLESS: &str =
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";

    #[tokio::test]
    async fn a_slow_read_is_ended_and_the_next_one_is_not() {
        let limits = ReadLimits {
            time: Duration::from_millis(20),
            waiting: 1,
        };
        let connection = Connection::open_in_memory().unwrap();
        let reads = Reads::new("test-read", vec![connection], limits).unwrap();
        for _ in 0..2 {
            let slow = reads.run(|on| on.query_row(ENDLESS, [], |row| row.get::<_, i64>(0)));
            let ended = slow.await.unwrap_err();
            assert!(matches!(ended, StoreError::TooSlow { .. }), "{ended}");
            let one = reads.run(|on| on.query_row("SELECT 1", [], |row| row.get::<_, i64>(0)));
            assert_eq!(one.await.unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn a_read_whose_caller_has_left_is_not_run() {
        let connection = Connection::open_in_memory().unwrap();
        let reads = Reads::new("test-read", vec![connection], ReadLimits::LOOKUPS).unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let mut slow = Box::pin(reads.run(move |_| {
            // Returns when the test has dropped the other read.
            held.recv().unwrap_err();
            Ok(())
        }));
        assert!(futures_util::poll!(&mut slow).is_pending());
        let (ran, runs) = std::sync::mpsc::channel();
        let mut left = Box::pin(reads.run(move |_| {
            ran.send(()).unwrap();
            Ok(())
        }));
        assert!(futures_util::poll!(&mut left).is_pending());
        drop(left);
        drop(release);
        slow.await.unwrap();
        reads.run(|_| Ok(())).await.unwrap();
        assert!(runs.recv().is_err());
    }

    #[tokio::test]
    async fn a_read_whose_caller_has_left_is_ended() {
        let limits = ReadLimits {
            time: Duration::from_secs(600),
            waiting: 1,
        };
        let connection = Connection::open_in_memory().unwrap();
        let reads = Reads::new("test-read", vec![connection], limits).unwrap();
        let (started, starts) = oneshot::channel();
        let mut endless = Box::pin(reads.run(move |on| {
            started.send(()).unwrap();
            on.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))
        }));
        assert!(futures_util::poll!(&mut endless).is_pending());
        starts.await.unwrap();
        drop(endless);
        // The only connection is free again.
        let next = reads.run(|on| on.query_row("SELECT 1", [], |row| row.get::<_, i64>(0)));
        assert_eq!(next.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn no_more_reads_wait_than_allowed() {
        let limits = ReadLimits {
            time: Duration::from_secs(60),
            waiting: 1,
        };
        let connection = Connection::open_in_memory().unwrap();
        let reads = Reads::new("test-read", vec![connection], limits).unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, starts) = oneshot::channel();
        let slow = reads.run(move |_| {
            started.send(()).unwrap();
            // Returns when the test has seen the refusal.
            held.recv().unwrap_err();
            Ok(())
        });
        let others = async {
            starts.await.unwrap();
            let mut waiting = Box::pin(reads.run(|_| Ok(())));
            // Polls it once, so that it waits in the queue.
            assert!(futures_util::poll!(&mut waiting).is_pending());
            let refused = reads.run(|_| Ok(())).await;
            assert!(matches!(refused, Err(StoreError::Unavailable)));
            drop(release);
            waiting.await.unwrap();
        };
        let (slow, ()) = tokio::join!(slow, others);
        slow.unwrap();
    }
}
