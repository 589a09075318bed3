//! Waiting with an end: no test hangs, and none sleeps where it can look.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Nothing in these tests takes longer, on a slow machine under load either.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(5);

/// The outcome of a future that must not take for ever.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let outcome = timeout(PATIENCE, future).await;
    outcome.unwrap_or_else(|_| panic!("{what} took longer than {PATIENCE:?}"))
}

/// Looks until there is something to see.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(
            Instant::now() < end,
            "{what} did not happen in {PATIENCE:?}"
        );
        sleep(LOOK).await;
    }
}
