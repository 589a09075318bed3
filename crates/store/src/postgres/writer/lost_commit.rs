//! Finds out the outcome of a commit whose answer was lost.

use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::commit_proof::CommitProof;
use crate::books::Books;
use crate::postgres::connection::errors::PgError;
use crate::postgres::connection::ledger_connection::{
    LedgerConnection, ROUND_TRIP_MAX, ServedBy, within,
};

const LOST_COMMIT_PAUSE: Duration = Duration::from_millis(50);
/// After this time, the server process of the transaction is terminated, so that its locks are released.
const TERMINATE_AFTER: Duration = Duration::from_millis(500);

/// A transaction whose commit was not answered.
#[derive(Debug)]
pub(crate) struct LostCommit {
    transaction: String,
    proof: Option<CommitProof>,
    /// The server process that received the commit.
    served_by: Option<ServedBy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitOutcome {
    Committed,
    RolledBack,
    /// The transaction may still be running, or the database did not answer.
    Unknown,
    /// The outcome can no longer be determined.
    Unknowable,
}

impl LedgerConnection {
    /// Describes a transaction whose commit was not answered, for [`outcome`](Self::outcome).
    pub(crate) fn lost_commit(&mut self, transaction: &str, books: &Books) -> LostCommit {
        LostCommit {
            transaction: transaction.to_owned(),
            proof: CommitProof::of(books),
            served_by: self.session.take().map(|session| session.served_by),
        }
    }

    /// Finds out the outcome of a lost commit within a time limit.
    ///
    /// The transaction id alone is not enough. A server that lost its last writes in a crash, or a standby that took
    /// over without them, may have given the same id to another transaction. Only a row that no other transaction can
    /// have written is proof.
    pub(crate) async fn outcome(&mut self, lost_commit: &LostCommit) -> CommitOutcome {
        let begun = Instant::now();
        while begun.elapsed() < self.target.lost_commit_max {
            let forced = begun.elapsed() > TERMINATE_AFTER;
            match self.ask(lost_commit, forced).await {
                Ok(CommitOutcome::Unknown) => {}
                Ok(outcome) => return outcome,
                Err(failed) => {
                    tracing::debug!(error = %failed, "the outcome of a commit is unknown");
                    self.disconnect();
                }
            }
            tokio::time::sleep(LOST_COMMIT_PAUSE).await;
        }
        CommitOutcome::Unknown
    }

    async fn ask(
        &mut self,
        lost_commit: &LostCommit,
        forced: bool,
    ) -> Result<CommitOutcome, PgError> {
        let proof = lost_commit.proof.as_ref();
        let session = self.session().await?;
        let client = &session.client;
        if let Some(proof) = proof
            && within(ROUND_TRIP_MAX, proof.is_there(client)).await?
        {
            confirm(client).await?;
            return Ok(CommitOutcome::Committed);
        }
        let before = match &lost_commit.served_by {
            Some(before) if before.timeline == session.served_by.timeline => before,
            // The session ended with the old server, so a row that is missing now will not appear later.
            _ if proof.is_some() => return Ok(CommitOutcome::RolledBack),
            _ => return Ok(CommitOutcome::Unknowable),
        };
        let status = "SELECT pg_xact_status($1::text::xid8)";
        let asked = within(
            ROUND_TRIP_MAX,
            client.query_one(status, &[&lost_commit.transaction]),
        )
        .await;
        let status: Option<String> = match asked {
            Ok(row) => row.try_get(0)?,
            // The server does not know the id yet, so it has lost its last writes. Other errors do not reveal the
            // outcome of the transaction.
            Err(PgError::Sql(error))
                if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) =>
            {
                return Ok(CommitOutcome::RolledBack);
            }
            Err(failed) => return Err(failed),
        };
        match (status.as_deref(), proof) {
            (Some("aborted"), _) => Ok(CommitOutcome::RolledBack),
            (Some("committed"), None) => {
                confirm(client).await?;
                Ok(CommitOutcome::Committed)
            }
            // Either the transaction was committed after the first search for the proof, or the id belongs to another
            // transaction.
            (Some("committed"), Some(proof)) => {
                if within(ROUND_TRIP_MAX, proof.is_there(client)).await? {
                    confirm(client).await?;
                    return Ok(CommitOutcome::Committed);
                }
                Ok(CommitOutcome::RolledBack)
            }
            _ if forced => {
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                           WHERE backend_xid::text = $1::text::xid8::xid::text AND pid = $2";
                let ending = async {
                    client
                        .query(end, &[&lost_commit.transaction, &before.process])
                        .await
                };
                within(ROUND_TRIP_MAX, ending).await?;
                Ok(CommitOutcome::Unknown)
            }
            _ => Ok(CommitOutcome::Unknown),
        }
    }
}

