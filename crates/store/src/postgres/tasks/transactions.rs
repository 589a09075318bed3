//! Steps of tasks that move money. They change the row of a task and its hold in one transaction.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Micro, UnixMs};
use tokio_postgres::types::ToSql;

use crate::books::{Books, Closed, Limits};
use crate::error::{AdmitError, StoreError};
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::connection::ledger_connection::{LedgerConnection, ROUND_TRIP_MAX, within};
use crate::postgres::node::lease::Node;
use crate::postgres::writer::lost_commit::CommitOutcome;
use crate::postgres::writer::transaction::{
    self, CommitError, HoldOwner, KeyNumbers, LockedWallets, OpenTransaction, RowsNeeded,
};
use crate::records::call::{Close, End, IfLost};
use crate::records::ids::HoldId;
use crate::records::task::{Claim, NewTask, OpenedTask, TaskEnd};
use crate::stats::Counters;

/// The maximum number of attempts of a step that conflicts with another. After a lost connection, the maximum is two.
const ATTEMPTS_MAX: u32 = 4;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);
/// The fencing number of a task's creator.
const FIRST_FENCE: i64 = 1;
/// The number of rows that the books keep, enough for one step.
const TASK_ROWS: usize = 8;

const INSERT: &str = "INSERT INTO tasks (wallet, id, key, hold, protocol, model, price_version, bound, memo, callback_url,
    status, progress, snapshot, created_at, expires_at, next_at, fence, claimed_by, endpoint)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";

/// Selects the owner of a claimed task's hold.
const OWNER: &str = "SELECT t.hold, k.n, k.id, w.n, w.id FROM tasks t JOIN wallets w ON w.n = t.wallet
    JOIN keys k ON k.wallet = t.wallet AND k.n = t.key WHERE t.id = $1 AND t.fence = $2 AND t.ended_at IS NULL";

const END: &str =
    "UPDATE tasks SET status = $4, snapshot = $5, ended_at = $6, next_at = NULL, claimed_by = NULL,
    delivery = NULL WHERE wallet = $1 AND id = $2 AND fence = $3 AND ended_at IS NULL";

const CALL_BACK: &str = "INSERT INTO callbacks (wallet, task, url, body, next_at)
    SELECT wallet, id, callback_url, snapshot, ended_at FROM tasks
    WHERE wallet = $1 AND id = $2 AND callback_url IS NOT NULL";

const DELETE: &str =
    "DELETE FROM tasks WHERE wallet = $1 AND id = $2 AND fence = $3 AND ended_at IS NULL";

/// A connection and the rows of its current step.
pub(super) struct TaskTransactions {
    connection: LedgerConnection,
    books: Books,
    node: Arc<Node>,
    lane: usize,
    last_hold: HoldId,
    counters: Arc<Counters>,
}

/// Errors that make a step fail. Nothing was written, unless the outcome of the commit is unknown.
enum TaskError {
    Refused(AdmitError),
    /// The claim is no longer held.
    NoClaim,
    Unbookable,
    Database(PgError),
    InDoubt(PgError),
}

impl From<PgError> for TaskError {
    fn from(failed: PgError) -> Self {
        Self::Database(failed)
    }
}

impl From<tokio_postgres::Error> for TaskError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// How a task and its hold end.
enum Ending<'e> {
    Ended(&'e TaskEnd),
    /// The upstream did not accept the task.
    Refused,
}

impl TaskTransactions {
    pub(super) fn new(
        target: &Arc<Target>,
        role: Role,
        node: &Arc<Node>,
        lane: usize,
        debt_limit: Micro,
        counters: &Arc<Counters>,
    ) -> Self {
        let limits = Limits {
            cached_rows_max: TASK_ROWS,
            debt_limit,
        };
        let mut books = Books::new(node.epoch(), limits, Arc::clone(counters));
        books.hold_step = i64::try_from(HoldId::LANES_MAX).unwrap_or(1);
        Self {
            connection: LedgerConnection::new(Arc::clone(target), role),
            books,
            node: Arc::clone(node),
            lane,
            last_hold: HoldId::new(0),
            counters: Arc::clone(counters),
        }
    }

