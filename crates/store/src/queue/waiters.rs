//! The tasks of one runtime that wait for a batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::sync::{AtomicBool, Handle, RuntimeId, timeout};

/// How long callers wait for a decision to be confirmed. If the ledger takes longer, it counts as unavailable.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

/// Notified once: when the outcome of the batch is known, or when that takes too long.
///
/// A task on the waiters' own runtime notifies them, because waking a task from there costs almost nothing. From
/// another thread, each wake-up would cost a system call. All waiters share one timer.
pub(super) struct Waiters {
    runtime: RuntimeId,
    notify: Notify,
    ended: AtomicBool,
}

/// A channel that ends the wait from another thread.
pub(super) type EndWait = oneshot::Sender<()>;

impl Waiters {
    pub(super) fn start(runtime: &Handle) -> (Arc<Self>, EndWait) {
        let (end, ending) = oneshot::channel();
        let waiters = Arc::new(Self {
            runtime: runtime.id(),
            notify: Notify::new(),
            ended: AtomicBool::new(false),
        });
        let notified = Arc::clone(&waiters);
        runtime.spawn(async move {
            let _ = timeout(CONFIRMED_WITHIN, ending).await;
            notified.ended.store(true, Ordering::Release);
            notified.notify.notify_waiters();
        });
        (waiters, end)
    }

    /// Whether a task of this runtime may still join these waiters.
    pub(super) fn is_open_to(&self, runtime: &Handle) -> bool {
        self.runtime == runtime.id() && !self.has_ended()
    }

    /// A future that completes when the wait ends. The future must be created before the wait ends.
    pub(super) fn notified(&self) -> Notified<'_> {
        self.notify.notified()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}
