//! Opens the store, and waits until its database is available.

use std::time::{Duration, Instant};

use store::{OpenError, Recovery, Settings, Store};
use tokio::sync::oneshot;

use super::start_error::StartError;

/// The delay between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How often the log repeats that the database is unavailable, while the reason stays the same.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Opens the store. Waits while the database cannot be reached, is starting or is a standby. Wrong credentials, an
/// unknown database and a schema of a later version are returned as errors at once.
pub(crate) async fn open(settings: Settings) -> Result<(Store, Recovery), StartError> {
    let started = Instant::now();
    let mut logged: Option<(Instant, String)> = None;
    loop {
        match try_open(settings.clone()).await? {
            Ok(opened) => {
                if logged.is_some() {
                    let waited_s = started.elapsed().as_secs();
                    tracing::info!(waited_s, "the database can be used now");
                }
                return Ok(opened);
            }
            Err(error) if error.is_temporary() => {
                let reason = error.to_string();
                let is_news = logged
                    .as_ref()
                    .is_none_or(|(at, before)| *before != reason || at.elapsed() > LOG_INTERVAL);
                if is_news {
                    tracing::warn!(%reason, "waiting for the database");
                    logged = Some((Instant::now(), reason));
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Makes one attempt on its own thread, because the attempt blocks. A process that is told to stop does not wait for
/// this thread.
async fn try_open(settings: Settings) -> Result<Result<(Store, Recovery), OpenError>, StartError> {
    let (reply, opened) = oneshot::channel();
    let thread = std::thread::Builder::new().name("store-open".to_owned());
    let spawned = thread.spawn(move || {
        // If the process is stopping, nobody receives the store, and dropping it closes it again.
        drop(reply.send(Store::open(&settings)));
    });
    spawned.map_err(|_| StartError::StoreThread)?;
    opened.await.map_err(|_| StartError::StoreThread)
}
