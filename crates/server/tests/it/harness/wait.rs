//! Waits with a time limit: tests never hang, and poll instead of sleeping where they can.

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep, timeout};

/// Nothing in these tests takes longer than this, even on a slow machine under load.
const WAIT_MAX: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The result of a future that must complete in time.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let outcome = timeout(WAIT_MAX, future).await;
    outcome.unwrap_or_else(|_| panic!("{what} took longer than {WAIT_MAX:?}"))
}

/// Waits until at least a minute of the UTC day is left, so that a test sees only one day.
pub(crate) async fn enough_of_the_day() {
    const DAY: u64 = 24 * 60 * 60;
    eventually("the next day", async || {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        (since_epoch.as_secs() % DAY < DAY - 60).then_some(())
    })
    .await;
}

pub(crate) async fn eventually<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + WAIT_MAX;
    loop {
        if let Some(seen) = poll().await {
            return seen;
        }
        assert!(
            Instant::now() < end,
            "{what} did not happen in {WAIT_MAX:?}"
        );
        sleep(POLL_INTERVAL).await;
    }
}
