//! Connects to the database, and configures every session.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, SimpleQueryMessage};

use super::errors::PgError;
use super::tls::Tls;
use super::url::{self, Address};
use crate::error::OpenError;
use crate::settings::{STEP_MAX, Server};

/// The time limit for the TCP connection to one address.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// The time limit for connecting to one server, until its session is usable.
const SESSION_MAX: Duration = Duration::from_secs(4);
/// A connection counts as lost if bytes stay unacknowledged for longer than this.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The time limit of a lookup, and of a statement that changes tasks or writes the journal.
pub(crate) const READ_MAX: Duration = Duration::from_secs(10);

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Transactions of the ledger. They wait for a lock for at most `lock_wait`, because no call waits longer for its
    /// decision. Each statement, and each pause between two statements, is limited to `step`.
    Ledger { lock_wait: Duration, step: Duration },
    /// Lookups with a time limit.
    Reads,
    /// Lists, searches and reports.
    Searches { time_max: Duration },
    /// Changes of tasks, callbacks and alerts that are one statement each.
    Tasks,
    /// Reads everything, without a time limit.
    Verify,
    /// The journal's writer. Its commits are as durable as all others, so a crash or failover of the server loses no
    /// confirmed row.
    Journal,
    /// Renews the node's lease, claims epochs for the sweeper, and runs migrations.
    Node,
}

/// The database: one server, or several servers of which one is the primary.
pub(crate) struct Target {
    servers: Vec<Address>,
    /// The index of the server that was used last. It is tried first.
    last: AtomicUsize,
    writable: bool,
    tls: Tls,
    place: String,
    pub(crate) lost_commit_max: Duration,
}

impl Server {
    /// Checks the URL. The error describes the problem.
    pub fn check(&self) -> Result<(), String> {
        url::read(self).map(drop)
    }

    /// The names and addresses of the hosts in the URL.
    pub fn hosts(&self) -> Vec<String> {
        let addresses = url::read(self).map_or_else(|_| Vec::new(), |it| it.servers);
        addresses.iter().flat_map(url::Address::hosts).collect()
    }
}

impl Target {
    pub(crate) fn of(server: &Server) -> Result<Self, OpenError> {
        let place = server.shown();
        let refused = |reason: String| OpenError::Server {
            place: server.shown(),
            reason,
        };
        let mut addresses = url::read(server).map_err(refused)?;
        for address in &mut addresses.servers {
            if let Some(password) = &server.password {
                address.config.password(password);
            }
            address
                .config
                .connect_timeout(CONNECT_MAX)
                .tcp_user_timeout(SILENCE_MAX)
                .keepalives_idle(SILENCE_MAX)
                .application_name("tollgate");
        }
        let tls = Tls::new(server.ca_file.as_deref()).map_err(refused)?;
        Ok(Self {
            servers: addresses.servers,
            last: AtomicUsize::new(0),
            writable: addresses.writable,
            tls,
            place,
            lost_commit_max: server.lost_commit_max,
        })
    }

    /// The server without its password, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Opens a session on the first usable server, beginning with the one that was used last. Its driver runs on the
    /// current runtime and ends with the client.
    pub(crate) async fn connect(&self, role: Role) -> Result<Client, PgError> {
        let first = self.last.load(Ordering::Relaxed);
        let count = self.servers.len();
        let mut failures = Vec::new();
        for number in (first..first + count).map(|number| number % count) {
            let Some(server) = self.servers.get(number) else {
                continue;
            };
            // Boxed, because connecting is rare and its state is large.
            let connecting = Box::pin(self.connect_to(&server.config, role));
            let connected = tokio::time::timeout(SESSION_MAX, connecting).await;
            match connected.unwrap_or(Err(PgError::NoAnswer)) {
                Ok(client) => {
                    self.last.store(number, Ordering::Relaxed);
                    return Ok(client);
                }
                Err(failed) => failures.push((server.name.clone(), failed)),
            }
        }
        match failures.pop() {
            Some((_, failed)) if failures.is_empty() => Err(failed),
            last => Err(PgError::EveryHost(
                failures.into_iter().chain(last).collect(),
            )),
        }
    }

    async fn connect_to(&self, config: &Config, role: Role) -> Result<Client, PgError> {
        let client = if config.get_ssl_mode() == SslMode::Disable {
            let (client, driver) = config.connect(tokio_postgres::NoTls).await?;
            tokio::spawn(driven(driver));
            client
        } else {
            let (client, driver) = config.connect(self.tls.clone()).await?;
            tokio::spawn(driven(driver));
            client
        };
        let settings = format!("{}; SHOW transaction_read_only", role.settings());
        let answers = client.simple_query(&settings).await?;
        let is_read_only = answers.iter().any(|answer| match answer {
            SimpleQueryMessage::Row(row) => {
                let name = row
                    .columns()
                    .first()
                    .map(tokio_postgres::SimpleColumn::name);
                name == Some("transaction_read_only") && row.get(0) == Some("on")
            }
            _ => false,
        });
        if is_read_only && self.writable {
            return Err(PgError::ReadOnly);
        }
        Ok(client)
    }

    /// Asks the server to end the running statement of a session. The session must not be used afterwards, because the
    /// request may arrive late.
    pub(crate) async fn cancel(&self, session: &Client) -> Result<(), PgError> {
        let cancel = session.cancel_token();
        let cancelling = cancel.cancel_query(self.tls.clone());
        let cancelled = tokio::time::timeout(CONNECT_MAX, cancelling).await;
        Ok(cancelled.map_err(|_| PgError::NoAnswer)??)
    }

    pub(crate) fn refused(&self, failed: PgError) -> OpenError {
        let place = self.place.clone();
        let is_temporary = failed.is_temporary();
        let source = Box::new(failed);
        if is_temporary {
            OpenError::Away { place, source }
        } else {
            OpenError::Database { place, source }
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.place)
    }
}

async fn driven(driver: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    // The user of the connection notices its end.
    if let Err(error) = driver.await {
        tracing::debug!(%error, "a connection to the database ended");
    }
}

impl Role {
    pub(crate) fn read_max(self) -> Duration {
        match self {
            Self::Searches { time_max } => time_max,
            _ => READ_MAX,
        }
    }

    fn settings(self) -> String {
        let (statement, lock) = match self {
            Self::Ledger { lock_wait, step } => (step, lock_wait),
            Self::Reads | Self::Tasks => (READ_MAX, READ_MAX),
            Self::Searches { time_max } => (time_max, time_max),
            Self::Verify => (Duration::ZERO, READ_MAX),
            Self::Journal => (READ_MAX, STEP_MAX),
            Self::Node => (Duration::from_secs(60), READ_MAX),
        };
        // Commits must be on disk when they are confirmed (W13). A server with a stricter setting keeps it.
        let commit = "SELECT set_config('synchronous_commit', 'on', false)
                      WHERE current_setting('synchronous_commit') = 'off'";
        let idle = match self {
            Self::Ledger { step, .. } => step,
            Self::Verify => Duration::ZERO,
            Self::Reads | Self::Searches { .. } | Self::Tasks | Self::Journal => STEP_MAX,
            // A sweep keeps its row locks while it closes holds on another connection.
            Self::Node => Duration::from_secs(60),
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
