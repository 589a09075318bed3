//! Retries lookups while the database is unavailable, for commands that follow changes.

use std::io::Write as _;
use std::time::Duration;

use store::StoreError;

use super::error::CommandError;

const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Retries a lookup until the store answers. Reports the start and the end of an outage on standard error.
#[derive(Debug)]
pub(crate) struct StoreRetry {
    is_away: bool,
    retry_delay: Duration,
}

impl Default for StoreRetry {
    fn default() -> Self {
        Self {
            is_away: false,
            retry_delay: RETRY_DELAY,
        }
    }
}

impl StoreRetry {
    /// Returns the answer of the store. Temporary errors are retried, others are returned.
    pub(crate) async fn ask<T>(
        &mut self,
        mut look: impl AsyncFnMut() -> Result<T, StoreError>,
    ) -> Result<T, CommandError> {
        loop {
            match look().await {
                Ok(found) => {
                    if std::mem::take(&mut self.is_away) {
                        say("the database answers again");
                    }
                    return Ok(found);
                }
                Err(error) if error.is_temporary() => {
                    if !std::mem::replace(&mut self.is_away, true) {
                        say(&format!("waiting for the database: {error}"));
                    }
                    tokio::time::sleep(self.retry_delay).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn say(text: &str) {
    // If standard error is closed, the message cannot be shown anywhere.
    let _ = writeln!(std::io::stderr(), "tollgate: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_passes_is_waited_for_and_what_stays_is_an_error() {
        let mut retry = StoreRetry {
            retry_delay: Duration::ZERO,
            ..StoreRetry::default()
        };
        let mut asked = 0;
        let found = retry
            .ask(async || {
                asked += 1;
                match asked {
                    1..=3 => Err(StoreError::Unavailable),
                    _ => Ok(asked),
                }
            })
            .await;
        assert!(matches!(found, Ok(4)));
        assert!(!retry.is_away);
        let refused = retry.ask(async || Err::<(), _>(StoreError::Overflow)).await;
        assert!(matches!(refused, Err(CommandError::Message(_))));
    }
}
