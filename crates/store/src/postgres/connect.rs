//! How the database is reached, and what every session agrees on first.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config};

use super::tls::Tls;
use super::trouble::Failed;
use crate::error::OpenError;
use crate::settings::Server;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long bytes may stay unacknowledged before the connection counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long the database runs one of our statements on the ledger, and how long it lets a transaction
/// of ours lie idle: a process that was stopped in the middle of one must not keep its locks.
pub(super) const STEP_MAX: Duration = Duration::from_secs(5);
/// How long a look-up or search may take.
pub(super) const READ_MAX: Duration = Duration::from_secs(10);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Decides on money: waits for a lock as long as a call waits for its decision. A statement, and
    /// a pause between two, takes no longer than a step.
    Ledger { lock_wait: Duration, step: Duration },
    /// Reads, each within its time.
    Reads,
    /// Steps of tasks, each one statement.
    Tasks,
    /// Reads everything, however long it takes.
    Verify,
    /// Writes the journal, which need not survive a power cut.
    Journal,
    /// Keeps the node's lease, and migrates.
    Keeper,
}

/// A database server.
pub(super) struct Target {
    config: Config,
    tls: Tls,
    place: String,
    pub(super) doubt_max: Duration,
}

/// Reads the URL; says what is wrong with it.
fn read_url(server: &Server) -> Result<Config, String> {
    let config: Config = server
        .url
        .parse()
        .map_err(|error: tokio_postgres::Error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })?;
    if config.get_hosts().is_empty() {
        return Err("it names no host".to_owned());
    }
    Ok(config)
}

/// Whether a server can be spoken to at all; says why not.
pub(crate) fn check(server: &Server) -> Result<(), String> {
    read_url(server).map(drop)
}

impl Target {
    pub(super) fn of(server: &Server) -> Result<Self, OpenError> {
        let place = server.shown();
        let refused = |reason: String| OpenError::Server {
            place: server.shown(),
            reason,
        };
        let mut config = read_url(server).map_err(refused)?;
        if let Some(password) = &server.password {
            config.password(password);
        }
        config
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(SILENCE_MAX)
            .application_name("tollgate");
        let tls = Tls::new(server.ca_file.as_deref()).map_err(refused)?;
        Ok(Self {
            config,
            tls,
            place,
            doubt_max: server.doubt_max,
        })
    }

    /// The server as it may be shown.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// A new session. Its driver runs on the present runtime and ends with the client.
    pub(super) async fn connect(&self, role: Role) -> Result<Client, Failed> {
        let connecting = async {
            let client = if self.config.get_ssl_mode() == SslMode::Disable {
                let (client, driver) = self.config.connect(tokio_postgres::NoTls).await?;
                tokio::spawn(driven(driver));
                client
            } else {
                let (client, driver) = self.config.connect(self.tls.clone()).await?;
                tokio::spawn(driven(driver));
                client
            };
            client.batch_execute(&role.settings()).await?;
            Ok(client)
        };
        // The configured time is for each address; this is for all of it.
        // On the heap: connecting is rare, and its state is large.
        match tokio::time::timeout(CONNECT_MAX * 2, Box::pin(connecting)).await {
            Ok(connected) => connected,
            Err(_) => Err(Failed::Silent),
        }
    }

    pub(super) fn refused(&self, failed: Failed) -> OpenError {
        OpenError::Database {
            place: self.place.clone(),
            source: Box::new(failed),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.place)
    }
}

async fn driven(driver: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    // Whoever uses the connection learns of its end by themselves.
    if let Err(error) = driver.await {
        tracing::debug!(%error, "a connection to the database ended");
    }
}

impl Role {
    fn settings(self) -> String {
        let (statement, lock) = match self {
            Self::Ledger { lock_wait, step } => (step, lock_wait),
            Self::Reads | Self::Tasks => (READ_MAX, READ_MAX),
            Self::Verify => (Duration::ZERO, READ_MAX),
            Self::Journal => (READ_MAX, STEP_MAX),
            Self::Keeper => (Duration::from_secs(60), READ_MAX),
        };
        let commit = match self {
            Self::Journal => "SET synchronous_commit = off",
            // What is promised is on the disk (reliability W13); a server that asks for more than
            // that gets it.
            _ => {
                "SELECT set_config('synchronous_commit', 'on', false)
                  WHERE current_setting('synchronous_commit') = 'off'"
            }
        };
        let idle = match self {
            Self::Ledger { step, .. } => step,
            Self::Verify => Duration::ZERO,
            Self::Reads | Self::Tasks | Self::Journal => STEP_MAX,
            // Its claims last as long as the sweep they are for.
            Self::Keeper => Duration::from_secs(60),
        };
        format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {};
             SET default_transaction_isolation = 'read committed'; SET jit = off; {commit}",
            statement.as_millis(),
            lock.as_millis(),
            idle.as_millis(),
        )
    }
}
