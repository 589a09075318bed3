//! Opens the store of a server, however long its database is away.

use std::time::{Duration, Instant};

use store::{OpenError, Recovery, Settings, Store};
use tokio::sync::oneshot;

use crate::gateway::StartError;

/// The pause before the next try.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How often the log says that the database is still away, unless its reason changes.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Opens the store. A database that cannot be reached, is starting or is a standby is waited for; wrong
/// credentials, an unknown database and a schema of another version are errors at once.
pub(crate) async fn open(settings: Settings) -> Result<(Store, Recovery), StartError> {
    let begun = Instant::now();
    let mut said: Option<(Instant, String)> = None;
    loop {
        match try_open(settings.clone()).await? {
            Ok(opened) => {
                if said.is_some() {
                    let waited_s = begun.elapsed().as_secs();
                    tracing::info!(waited_s, "the database can be used");
                }
                return Ok(opened);
            }
            Err(away) if away.is_temporary() => {
                let reason = away.to_string();
                let is_news = said
                    .as_ref()
                    .is_none_or(|(at, before)| *before != reason || at.elapsed() > SAID_EVERY);
                if is_news {
                    tracing::warn!(%reason, "waiting for the database");
                    said = Some((Instant::now(), reason));
                }
            }
            Err(refused) => return Err(refused.into()),
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// One try, on a thread of its own: it blocks, and who is told to stop meanwhile must not wait for it.
async fn try_open(settings: Settings) -> Result<Result<(Store, Recovery), OpenError>, StartError> {
    let (reply, opened) = oneshot::channel();
    let thread = std::thread::Builder::new().name("store-open".to_owned());
    let spawned = thread.spawn(move || {
        // Who was told to stop has gone, and a store that nobody wants is closed again.
        drop(reply.send(Store::open(&settings)));
    });
    spawned.map_err(|_| StartError::Opening)?;
    opened.await.map_err(|_| StartError::Opening)
}
