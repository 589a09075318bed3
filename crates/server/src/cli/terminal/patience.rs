//! For commands that follow something: they outlive an outage of the database.

use std::io::Write as _;
use std::time::Duration;

use store::StoreError;

use super::error::Stop;

/// The pause before a store that did not answer is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Asks a store until it answers, and says so on standard error while it does not.
#[derive(Debug)]
pub(crate) struct Patience {
    is_away: bool,
    again_after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            is_away: false,
            again_after: AGAIN_AFTER,
        }
    }
}

impl Patience {
    /// What the store answers. Only what would fail again is an error.
    pub(crate) async fn ask<T>(
        &mut self,
        mut look: impl AsyncFnMut() -> Result<T, StoreError>,
    ) -> Result<T, Stop> {
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
                    tokio::time::sleep(self.again_after).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn say(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "tollgate: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_passes_is_waited_for_and_what_stays_is_an_error() {
        let mut patience = Patience {
            again_after: Duration::ZERO,
            ..Patience::default()
        };
        let mut asked = 0;
        let found = patience
            .ask(async || {
                asked += 1;
                match asked {
                    1..=3 => Err(StoreError::Unavailable),
                    _ => Ok(asked),
                }
            })
            .await;
        assert!(matches!(found, Ok(4)));
        assert!(!patience.is_away);
        let refused = patience
            .ask(async || Err::<(), _>(StoreError::Overflow))
            .await;
        assert!(matches!(refused, Err(Stop::Message(_))));
    }
}
