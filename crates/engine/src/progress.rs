//! How far a call has come, seen from outside its own future.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use store::HoldId;

use crate::engine::Engine;

/// What decides what a caller's leaving means.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// A request byte may have left us: from here on the call costs.
    sent: AtomicBool,
    /// When the caller left: no further route is worth trying.
    gone: OnceLock<Instant>,
    /// What is held for the call, once it is admitted.
    hold: OnceLock<HoldId>,
}

impl Progress {
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

    /// How much is left of the time for which a call is heard out, counted from its caller's leaving.
    pub(crate) fn patience(&self, drain: Duration) -> Duration {
        let gone = self.gone.get().map_or(Duration::ZERO, Instant::elapsed);
        drain.saturating_sub(gone)
    }
}

/// A call that goes on for a while when its caller leaves.
///
/// The upstream works for us from the first request byte on, so hanging up just before a
/// buffered answer must not make it free: the call runs on for `drain` to learn its usage.
pub(crate) struct Outliving<T: Send + 'static> {
    call: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    progress: Arc<Progress>,
    engine: Arc<Engine>,
}

impl<T: Send + 'static> Outliving<T> {
    pub(crate) fn new(
        call: impl Future<Output = T> + Send + 'static,
        progress: Arc<Progress>,
        engine: Arc<Engine>,
    ) -> Self {
        Self {
            call: Some(Box::pin(call)),
            progress,
            engine,
        }
    }
}

impl<T: Send + 'static> Future for Outliving<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out while it is polled: a future that panicked must not be found here again.
        let Some(mut call) = self.call.take() else {
            return Poll::Pending;
        };
        let polled = call.as_mut().poll(cx);
        if polled.is_pending() {
            self.call = Some(call);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Outliving<T> {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else {
            return;
        };
        let _ = self.progress.gone.set(Instant::now());
        // Dropping the future closes its hold; there is nothing to learn before the first byte,
        // and no runtime to learn it on once the runtime ends.
        if self.progress.is_sent() && tokio::runtime::Handle::try_current().is_ok() {
            // It only drains, and no longer counts against concurrency.
            if let Some(hold) = self.progress.hold.get() {
                self.engine.store.stop_counting(*hold);
            }
            let drain = self.engine.settings.client_gone_drain;
            self.engine.tasks.spawn(async move {
                let _ = tokio::time::timeout(drain, call).await;
            });
        }
    }
}
