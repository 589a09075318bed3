//! Locks wallets for administrative changes, and defines the errors of a change.

use tokio_postgres::Row;

use super::transaction::LockedWallets;
use crate::error::StoreError;
use crate::postgres::connection::errors::PgError;
use crate::postgres::connection::ledger_connection::Session;
use crate::postgres::rows::WALLET;
use crate::records::ids::WalletId;

/// Errors that make a change fail. Nothing was written, unless the outcome of the commit is unknown.
pub(super) enum ChangeError {
    Refused(StoreError),
    /// Another transaction holds the wallet's lock.
    Locked,
    Database(PgError),
}

impl From<tokio_postgres::Error> for ChangeError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

pub(super) async fn locked_wallet(
    session: &Session,
    id: WalletId,
    locked_wallets: LockedWallets,
) -> Result<Row, ChangeError> {
    let wait = match locked_wallets {
        LockedWallets::Skip => "SKIP LOCKED",
        LockedWallets::Wait => "",
    };
    let text = id.to_string();
    let select = format!("SELECT {WALLET} FROM wallets w WHERE w.id = $1 FOR NO KEY UPDATE {wait}");
    if let Some(row) = session.client.query_opt(&select, &[&text]).await? {
        return Ok(row);
    }
    let there = "SELECT 1 FROM wallets WHERE id = $1";
    if session.client.query_opt(there, &[&text]).await?.is_some() {
        return Err(ChangeError::Locked);
    }
    Err(ChangeError::Refused(StoreError::NotFound {
        what: "wallet",
        id: text,
    }))
}