    pub(super) async fn open(&mut self, new: NewTask) -> Result<OpenedTask, AdmitError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let error = match self.try_open(&new).await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            self.leave(&error).await;
            match error {
                TaskError::Refused(refused) => return Err(refused),
                TaskError::Database(failed) if is_retryable(&failed, tried) => {
                    tokio::time::sleep(PAUSE).await;
                }
                TaskError::Database(failed) if failed.kind() == FailureKind::Locked => {
                    return Err(AdmitError::Busy);
                }
                TaskError::Database(failed) | TaskError::InDoubt(failed) => {
                    tracing::error!(error = %failed, "a task could not be opened");
                    return Err(AdmitError::Unavailable);
                }
                TaskError::NoClaim | TaskError::Unbookable => return Err(AdmitError::Unavailable),
            }
        }
    }

    pub(super) async fn end(&mut self, ended: TaskEnd) -> Result<bool, StoreError> {
        let close = Close {
            if_lost: IfLost::Charge,
            hold: HoldId::new(0),
            end: ended.end.clone(),
            now: ended.now,
        };
        self.close(ended.claim, &close, &Ending::Ended(&ended))
            .await
    }

    pub(super) async fn refuse(&mut self, claim: Claim, now: UnixMs) -> Result<bool, StoreError> {
        let close = Close {
            if_lost: IfLost::Charge,
            hold: HoldId::new(0),
            end: End::Released,
            now,
        };
        self.close(claim, &close, &Ending::Refused).await
    }

    async fn close(
        &mut self,
        claim: Claim,
        close: &Close,
        ending: &Ending<'_>,
    ) -> Result<bool, StoreError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let error = match self.try_close(claim, close, ending).await {
                Ok(()) => return Ok(true),
                Err(error) => error,
            };
            self.leave(&error).await;
            match error {
                TaskError::NoClaim => return Ok(false),
                TaskError::Database(failed) if is_retryable(&failed, tried) => {
                    tokio::time::sleep(PAUSE).await;
                }
                TaskError::Database(failed) | TaskError::InDoubt(failed) => {
                    return Err(failed.into());
                }
                TaskError::Unbookable => return Err(StoreError::Overflow),
                TaskError::Refused(_) => return Err(StoreError::Unavailable),
            }
        }
    }

    async fn try_open(&mut self, new: &NewTask) -> Result<OpenedTask, TaskError> {
        let session = self.connection.session().await?;
        let key = vec![new.admit.key.to_string()];
        let asked = async {
            session
                .client
                .query_opt(&session.sql.numbers, &[&key])
                .await
        };
        let mut needed = RowsNeeded::default();
        let mut named = None;
        if let Some(row) = within(ROUND_TRIP_MAX, asked).await? {
            let key = KeyNumbers {
                id: row.try_get(0)?,
                n: row.try_get(1)?,
                wallet: row.try_get(2)?,
                wallet_id: row.try_get(3)?,
            };
            needed.key(key);
            named = Some(key);
        }
        let epoch = self.node.epoch();
        let begun = transaction::begin(
            session,
            &mut needed,
            LockedWallets::Wait,
            epoch,
            &mut self.books,
        )
        .await?;
        if !self.node.may_open(&begun) {
            return Err(TaskError::Refused(AdmitError::Unavailable));
        }
        if self.last_hold.epoch() != epoch {
            self.last_hold = HoldId::first_of_lane(epoch, self.lane);
        }
        self.books.last_hold = self.last_hold;
        let mut admit = new.admit;
        admit.now = begun.now;
        let (hold, rates) = self.books.admit(admit).map_err(TaskError::Refused)?;
        self.last_hold = self.books.last_hold;
        let now = begun.now;
        let wallet = named.map(|key| key.wallet);
        // A meter consists of numbers and names, so it always has a JSON form.
        let bound = serde_json::to_string(&new.bound).unwrap_or_default();
        let values: [&(dyn ToSql + Sync); 19] = [
            &wallet,
            &new.id.to_string(),
            &named.map(|key| key.n),
            &hold.get(),
            &&*new.protocol,
            &&*new.model,
            &new.price_version.get(),
            &bound,
            &new.memo.as_deref(),
            &new.callback_url.as_deref(),
            &&*new.running_state.status,
            &new.running_state.progress.map(i16::from),
            &&*new.running_state.snapshot,
            &now.get(),
            &after(now, new.lifetime),
            &after(now, new.lease),
            &FIRST_FENCE,
            &epoch.get(),
            &&*new.endpoint,
        ];
        let inserted = async { session.client.execute(INSERT, &values).await };
        within(ROUND_TRIP_MAX, inserted).await?;
        self.commit(&begun).await?;
        let fence = FIRST_FENCE;
        Ok(OpenedTask {
            claim: Claim {
                task: new.id,
                fence,
            },
            hold,
            rates,
        })
    }

    async fn try_close(
        &mut self,
        claim: Claim,
        close: &Close,
        ending: &Ending<'_>,
    ) -> Result<(), TaskError> {
        let session = self.connection.session().await?;
        let task = claim.task.to_string();
        let client = &session.client;
        let asked = async { client.query_opt(OWNER, &[&task, &claim.fence]).await };
        let Some(row) = within(ROUND_TRIP_MAX, asked).await? else {
            return Err(TaskError::NoClaim);
        };
        let hold = HoldId::new(row.try_get(0)?);
        let key = KeyNumbers {
            n: row.try_get(1)?,
            id: row.try_get(2)?,
            wallet: row.try_get(3)?,
            wallet_id: row.try_get(4)?,
        };
        let wallet = key.wallet;
        let mut needed = RowsNeeded::default();
        needed.hold(hold, HoldOwner { wallet, key });
        let epoch = self.node.epoch();
        let begun = transaction::begin(
            session,
            &mut needed,
            LockedWallets::Wait,
            epoch,
            &mut self.books,
        )
        .await?;
        let now = begun.now.get();
        let written = async {
            match ending {
                Ending::Refused => {
                    client
                        .execute(DELETE, &[&wallet, &task, &claim.fence])
                        .await
                }
                Ending::Ended(ended) => {
                    let (status, snapshot) = (&*ended.status, &*ended.snapshot);
                    let values: [&(dyn ToSql + Sync); 6] =
                        [&wallet, &task, &claim.fence, &status, &snapshot, &now];
                    let changed = client.execute(END, &values).await?;
                    client.execute(CALL_BACK, &[&wallet, &task]).await?;
                    Ok(changed)
                }
            }
        };
        // Another node may have claimed the task before the lock was taken.
        if within(ROUND_TRIP_MAX, written).await? == 0 {
            return Err(TaskError::NoClaim);
        }
        let close = Close {
            if_lost: IfLost::Charge,
            hold,
            now: begun.now,
            end: close.end.clone(),
        };
        match self.books.close(close) {
            Closed::Booked => {}
            Closed::Late => self.counters.late_closes.add(1),
            Closed::Unbookable(_) => {
                tracing::error!(%hold, "a task's hold could not be closed: the stored amounts do not contain it");
                return Err(TaskError::Unbookable);
            }
        }
        self.commit(&begun).await
    }

    /// Commits. If the answer is lost, asks for the outcome until it is known or the time is up.
    async fn commit(&mut self, begun: &OpenTransaction) -> Result<(), TaskError> {
        let committed = match self.connection.open_session() {
            Some(session) => transaction::commit(session, &mut self.books).await,
            None => Err(CommitError::RolledBack(PgError::NoAnswer)),
        };
        match committed {
            Ok(()) => Ok(()),
            Err(CommitError::RolledBack(failed)) => Err(TaskError::Database(failed)),
            Err(CommitError::AnswerLost(failed)) => {
                let lost_commit = self.connection.lost_commit(&begun.transaction, &self.books);
                match self.connection.outcome(&lost_commit).await {
                    CommitOutcome::Committed => {
                        self.books.count_committed();
                        Ok(())
                    }
                    CommitOutcome::RolledBack => Err(TaskError::Database(failed)),
                    CommitOutcome::Unknown | CommitOutcome::Unknowable => {
                        Err(TaskError::InDoubt(failed))
                    }
                }
            }
        }
    }

    /// Rolls back or disconnects, so that the next step finds a clean connection.
    async fn leave(&mut self, error: &TaskError) {
        match error {
            TaskError::Database(failed) | TaskError::InDoubt(failed)
                if failed.kind() == FailureKind::Disconnected =>
            {
                self.connection.disconnect();
            }
            _ => self.connection.roll_back().await,
        }
    }
}

fn is_retryable(failed: &PgError, tried: u32) -> bool {
    match failed.kind() {
        FailureKind::Conflict => tried < ATTEMPTS_MAX,
        // The connection may have been lost earlier without being noticed. If a new one is lost too, the cause is
        // different.
        FailureKind::Disconnected => tried < 2,
        _ => false,
    }
}

fn after(now: UnixMs, pause: Duration) -> i64 {
    let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    now.get().saturating_add(pause)
}
