//! Catches the panic of a request, so that it ends only that request (S10).

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// A future panicked. The panic hook has logged the location.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs a future and turns its panic into an error. It borrows the future, because an `async fn` that owns it would
/// store it twice: as its argument and as the future that it polls.
pub(crate) async fn catch_panic<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(|cx| match catch_poll(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// Turns a panic of `poll` into an error. The caller must not poll the same future again.
pub(crate) fn catch_poll<T>(poll: impl FnOnce() -> Poll<T>) -> Result<Poll<T>, Panicked> {
    catch_unwind(AssertUnwindSafe(poll)).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        let calm = catch_panic(pin!(async { 7 })).await;
        assert!(matches!(calm, Ok(7)));
        let wild = catch_panic(pin!(async { panic!("as the test wants") })).await;
        assert!(matches!(wild, Err::<(), _>(Panicked)));
    }

    #[test]
    fn a_panicking_poll_becomes_an_error() {
        assert!(matches!(catch_poll(|| Poll::Ready(7)), Ok(Poll::Ready(7))));
        let wild = catch_poll(|| -> Poll<()> { panic!("as the test wants") });
        assert!(matches!(wild, Err(Panicked)));
    }
}
