//! How far a call has come, seen from outside its own future.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use store::HoldId;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use upstream::Channel;

use crate::engine::Engine;

/// What decides what a caller's leaving means.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Where it runs. All that is done for a call finds the engine here, and holds it but once.
    engine: Arc<Engine>,
    /// A request byte may have left us: from here on the call costs.
    sent: AtomicBool,
    /// When the caller left: no further route is worth trying.
    gone: OnceLock<Instant>,
    /// What is held for the call, once it is admitted.
    hold: OnceLock<HoldId>,
    /// How long the route that is tried is read for its usage after the caller has left.
    drain_ms: AtomicU64,
}

impl Progress {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        Self {
            engine: Arc::clone(engine),
            sent: AtomicBool::new(false),
            gone: OnceLock::new(),
            hold: OnceLock::new(),
            drain_ms: AtomicU64::new(millis(engine.settings.client_gone_drain)),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn mark_sent(&self) {
        self.sent.store(true, Ordering::Relaxed);
    }

    /// Nothing left us after all: the connection was never made.
    pub(crate) fn mark_unsent(&self) {
        self.sent.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_admitted(&self, hold: HoldId) {
        let _ = self.hold.set(hold);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get().is_some()
    }

    /// A route is tried whose channel may have its own value for the drain.
    pub(crate) fn mark_attempt(&self, channel: &Channel) {
        let own = channel.client_gone_drain();
        let drain = own.unwrap_or(self.engine.settings.client_gone_drain);
        self.drain_ms.store(millis(drain), Ordering::Relaxed);
    }

    fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms.load(Ordering::Relaxed))
    }

    /// How much is left of the time for which a call is heard out, counted from its caller's leaving.
    pub(crate) fn drain_time_left(&self) -> Duration {
        let drain = self.drain();
        let gone = self.gone.get().map_or(Duration::ZERO, Instant::elapsed);
        drain.saturating_sub(gone)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A call that goes on for a while when its caller leaves.
///
/// The upstream works for us from the first request byte on, so hanging up just before a
/// buffered answer must not make it free: the call runs on for `drain` to learn its usage.
pub(crate) struct SpawnedCall<T: Send + 'static> {
    call: Option<JoinHandle<T>>,
    progress: Arc<Progress>,
}

impl<T: Send + 'static> SpawnedCall<T> {
    pub(crate) fn begin(
        call: impl Future<Output = T> + Send + 'static,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            call: Some(tokio::spawn(call)),
            progress,
        }
    }
}

impl<T: Send + 'static> Future for SpawnedCall<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(call) = &mut self.call else {
            return Poll::Pending;
        };
        let ended = ready!(Pin::new(call).poll(cx));
        self.call = None;
        join_result(ended)
    }
}

/// What becomes of who waits for a call: a panic goes on here, where the request is shielded from it.
fn join_result<T>(ended: Result<T, JoinError>) -> Poll<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(answer) => Poll::Ready(answer),
        Err(Ok(panic)) => resume_unwind(panic),
        // Only an ending runtime does that, and it ends who waits too.
        Err(Err(_cancelled)) => Poll::Pending,
    }
}

impl<T: Send + 'static> Drop for SpawnedCall<T> {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else {
            return;
        };
        let _ = self.progress.gone.set(Instant::now());
        // No runtime to learn anything on: it ends, and the call with it.
        if Handle::try_current().is_err() {
            return;
        }
        let engine = self.progress.engine();
        if !self.progress.is_sent() {
            // There is nothing to learn before the first byte; a call that is dropped closes its hold.
            call.abort();
        } else if let Some(hold) = self.progress.hold.get() {
            // It only drains, and no longer counts against concurrency.
            engine.store.stop_counting(*hold);
        }
        let drain = self.progress.drain();
        // The node waits for these before it ends.
        engine.tasks.spawn(async move {
            if timeout(drain, &mut call).await.is_err() {
                call.abort();
                let _ = call.await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[tokio::test]
    async fn a_call_that_panics_panics_where_it_is_waited_for() {
        let calm = tokio::spawn(async { 7 }).await;
        assert_eq!(join_result(calm), Poll::Ready(7));
        let wild = tokio::spawn(async { panic!("as the test wants") }).await;
        let shielded = catch_unwind(AssertUnwindSafe(|| join_result::<()>(wild)));
        assert!(shielded.is_err());
        let endless = tokio::spawn(std::future::pending::<()>());
        endless.abort();
        assert_eq!(join_result(endless.await), Poll::Pending);
    }
}
