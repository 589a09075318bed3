//! Keeps a panic inside the request that caused it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future whose panic becomes `Err(Panicked)`.
#[derive(Debug)]
pub(crate) struct CatchPanic<F>(Pin<Box<F>>);

/// The future panicked; the panic hook has logged where.
#[derive(Debug)]
pub(crate) struct Panicked;

impl<F: Future> CatchPanic<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The future is not polled again after a panic, so no broken state is seen.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        let calm = CatchPanic::new(async { 7 }).await;
        assert!(matches!(calm, Ok(7)));
        let wild = CatchPanic::new(async { panic!("as the test wants") }).await;
        assert!(matches!(wild, Err::<(), _>(Panicked)));
    }
}
