//! One connection of the ledger, made again when it is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::connect::{Role, STEP_MAX, Target};
use super::statements::Statements;
use super::trouble::Failed;

/// How long we wait for the answers to one flight of statements: longer than the database works
/// on them, so that it has the first word.
pub(super) const FLIGHT_MAX: Duration = Duration::from_secs(STEP_MAX.as_secs() + 1);
/// How long a commit whose answer was lost stays in doubt as a rule; by then the database has ended the
/// transaction one way or the other.
pub(crate) const DOUBT_MAX: Duration = Duration::from_secs(STEP_MAX.as_secs() + 3);
const DOUBT_STEP: Duration = Duration::from_millis(50);
/// From here on a transaction in doubt is ended by force, so that its locks are free.
const DOUBT_PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct Link {
    target: Arc<Target>,
    role: Role,
    session: Option<Session>,
}

/// An open connection with its statements.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) sql: Statements,
}

impl Link {
    pub(super) fn new(target: Arc<Target>, role: Role) -> Self {
        Self {
            target,
            role,
            session: None,
        }
    }

    /// The session, made when there is none.
    pub(super) async fn session(&mut self) -> Result<&Session, Failed> {
        if self
            .session
            .as_ref()
            .is_some_and(|session| session.client.is_closed())
        {
            self.session = None;
        }
        if self.session.is_none() {
            let client = self.target.connect(self.role).await?;
            let preparing = Box::pin(Statements::prepare(&client));
            let sql = within(FLIGHT_MAX, preparing).await?;
            self.session = Some(Session { client, sql });
        }
        self.session.as_ref().ok_or(Failed::Silent)
    }

    /// The session as it is. What belongs to a transaction must never be said to a new session, where
    /// it would stand alone.
    pub(super) fn present(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Gives the session up: what it was doing is not known to have ended.
    pub(super) fn hang_up(&mut self) {
        self.session = None;
    }

    /// Ends a transaction that failed, so that the session can be used again.
    pub(super) async fn roll_back(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        let undone = within(FLIGHT_MAX, session.client.batch_execute("ROLLBACK")).await;
        if undone.is_err() {
            self.hang_up();
        }
    }

    /// What became of a transaction whose commit was not answered: whether it happened, or nothing
    /// when that cannot be learnt in time.
    pub(super) async fn outcome(&mut self, transaction: &str) -> Option<bool> {
        self.hang_up();
        let begun = Instant::now();
        while begun.elapsed() < self.target.doubt_max {
            let forced = begun.elapsed() > DOUBT_PATIENCE;
            match self.ask(transaction, forced).await {
                Ok(Some(happened)) => return Some(happened),
                Ok(None) => {}
                Err(failed) => {
                    tracing::debug!(error = %failed, "a commit is in doubt");
                    self.hang_up();
                }
            }
            tokio::time::sleep(DOUBT_STEP).await;
        }
        None
    }

    async fn ask(&mut self, transaction: &str, forced: bool) -> Result<Option<bool>, Failed> {
        let session = self.session().await?;
        let status = "SELECT pg_xact_status($1::text::xid8)";
        let asked = within(
            FLIGHT_MAX,
            session.client.query_one(status, &[&transaction]),
        )
        .await;
        let status: Option<String> = match asked {
            Ok(row) => row.try_get(0)?,
            // A server that never heard of it: a standby that took over without it.
            Err(Failed::Sql(error)) if error.code().is_some() => return Ok(Some(false)),
            Err(failed) => return Err(failed),
        };
        match status.as_deref() {
            Some("committed") => Ok(Some(true)),
            Some("aborted") => Ok(Some(false)),
            _ if forced => {
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                           WHERE backend_xid::text = $1::text::xid8::xid::text AND pid <> pg_backend_pid()";
                within(FLIGHT_MAX, session.client.query(end, &[&transaction])).await?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

/// An answer of the database within a time.
pub(super) async fn within<T>(
    most: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failed> {
    match tokio::time::timeout(most, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failed::Silent),
    }
}
