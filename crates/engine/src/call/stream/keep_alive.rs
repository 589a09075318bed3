//! The timer of the keep-alives that a client gets while the upstream is silent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

#[derive(Debug, Default)]
pub(in crate::call) struct KeepAliveTimer(Option<Pin<Box<Sleep>>>);

impl KeepAliveTimer {
    /// Ready when the upstream has been silent for `silence`. The next poll starts the timer again.
    pub(in crate::call) fn poll(&mut self, silence: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep(silence)));
        ready!(timer.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(())
    }

    /// Stops the timer, because the client has received something.
    pub(in crate::call) fn stop(&mut self) {
        self.0 = None;
    }
}
