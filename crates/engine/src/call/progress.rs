//! The state that a call shares with the future that waits for it and with background tasks.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use store::HoldId;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout};
use upstream::Channel;

use crate::call::early_stream::EarlyStream;
use crate::engine::Engine;

/// The progress of a call, which determines what happens when the caller leaves.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The engine. All code that runs for a call uses this reference, so that each call holds only one.
    engine: Arc<Engine>,
    /// Whether a byte of the request may have been sent. From then on the call may cost money.
    sent: AtomicBool,
    /// When the caller left. After that, the call tries no further route.
    gone: OnceLock<Instant>,
    /// The hold of the call, once it is admitted.
    hold: OnceLock<HoldId>,
    /// How long the upstream of the current route is read for its usage after the caller has left.
    drain_ms: AtomicU64,
    /// The head of a stream that begins before its upstream, until the future that waits for the call takes it.
    early: Mutex<Option<Box<EarlyStream>>>,
    early_waker: AtomicWaker,
}

impl Progress {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        Self {
            engine: Arc::clone(engine),
            sent: AtomicBool::new(false),
            gone: OnceLock::new(),
            hold: OnceLock::new(),
            drain_ms: AtomicU64::new(millis(engine.settings.client_gone_drain)),
            early: Mutex::new(None),
            early_waker: AtomicWaker::new(),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn mark_sent(&self) {
        self.sent.store(true, Ordering::Relaxed);
    }

    /// Records that no byte of the request was sent after all, for example because no connection was made.
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

    /// Lets the stream of the call begin before its upstream has answered.
    pub(crate) fn begin_early(&self, early: EarlyStream) {
        *self.early.lock() = Some(Box::new(early));
        self.early_waker.wake();
    }

    /// Takes the head of a stream that begins early. If there is none yet, the task is woken when there is one.
    pub(crate) fn poll_early(&self, cx: &Context<'_>) -> Option<Box<EarlyStream>> {
        self.early_waker.register(cx.waker());
        self.early.lock().take()
    }

    /// Records that another route is tried. Its channel may have its own drain time.
    pub(crate) fn mark_attempt(&self, channel: &Channel) {
        let own = channel.client_gone_drain();
        let drain = own.unwrap_or(self.engine.settings.client_gone_drain);
        self.drain_ms.store(millis(drain), Ordering::Relaxed);
    }

    fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms.load(Ordering::Relaxed))
    }

    /// How much of the drain time is left. It begins when the caller leaves.
    pub(crate) fn drain_time_left(&self) -> Duration {
        let drain = self.drain();
        let gone = self.gone.get().map_or(Duration::ZERO, Instant::elapsed);
        drain.saturating_sub(gone)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A call that continues for a while after its caller has left.
///
/// The upstream may charge us from the first byte of the request, even if the caller disconnects just before a buffered
/// answer. So the call continues for the drain time to learn its usage, which the caller pays for.
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

impl<T: Send + 'static> SpawnedCall<T> {
    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
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

/// Re-raises a panic of the call's task in the task that awaits the call.
fn join_result<T>(ended: Result<T, JoinError>) -> Poll<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(answer) => Poll::Ready(answer),
        Err(Ok(panic)) => resume_unwind(panic),
        // Tasks are cancelled only when the runtime shuts down, which also ends the waiting task.
        Err(Err(_cancelled)) => Poll::Pending,
    }
}

impl<T: Send + 'static> Drop for SpawnedCall<T> {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else {
            return;
        };
        let _ = self.progress.gone.set(Instant::now());
        // Without a runtime the rest of the answer cannot be read. This happens only when the runtime shuts down, which
        // ends the call.
        if Handle::try_current().is_err() {
            return;
        }
        let engine = self.progress.engine();
        if !self.progress.is_sent() {
            // No byte was sent, so the upstream has no usage to report. Aborting drops the call, which closes its hold.
            call.abort();
        } else if let Some(hold) = self.progress.hold.get() {
            // The call only drains now, and no longer counts against concurrency.
            engine.store.stop_counting(*hold);
        }
        let drain = self.progress.drain();
        // The node waits for these tasks at shutdown.
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
