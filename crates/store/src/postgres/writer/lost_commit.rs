//! What became of a commit whose answer was lost.

use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::commit_proof::Witness;
use crate::books::Books;
use crate::postgres::connection::connect::STEP_MAX;
use crate::postgres::connection::errors::Failed;
use crate::postgres::connection::link::{FLIGHT_MAX, Link, ServedBy, within};

/// How long a commit whose answer was lost stays in doubt as a rule; by then the database has ended the
/// transaction one way or the other.
pub(crate) const DOUBT_MAX: Duration = Duration::from_secs(STEP_MAX.as_secs() + 3);
const DOUBT_STEP: Duration = Duration::from_millis(50);
/// From here on a transaction in doubt is ended by force, so that its locks are free.
const DOUBT_PATIENCE: Duration = Duration::from_millis(500);

/// A transaction whose commit was not answered.
#[derive(Debug)]
pub(crate) struct Doubt {
    transaction: String,
    witness: Option<Witness>,
    /// Who was told to commit it.
    served_by: Option<ServedBy>,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Happened,
    Undone,
    /// It may still end either way, or nobody could be asked.
    Unknown,
    /// Nothing that is left tells.
    Unknowable,
}

impl Link {
    /// A transaction whose commit was not answered, and what can tell of it.
    pub(crate) fn doubt(&mut self, transaction: &str, books: &Books) -> Doubt {
        Doubt {
            transaction: transaction.to_owned(),
            witness: Witness::of(books),
            served_by: self.session.take().map(|session| session.served_by),
        }
    }

    /// What became of a transaction in doubt, as far as that can be learnt in time.
    ///
    /// A transaction id alone does not tell: a server that lost its last writes in a crash, and a standby
    /// that took over without them, give the same id to another transaction. A row that only this
    /// transaction can have written does tell.
    pub(crate) async fn outcome(&mut self, doubt: &Doubt) -> Fate {
        let begun = Instant::now();
        while begun.elapsed() < self.target.doubt_max {
            let forced = begun.elapsed() > DOUBT_PATIENCE;
            match self.ask(doubt, forced).await {
                Ok(Fate::Unknown) => {}
                Ok(fate) => return fate,
                Err(failed) => {
                    tracing::debug!(error = %failed, "a commit is in doubt");
                    self.hang_up();
                }
            }
            tokio::time::sleep(DOUBT_STEP).await;
        }
        Fate::Unknown
    }

    async fn ask(&mut self, doubt: &Doubt, forced: bool) -> Result<Fate, Failed> {
        let witness = doubt.witness.as_ref();
        let session = self.session().await?;
        let client = &session.client;
        if let Some(witness) = witness
            && within(FLIGHT_MAX, witness.is_there(client)).await?
        {
            confirm(client).await?;
            return Ok(Fate::Happened);
        }
        let before = match &doubt.served_by {
            Some(before) if before.timeline == session.served_by.timeline => before,
            // The old server's session ended with it, so what is not here will not come.
            _ if witness.is_some() => return Ok(Fate::Undone),
            _ => return Ok(Fate::Unknowable),
        };
        let status = "SELECT pg_xact_status($1::text::xid8)";
        let asked = within(FLIGHT_MAX, client.query_one(status, &[&doubt.transaction])).await;
        let status: Option<String> = match asked {
            Ok(row) => row.try_get(0)?,
            // The id lies in the future of a server that lost its last writes. Any other error says nothing
            // about the transaction.
            Err(Failed::Sql(error)) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => {
                return Ok(Fate::Undone);
            }
            Err(failed) => return Err(failed),
        };
        match (status.as_deref(), witness) {
            (Some("aborted"), _) => Ok(Fate::Undone),
            (Some("committed"), None) => {
                confirm(client).await?;
                Ok(Fate::Happened)
            }
            // It ended after the look at its row, or the id is another transaction's.
            (Some("committed"), Some(witness)) => {
                if within(FLIGHT_MAX, witness.is_there(client)).await? {
                    confirm(client).await?;
                    return Ok(Fate::Happened);
                }
                Ok(Fate::Undone)
            }
            _ if forced => {
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                           WHERE backend_xid::text = $1::text::xid8::xid::text AND pid = $2";
                let ending = async {
                    client
                        .query(end, &[&doubt.transaction, &before.process])
                        .await
                };
                within(FLIGHT_MAX, ending).await?;
                Ok(Fate::Unknown)
            }
            _ => Ok(Fate::Unknown),
        }
    }
}

/// Commits something of its own. A commit that was ended while it waited for a standby is visible and yet not
/// there; one that is answered behind it is, and everything before it.
async fn confirm(client: &Client) -> Result<(), Failed> {
    let message = "SELECT pg_logical_emit_message(true, 'tollgate', '')";
    within(FLIGHT_MAX, client.batch_execute(message)).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::postgres::connection::connect::{Role, Target};
    use crate::postgres::schema::migrations;
    use crate::postgres::writer::lost_commit::*;
    use crate::records::ids::WalletId;
    use crate::settings::Server;

    /// A schema of its own on the test server; nothing where there is none.
    async fn link() -> Option<Link> {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            eprintln!("not played: run it by scripts/with-postgres");
            return None;
        };
        let name = format!("link_{}", WalletId::random()).to_lowercase();
        let target = |url: String| Arc::new(Target::of(&Server::at(url)).unwrap());
        let client = target(url.clone()).connect(Role::Keeper).await.unwrap();
        client
            .batch_execute(&format!("CREATE SCHEMA {name}"))
            .await
            .unwrap();
        let target = target(format!("{url}&options=-csearch_path%3D{name}"));
        let mut client = target.connect(Role::Keeper).await.unwrap();
        migrations::migrate(&mut client, &target).await.unwrap();
        let role = Role::Ledger {
            lock_wait: STEP_MAX,
            step: STEP_MAX,
        };
        Some(Link::new(target, role))
    }

    /// Somebody else's transaction, and whether a row is there that is called ours.
    #[tokio::test]
    async fn an_id_that_another_transaction_has_got_does_not_speak_for_ours() {
        let Some(mut link) = link().await else { return };
        let (wallet, hold) = (7, 11);
        for is_there in [false, true] {
            let session = link.session().await.unwrap();
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
            let mut doubt = Doubt {
                transaction: id.get(0),
                witness: Some(Witness::Opened { wallet, hold }),
                served_by: Some(session.served_by.clone()),
            };
            let fate = if is_there {
                Fate::Happened
            } else {
                Fate::Undone
            };
            assert_eq!(link.outcome(&doubt).await, fate);
            // On a standby that took over the same holds, and an id alone tells nothing.
            if let Some(before) = &mut doubt.served_by {
                before.timeline = "00000000".to_owned();
            }
            assert_eq!(link.outcome(&doubt).await, fate);
            doubt.witness = None;
            assert_eq!(link.outcome(&doubt).await, Fate::Unknowable);
        }
    }
}
