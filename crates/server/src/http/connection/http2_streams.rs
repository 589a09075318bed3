//! The streams of HTTP/2 connections: where each one runs, and how long its reader may take nothing.
//!
//! The HTTP library asks an answer for its next piece when the caller has room for more. A caller that
//! keeps its window shut is never asked anything again, so the stream is timed from outside: its task is
//! ended when a piece has waited too long, which resets this stream and leaves the others alone.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::serve_threads::StreamThreads;
use super::timers::CoarseClock;

tokio::task_local! {
    static CURRENT: Arc<StreamTimer>;
}

/// How long a piece of an answer has been waiting for its reader.
#[derive(Debug)]
pub(crate) struct StreamTimer {
    clock: Arc<CoarseClock>,
    /// Zero when no piece waits.
    waiting_since: AtomicU64,
}

impl StreamTimer {
    /// The timer of the stream that is being served; HTTP/1 has none.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// A piece was handed over.
    pub(crate) fn wait(&self) {
        let now = self.clock.now_ms();
        self.waiting_since.store(now, Ordering::Relaxed);
    }

    /// The next piece is asked for: there is room for it.
    pub(crate) fn resume(&self) {
        self.waiting_since.store(0, Ordering::Relaxed);
    }

    fn is_overdue(&self, limit: Duration) -> bool {
        let since = self.waiting_since.load(Ordering::Relaxed);
        self.clock.is_past(since, limit)
    }
}

/// The open streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    next: AtomicU64,
    open: Mutex<HashMap<u64, (Arc<StreamTimer>, AbortHandle)>>,
}

impl OpenStreams {
    /// Ends the streams whose reader has taken nothing for longer than `limit`.
    pub(crate) fn end_overdue(&self, limit: Duration) {
        for (timer, task) in self.open.lock().values() {
            if timer.is_overdue(limit) {
                task.abort();
            }
        }
    }
}

/// One open stream, listed until its task ends in whatever way.
struct Listed {
    streams: Arc<OpenStreams>,
    id: u64,
}

impl Drop for Listed {
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
        let listed = Listed {
            streams: Arc::clone(&self.streams),
            id: self.streams.next.fetch_add(1, Ordering::Relaxed),
        };
        let id = listed.id;
        let serve = CURRENT.scope(Arc::clone(&timer), stream);
        // Locked until it is listed: its task may end on another thread before that.
        let mut open = self.streams.open.lock();
        let task = self.threads.spawn(async move {
            let _listed = listed;
            serve.await
        });
        open.insert(id, (timer, task));
    }
}
