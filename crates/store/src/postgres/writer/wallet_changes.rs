//! Makes administrative changes of wallets, inside the transaction that `changes` commits.

use ledger::{Micro, UnixMs};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::audit::audit;
use super::change_lock::{ChangeError, locked_wallet};
use super::transaction::LockedWallets;
use crate::books::{Books, FoundEntry, ManualFacts, NewAuditRow, WalletDecision, WalletOpening};
use crate::chain::Head;
use crate::error::StoreError;
use crate::postgres::connection::ledger_connection::Session;
use crate::postgres::rows::{book_wallet, wallet_row};
use crate::queue::command::WalletChange;
use crate::records::accounts::{NewWallet, WalletRow};
use crate::records::audit::Actor;
use crate::records::ids::WalletId;
use crate::records::manual::{ChangedWallet, NewEntry};

/// Columns of a manual entry, for [`found_entry`].
const FOUND: &str = "seq, kind, balance_delta + gift_delta - credit_delta, refund_of";

pub(super) async fn create_wallet(
    session: &Session,
    books: &mut Books,
    id: WalletId,
    new: &NewWallet,
    now: UnixMs,
    actor: &Actor,
) -> Result<WalletRow, ChangeError> {
    let opening = WalletOpening::of(new)?;
    let wallet = opening.wallet;
    let insert =
        "INSERT INTO wallets (id, name, status, created_at, head) VALUES ($1, $2, $3, $4, $5)
                  ON CONFLICT (name) DO NOTHING RETURNING n";
    let (text, status) = (id.to_string(), wallet.status.as_str());
    let head = Head::of_wallet(id);
    let made = session
        .client
        .query_opt(insert, &[&text, &new.name, &status, &now.get(), &head])
        .await?;
    let Some(made) = made else {
        return Err(taken(&new.name));
    };
    books.open_wallet(made.try_get(0)?, id, opening, now, &actor.name);
    let row = WalletRow {
        id,
        name: new.name.clone(),
        wallet,
        alert_below: None,
        created_at: now,
    };
    audit(session, &NewAuditRow::wallet_created(&row), now, actor).await?;
    Ok(row)
}

pub(super) async fn change_wallet(
    session: &Session,
    books: &mut Books,
    id: WalletId,
    change: &WalletChange,
    now: UnixMs,
    actor: &Actor,
    locked_wallets: LockedWallets,
) -> Result<ChangedWallet, ChangeError> {
    change.check()?;
    let found = locked_wallet(session, id, locked_wallets).await?;
    let n: i64 = found.try_get(0)?;
    let before = wallet_row(&found)?;
    let facts = match change {
        WalletChange::Manual(new) => manual_facts(session, n, new).await?,
        WalletChange::Settings(_) => ManualFacts::default(),
    };
    let prepared = match change.prepare(before.wallet, &facts)? {
        WalletDecision::Change(prepared) => prepared,
        WalletDecision::Exists(seq) => {
            return Ok(ChangedWallet {
                row: before,
                entry: Some((seq, false)),
            });
        }
    };
    let mut after = WalletRow {
        wallet: prepared.wallet,
        ..before.clone()
    };
    if let WalletChange::Settings(settings) = change {
        if let Some(name) = &settings.name {
            after.name.clone_from(name);
        }
        after.alert_below = settings.alert_below.unwrap_or(after.alert_below);
        if after == before {
            return Ok(ChangedWallet::unchanged(before));
        }
        if after.name != before.name {
            rename(session, n, &after.name).await?;
        }
        if after.alert_below != before.alert_below {
            let update = "UPDATE wallets SET alert_below = $2 WHERE n = $1";
            let below = after.alert_below.map(Micro::get);
            session.client.execute(update, &[&n, &below]).await?;
        }
    }
    books.wallets.insert(n, book_wallet(&found)?);
    let made = books.make_change(n, prepared, now, &actor.name);
    let seq = made.ok_or_else(|| StoreError::NotFound {
        what: "wallet",
        id: id.to_string(),
    })?;
    let audited = NewAuditRow::wallet_changed(&before, &after, change);
    audit(session, &audited, now, actor).await?;
    Ok(ChangedWallet {
        row: after,
        entry: Some((seq, true)),
    })
}

async fn rename(session: &Session, wallet: i64, name: &str) -> Result<(), ChangeError> {
    let update = "UPDATE wallets SET name = $2 WHERE n = $1";
    let renamed = session.client.execute(update, &[&wallet, &name]).await;
    match renamed {
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Err(taken(name)),
        renamed => Ok(renamed.map(drop)?),
    }
}

fn taken(name: &str) -> ChangeError {
    ChangeError::Refused(StoreError::Taken {
        what: "wallet",
        name: name.to_owned(),
    })
}

/// Looks up the entries that a new manual entry depends on. The lock on the wallet's row keeps them unchanged until the
/// commit.
async fn manual_facts(
    session: &Session,
    wallet: i64,
    new: &NewEntry,
) -> Result<ManualFacts, ChangeError> {
    let same_reference = match &new.reference {
        Some(reference) => by_reference(session, wallet, reference).await?,
        None => None,
    };
    let mut facts = ManualFacts {
        same_reference,
        ..ManualFacts::default()
    };
    let Some(name) = &new.refund_of else {
        return Ok(facts);
    };
    facts.refunded = by_reference(session, wallet, name).await?;
    if let (None, Ok(seq)) = (facts.refunded, name.parse::<i64>()) {
        let select = format!("SELECT {FOUND} FROM entries WHERE wallet = $1 AND seq = $2");
        let found = session.client.query_opt(&select, &[&wallet, &seq]).await?;
        facts.refunded = found.as_ref().map(found_entry).transpose()?;
    }
    if let Some(refunded) = facts.refunded {
        let sum = "SELECT coalesce(sum(balance_delta + gift_delta - credit_delta), 0)::bigint FROM entries
                   WHERE wallet = $1 AND refund_of = $2";
        let sum = session
            .client
            .query_one(sum, &[&wallet, &refunded.seq])
            .await?;
        facts.refunds = sum.try_get(0)?;
    }
    Ok(facts)
}

async fn by_reference(
    session: &Session,
    wallet: i64,
    reference: &str,
) -> Result<Option<FoundEntry>, tokio_postgres::Error> {
    let select = format!("SELECT {FOUND} FROM entries WHERE wallet = $1 AND reference = $2");
    let found = session
        .client
        .query_opt(&select, &[&wallet, &reference])
        .await?;
    found.as_ref().map(found_entry).transpose()
}

fn found_entry(row: &Row) -> Result<FoundEntry, tokio_postgres::Error> {
    Ok(FoundEntry {
        seq: row.try_get(0)?,
        kind: row.try_get(1)?,
        total: row.try_get(2)?,
        refund_of: row.try_get(3)?,
    })
}
