//! A connection of the ledger, which reconnects when it is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::connect::{Role, Target};
use super::errors::PgError;
use crate::postgres::writer::statements::Statements;
use crate::settings::STEP_MAX;

/// The time limit for the answers of one round trip. It is longer than the database's own limit, so that the database's
/// error arrives first.
pub(crate) const ROUND_TRIP_MAX: Duration = Duration::from_secs(STEP_MAX.as_secs() + 1);

pub(crate) struct LedgerConnection {
    pub(crate) target: Arc<Target>,
    role: Role,
    pub(crate) session: Option<Session>,
}

/// Selects the timeline of the database and the server process of this session.
const SERVED_BY: &str =
    "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), pg_backend_pid()";

/// An open connection with its prepared statements.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) sql: Statements,
    pub(crate) served_by: ServedBy,
}

/// The server process of a session. A new timeline begins when a standby takes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedBy {
    pub(crate) timeline: String,
    pub(crate) process: i32,
}

impl LedgerConnection {
    pub(crate) fn new(target: Arc<Target>, role: Role) -> Self {
        Self {
            target,
            role,
            session: None,
        }
    }

    /// Returns the session. Connects if there is none.
    pub(crate) async fn session(&mut self) -> Result<&Session, PgError> {
        if self
            .session
            .as_ref()
            .is_some_and(|session| session.client.is_closed())
        {
            self.session = None;
        }
        if self.session.is_none() {
            let client = self.target.connect(self.role).await?;
            let preparing = Box::pin(async {
                tokio::try_join!(
                    Statements::prepare(&client),
                    client.query_one(SERVED_BY, &[])
                )
            });
            let (sql, served_by) = within(ROUND_TRIP_MAX, preparing).await?;
            let served_by = ServedBy {
                timeline: served_by.try_get(0)?,
                process: served_by.try_get(1)?,
            };
            self.session = Some(Session {
                client,
                sql,
                served_by,
            });
        }
        self.session.as_ref().ok_or(PgError::NoAnswer)
    }

    /// The open session, if there is one. A statement of a transaction must never be sent to a new session, where it
    /// would be committed by itself.
    pub(crate) fn open_session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Drops the session, because it is unknown whether its last statement has ended.
    pub(crate) fn disconnect(&mut self) {
        self.session = None;
    }

    /// Rolls back a failed transaction, so that the session can be used again.
    pub(crate) async fn roll_back(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        let undone = within(ROUND_TRIP_MAX, session.client.batch_execute("ROLLBACK")).await;
        if undone.is_err() {
            self.disconnect();
        }
    }
}

/// Awaits an answer of the database, with a time limit.
pub(crate) async fn within<T>(
    most: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PgError> {
    match tokio::time::timeout(most, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(PgError::NoAnswer),
    }
}
