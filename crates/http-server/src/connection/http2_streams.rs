//! Runs each stream of an HTTP/2 connection as a task, and ends streams whose client reads nothing.
//!
//! hyper polls an answer for its next piece only when the client's window has room. If the client never opens its
//! window, nothing polls the answer again. So the sweep aborts the task of a stream whose piece has waited too long.
//! This resets the stream and leaves the others alone.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::coarse_clock::CoarseClock;
use super::serve_threads::StreamThreads;

tokio::task_local! {
    static CURRENT: Arc<StreamTimer>;
}

/// Measures how long a piece of an answer has been waiting for its client to read it.
#[derive(Debug)]
pub(crate) struct StreamTimer {
    clock: Arc<CoarseClock>,
    /// In milliseconds of the clock; zero if no piece waits.
    waiting_since: AtomicU64,
}

impl StreamTimer {
    /// The timer of the stream that the current task serves; `None` on HTTP/1.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Called when hyper has taken a piece. hyper polls again when the client has read that piece.
    pub(crate) fn start(&self) {
        let now = self.clock.now_ms();
        self.waiting_since.store(now, Ordering::Relaxed);
    }

    /// Called when hyper polls for the next piece, because the client has room for it.
    pub(crate) fn stop(&self) {
        self.waiting_since.store(0, Ordering::Relaxed);
    }

    fn is_overdue(&self, limit: Duration) -> bool {
        let since = self.waiting_since.load(Ordering::Relaxed);
        self.clock.is_past(since, limit)
    }
}

#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, (Arc<StreamTimer>, AbortHandle)>>,
}

impl OpenStreams {
    /// Ends the streams whose client has read nothing for longer than `limit`.
    pub(crate) fn end_overdue(&self, limit: Duration) {
        for (timer, task) in self.open.lock().values() {
            if timer.is_overdue(limit) {
                task.abort();
            }
        }
    }
}

/// An entry in [`OpenStreams`]. The stream's task owns it, and dropping it removes the stream.
struct StreamEntry {
    streams: Arc<OpenStreams>,
    id: u64,
}

impl Drop for StreamEntry {
    fn drop(&mut self) {
        self.streams.open.lock().remove(&self.id);
    }
}

/// Runs the streams of one connection.
#[derive(Debug, Clone)]
pub(crate) struct StreamExecutor {
    pub(crate) clock: Arc<CoarseClock>,
    pub(crate) streams: Arc<OpenStreams>,
    pub(crate) threads: StreamThreads,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let timer = Arc::new(StreamTimer {
            clock: Arc::clone(&self.clock),
            waiting_since: AtomicU64::new(0),
        });
        let entry = StreamEntry {
            streams: Arc::clone(&self.streams),
            id: self.streams.next_id.fetch_add(1, Ordering::Relaxed),
        };
        let id = entry.id;
        let serve = CURRENT.scope(Arc::clone(&timer), stream);
        // The task may end at once on another thread. The lock makes it wait until its entry has been inserted.
        let mut open = self.streams.open.lock();
        let task = self.threads.spawn(async move {
            let _entry = entry;
            serve.await
        });
        open.insert(id, (timer, task));
    }
}
