//! Keeps a panic inside the request that caused it.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// The future panicked; the panic hook has logged where.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs a future whose panic becomes an error. It is borrowed: a future that is given away is kept
/// twice, as it was given and as it is run.
pub(crate) async fn catch_panic<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(|cx| match catch_poll(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// Polls something that is not polled again after a panic, so that no broken state is seen.
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