/// Commits a message of our own. A commit that was interrupted while it waited for a standby is visible but not yet
/// durable. Once a later commit is answered, all earlier ones are durable.
async fn confirm(client: &Client) -> Result<(), PgError> {
    let message = "SELECT pg_logical_emit_message(true, 'tollgate', '')";
    within(ROUND_TRIP_MAX, client.batch_execute(message)).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::postgres::connection::connect::{Role, Target};
    use crate::postgres::schema::migrations;
    use crate::records::ids::WalletId;
    use crate::settings::{STEP_MAX, Server};

    /// Connects to a new schema on the test server. `None` without a test server.
    async fn connection() -> Option<LedgerConnection> {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            eprintln!("not played: run it by scripts/with-postgres");
            return None;
        };
        let name = format!("link_{}", WalletId::random()).to_lowercase();
        let target = |url: String| Arc::new(Target::of(&Server::at(url)).unwrap());
        let client = target(url.clone()).connect(Role::Node).await.unwrap();
        client
            .batch_execute(&format!("CREATE SCHEMA {name}"))
            .await
            .unwrap();
        let target = target(format!("{url}&options=-csearch_path%3D{name}"));
        let mut client = target.connect(Role::Node).await.unwrap();
        migrations::migrate(&mut client, &target).await.unwrap();
        let role = Role::Ledger {
            lock_wait: STEP_MAX,
            step: STEP_MAX,
        };
        Some(LedgerConnection::new(target, role))
    }

    /// The server knows the id, but it may belong to another transaction. Only our row decides.
    #[tokio::test]
    async fn an_id_that_another_transaction_has_got_does_not_speak_for_ours() {
        let Some(mut connection) = connection().await else {
            return;
        };
        let (wallet, hold) = (7, 11);
        for is_there in [false, true] {
            let session = connection.session().await.unwrap();
            let client = &session.client;
            let id = client
                .query_one("SELECT pg_current_xact_id()::text", &[])
                .await
                .unwrap();
            if is_there {
                let insert = "INSERT INTO holds (wallet, id, key, amount, tokens, counts, request_id, opened_at)
                              VALUES (7, 11, 1, 0, 0, false, 'req_1', 0)";
                client.batch_execute(insert).await.unwrap();
            }
            let mut lost_commit = LostCommit {
                transaction: id.get(0),
                proof: Some(CommitProof::Opened { wallet, hold }),
                served_by: Some(session.served_by.clone()),
            };
            let outcome = if is_there {
                CommitOutcome::Committed
            } else {
                CommitOutcome::RolledBack
            };
            assert_eq!(connection.outcome(&lost_commit).await, outcome);
            // The same holds on a standby that took over: an id alone proves nothing.
            if let Some(before) = &mut lost_commit.served_by {
                before.timeline = "00000000".to_owned();
            }
            assert_eq!(connection.outcome(&lost_commit).await, outcome);
            lost_commit.proof = None;
            assert_eq!(
                connection.outcome(&lost_commit).await,
                CommitOutcome::Unknowable
            );
        }
    }
}
