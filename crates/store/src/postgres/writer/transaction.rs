//! Runs a transaction in two round trips: the first locks wallets and reads rows, the second writes the changes and
//! commits.
//!
//! The statements of a round trip are sent without waiting for answers, so a batch takes two round trips regardless of
//! its size.

use ledger::UnixMs;
use tokio::time::timeout;

use super::batch_columns::BatchColumns;
use crate::books::{BookKey, Books, HoldRow, OpenHold};
use crate::cache::IdMap;
use crate::postgres::connection::errors::PgError;
use crate::postgres::connection::ledger_connection::{ROUND_TRIP_MAX, Session};
use crate::postgres::rows::{book_wallet, calendar, held, key, last_used_at, micro, time};
use crate::records::ids::{Epoch, HoldId, KeyId, WalletId};

#[derive(Debug, Default)]
pub(crate) struct RowsNeeded {
    /// Row numbers of wallets. Sorted when the batch begins.
    pub(crate) wallets: Vec<i64>,
    /// Keys by their row numbers.
    pub(crate) keys: IdMap<i64, KeyNumbers>,
    pub(crate) holds: IdMap<HoldId, HoldOwner>,
}

/// The row numbers and ids of a key and its wallet, which never change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyNumbers {
    pub(crate) n: i64,
    pub(crate) id: KeyId,
    pub(crate) wallet: i64,
    pub(crate) wallet_id: WalletId,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HoldOwner {
    pub(crate) wallet: i64,
    pub(crate) key: KeyNumbers,
}

impl RowsNeeded {
    pub(crate) fn key(&mut self, key: KeyNumbers) {
        self.wallets.push(key.wallet);
        self.keys.insert(key.n, key);
    }

    pub(crate) fn hold(&mut self, id: HoldId, owners: HoldOwner) {
        self.key(owners.key);
        self.holds.insert(id, owners);
    }

    pub(crate) fn clear(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.holds.clear();
    }
}

/// How to treat wallets that other transactions have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockedWallets {
    Skip,
    Wait,
}

/// A transaction that has its locks and rows.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    /// The database's time, after the locks were taken.
    pub(crate) now: UnixMs,
    /// The transaction's id, for finding out its outcome.
    pub(crate) transaction: String,
    pub(crate) epoch: Epoch,
    /// The time until which the epoch may open holds. `None` if it must not open any.
    pub(crate) lease_until: Option<UnixMs>,
}

/// Begins a transaction and loads the needed rows. A wallet that is missing afterwards is locked by another
/// transaction, or does not exist.
pub(crate) async fn begin(
    session: &Session,
    needed: &mut RowsNeeded,
    locked_wallets: LockedWallets,
    epoch: Epoch,
    books: &mut Books,
) -> Result<OpenTransaction, PgError> {
    books.forget();
    books.pending.clear();
    needed.wallets.sort_unstable();
    needed.wallets.dedup();
    let (key_wallets, keys): (Vec<i64>, Vec<i64>) =
        needed.keys.values().map(|key| (key.wallet, key.n)).unzip();
    let (hold_wallets, holds): (Vec<i64>, Vec<i64>) = needed
        .holds
        .iter()
        .map(|(id, owners)| (owners.wallet, id.get()))
        .unzip();
    let (client, sql) = (&session.client, &session.sql);
    let lock = match locked_wallets {
        LockedWallets::Skip => &sql.lock_free,
        LockedWallets::Wait => &sql.lock,
    };
    let epoch_number = epoch.get();
    let round_trip = async {
        let found_holds = async {
            if holds.is_empty() {
                return Ok(Vec::new());
            }
            client.query(&sql.holds, &[&hold_wallets, &holds]).await
        };
        let locked = async { client.query(lock, &[&needed.wallets]).await };
        let moment = async { client.query_one(&sql.moment, &[&epoch_number]).await };
        let found_keys = async { client.query(&sql.keys, &[&key_wallets, &keys]).await };
        // The order matters: rows must be read after the locks are taken.
        tokio::join!(biased; client.batch_execute("BEGIN"), locked, moment, found_keys, found_holds)
    };
    let (begun, wallets, moment, keys, holds) = timeout(ROUND_TRIP_MAX, round_trip)
        .await
        .map_err(|_| PgError::NoAnswer)?;
    begun?;
    for row in wallets? {
        books.wallets.insert(row.try_get(0)?, book_wallet(&row)?);
    }
    let moment = moment?;
    for row in keys? {
        let Some(named) = needed.keys.get(&row.try_get(0)?) else {
            continue;
        };
        let row = BookKey {
            n: named.n,
            wallet: named.wallet,
            wallet_id: named.wallet_id,
            key: key(&row)?,
            calendar: calendar(&row)?,
            last_used_at: last_used_at(&row)?,
            dirty: false,
        };
        books.keys.insert(named.id, row);
    }
    for row in holds? {
        let id = HoldId::new(row.try_get(0)?);
        let Some(owners) = needed.holds.get(&id) else {
            continue;
        };
        let hold = OpenHold {
            wallet: owners.wallet,
            key: owners.key.id,
            held: held(&row)?,
            request_id: row.try_get::<_, &str>(5)?.into(),
            opened_at: time(&row, 6)?,
            booked: micro(&row, 7)?,
            cost_booked: micro(&row, 8)?,
            row: HoldRow::Same,
        };
        books.holds.insert(id, hold);
    }
    Ok(OpenTransaction {
        now: time(&moment, 0)?,
        transaction: moment.try_get(1)?,
        epoch,
        lease_until: moment.try_get::<_, Option<i64>>(2)?.map(UnixMs::new),
    })
}

#[derive(Debug)]
pub(crate) enum CommitError {
    RolledBack(PgError),
    /// The answer was lost, so the outcome is unknown.
    AnswerLost(PgError),
}

pub(crate) async fn commit(session: &Session, books: &mut Books) -> Result<(), CommitError> {
    let client = &session.client;
    let written = BatchColumns::of(books);
    let round_trip = async {
        let written = async {
            match &written {
                Some(written) => written.send(session).await,
                None => Ok(()),
            }
        };
        // After a failed statement, COMMIT rolls back without reporting an error.
        tokio::join!(biased; written, client.batch_execute("COMMIT"))
    };
    let committed = timeout(ROUND_TRIP_MAX, round_trip).await;
    drop(written);
    match committed {
        Ok((Ok(()), Ok(()))) => {
            books.count_committed();
            Ok(())
        }
        // The database refused the statement, so the transaction was rolled back.
        Ok((Err(error), _)) if error.code().is_some() => Err(CommitError::RolledBack(error.into())),
        Ok((_, Err(error))) if error.code().is_some() && !ends_sessions(&error) => {
            Err(CommitError::RolledBack(error.into()))
        }
        Ok((Err(error), _) | (_, Err(error))) => Err(CommitError::AnswerLost(error.into())),
        Err(_) => Err(CommitError::AnswerLost(PgError::NoAnswer)),
    }
}

/// Whether the server terminated the session. A session that is terminated during its commit may have committed.
fn ends_sessions(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(code.code().get(..2), Some("08" | "57")))
}
