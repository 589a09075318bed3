//! A timer for deadlines that usually move before they pass.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// Wakes the task when a moving deadline has passed.
///
/// Setting a timer takes a lock of the runtime, and almost every deadline is replaced by a later
/// one long before it passes. So the timer lives as long as its connection and is not changed when
/// the deadline moves to a later time. If it fires too early, it is set again.
#[derive(Debug)]
pub(crate) struct DeadlineTimer(Pin<Box<Sleep>>);

impl DeadlineTimer {
    pub(crate) fn new(first: Instant) -> Self {
        Self(Box::pin(sleep_until(first)))
    }

    /// Ready if `deadline` has passed. Otherwise the task is woken at that time.
    pub(crate) fn poll_at(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if deadline < self.0.deadline() {
            self.0.as_mut().reset(deadline);
        }
        loop {
            ready!(self.0.as_mut().poll(cx));
            if self.0.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.0.as_mut().reset(deadline);
        }
    }

    /// Drops the registered waker, because an idle connection must not keep its last task alive.
    pub(crate) fn forget(&mut self) {
        let _ = self
            .0
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::DeadlineTimer;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_kept_whether_it_moved_forth_or_back() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut timer = DeadlineTimer::new(after(10));
        for seconds in [20, 25, 300, 301] {
            poll_fn(|cx| timer.poll_at(after(seconds), cx)).await;
            assert_eq!(start.elapsed().as_secs(), seconds);
        }

        let mut timer = DeadlineTimer::new(after(1_000));
        poll_fn(|cx| timer.poll_at(after(400), cx)).await;
        assert_eq!(start.elapsed().as_secs(), 400);
    }
}
