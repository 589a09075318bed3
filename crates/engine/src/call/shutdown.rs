//! The signal that ends the streams and sessions that are still open when a node stops.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The signal, sent once to all streams and sessions of the node.
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    has_begun: AtomicBool,
    signal: CancellationToken,
}

impl Shutdown {
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Release);
        self.signal.cancel();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    pub(crate) async fn wait(&self) {
        self.signal.cancelled().await;
    }
}

/// Lets one stream wait for the shutdown. It takes the signal's lock once per waker instead of once per poll, because a
/// stream is polled for every piece and its waker rarely changes.
#[derive(Debug, Default)]
pub(crate) struct ShutdownWatch(Option<(Waker, Pin<Box<WaitForCancellationFutureOwned>>)>);

impl ShutdownWatch {
    /// Whether the shutdown has begun. Otherwise the task is woken when it begins.
    pub(crate) fn has_begun(&mut self, shutdown: &Shutdown, cx: &mut Context<'_>) -> bool {
        if shutdown.has_begun() {
            return true;
        }
        let mut wait = match self.0.take() {
            Some((waker, wait)) if waker.will_wake(cx.waker()) => {
                self.0 = Some((waker, wait));
                return false;
            }
            Some((_, wait)) => wait,
            None => Box::pin(shutdown.signal.clone().cancelled_owned()),
        };
        let has_begun = wait.as_mut().poll(cx).is_ready();
        self.0 = Some((cx.waker().clone(), wait));
        has_begun
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_waiting_stream_is_woken_when_the_end_begins() {
        let shutdown = Arc::new(Shutdown::default());
        let mut watch = ShutdownWatch::default();
        let ender = Arc::clone(&shutdown);
        let mut begun = false;
        poll_fn(|cx| {
            if watch.has_begun(&shutdown, cx) {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut begun, true) {
                let ender = Arc::clone(&ender);
                tokio::spawn(async move { ender.begin() });
            }
            Poll::Pending
        })
        .await;
        assert!(shutdown.has_begun());
    }
}
