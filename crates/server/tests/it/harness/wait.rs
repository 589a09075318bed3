//! Waits with a time limit: tests never hang, and poll instead of sleeping where they can.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Nothing in these tests takes longer than this, even on a slow machine under load.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(5);

/// The result of a future that must complete in time.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let outcome = timeout(PATIENCE, future).await;
    outcome.unwrap_or_else(|_| panic!("{what} took longer than {PATIENCE:?}"))
}

/// Polls until `look` returns a value.
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
