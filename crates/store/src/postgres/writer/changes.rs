//! Makes administrative changes, each in a transaction of its own, and answers when it is committed.

use std::collections::HashSet;

use ledger::UnixMs;

use super::access::change_access;
use super::alert_rules::change_rule;
use super::audit::audit;
use super::catalog::store_catalog;
use super::change_lock::ChangeError;
use super::import::import;
use super::key_changes::{change_key, create_key};
use super::transaction::{LockedWallets, OpenTransaction};
use super::wallet_changes::{change_wallet, create_wallet};
use super::worker::Worker;
use crate::books::NewAuditRow;
use crate::error::StoreError;
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::connection::ledger_connection::{ROUND_TRIP_MAX, Session};
use crate::postgres::rows::time;
use crate::queue::command::{AccessChanged, Change, Command, CostedRoute};
use crate::queue::command_queue::Queued;
use crate::records::accounts::{KeyRow, WalletRow};
use crate::records::alerts::RuleRow;
use crate::records::cost::CostVersion;
use crate::records::ids::{Epoch, PriceVersion, WalletId};
use crate::records::manual::ChangedWallet;

const NOW: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_current_xact_id()::text";

enum Changed {
    Wallet(Box<WalletRow>),
    WalletChange(Box<ChangedWallet>),
    Key(Box<KeyRow>),
    Access(AccessChanged),
    Price(PriceVersion),
    Cost(CostVersion),
    Nothing,
    Catalog(Option<i64>),
    Rule(Box<RuleRow>),
}

impl Worker {
    /// Makes a change. If another transaction has locked the wallet, adds the command to `left`.
    pub(crate) async fn change(
        &mut self,
        queued: Queued,
        locked_wallets: LockedWallets,
        locked: &mut HashSet<WalletId>,
        left: &mut Vec<Queued>,
    ) {
        let wallet = self.lane.wallet_of(&queued.command);
        if wallet.is_some_and(|wallet| locked.contains(&wallet)) {
            left.push(queued);
            return;
        }
        let Queued { command, at } = queued;
        let Command::Change(change) = command else {
            return;
        };
        match self.commit_change(&change, locked_wallets).await {
            Ok(made) => answer(change, Ok(made), &self.lane.next_batch()),
            Err(ChangeError::Refused(error)) => {
                self.connection.roll_back().await;
                answer(change, Err(error), &self.lane.next_batch());
            }
            Err(ChangeError::Locked) => {
                self.connection.roll_back().await;
                locked.extend(wallet);
                let command = Command::Change(change);
                left.push(Queued { command, at });
            }
            Err(ChangeError::Database(failed)) => {
                tracing::error!(error = %failed, "a change could not be made");
                match failed.kind() {
                    FailureKind::Disconnected => self.connection.disconnect(),
                    FailureKind::Locked => {
                        self.connection.roll_back().await;
                        let command = Command::Change(change);
                        left.push(Queued { command, at });
                        return;
                    }
                    _ => self.connection.roll_back().await,
                }
                answer(change, Err(failed.into()), &self.lane.next_batch());
            }
        }
    }

    /// Makes a change and commits it. Retries once after a conflict, or if the connection was lost and nothing was
    /// committed.
    async fn commit_change(
        &mut self,
        change: &Change,
        locked_wallets: LockedWallets,
    ) -> Result<Changed, ChangeError> {
        let mut tried = 0;
        loop {
            tried += 1;
            self.books.forget();
            self.books.pending.clear();
            let session = match self.connection.session().await {
                Ok(session) => session,
                Err(failed) => return Err(ChangeError::Database(failed)),
            };
            let execute = Box::pin(execute(session, &mut self.books, change, locked_wallets));
            let made = match tokio::time::timeout(ROUND_TRIP_MAX, execute).await {
                Ok(made) => made,
                Err(_) => Err(ChangeError::Database(PgError::NoAnswer)),
            };
            match made {
                Ok((made, begun)) => match self.commit(&begun).await {
                    Ok(()) => {
                        self.count_commit(1);
                        return Ok(made);
                    }
                    Err(failure) => {
                        let lost = failure.failed.kind() == FailureKind::Disconnected;
                        if tried >= 2 || failure.lost_commit.is_some() || !lost {
                            return Err(ChangeError::Database(failure.failed));
                        }
                    }
                },
                Err(ChangeError::Database(failed)) if tried < 2 => match failed.kind() {
                    FailureKind::Disconnected => self.connection.disconnect(),
                    FailureKind::Conflict => self.connection.roll_back().await,
                    _ => return Err(ChangeError::Database(failed)),
                },
                Err(error) => return Err(error),
            }
        }
    }
}

fn answer(
    change: Change,
    made: Result<Changed, StoreError>,
    batch: &std::sync::Arc<crate::queue::durable::Batch>,
) {
    batch.mark_durable();
    let durable = batch.durable();
    // A receiver that is gone does not need an answer.
    match (change, made) {
        (Change::CreateWallet { reply, .. }, Ok(Changed::Wallet(row))) => {
            drop(reply.send(Ok((*row, durable))));
        }
        (Change::Wallet { reply, .. }, Ok(Changed::WalletChange(made))) => {
            drop(reply.send(Ok((*made, durable))));
        }
        (Change::CreateKey { reply, .. } | Change::Key { reply, .. }, Ok(Changed::Key(row))) => {
            drop(reply.send(Ok((*row, durable))));
        }
        (Change::Access { reply, .. }, Ok(Changed::Access(made))) => {
            drop(reply.send(Ok((made, durable))));
        }
        (Change::PriceVersion { reply, .. }, Ok(Changed::Price(version))) => {
            drop(reply.send(Ok((version, durable))));
        }
        (Change::CostVersion { reply, .. }, Ok(Changed::Cost(version))) => {
            drop(reply.send(Ok((version, durable))));
        }
        (Change::CreateWallet { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (Change::Wallet { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (
            Change::AuditAction { reply, .. } | Change::Import { reply, .. },
            Ok(Changed::Nothing),
        ) => {
            drop(reply.send(Ok(((), durable))));
        }
        (Change::Catalog { reply, .. }, Ok(Changed::Catalog(version))) => {
            drop(reply.send(Ok((version, durable))));
        }
        (Change::Rule { reply, .. }, Ok(Changed::Rule(row))) => {
            drop(reply.send(Ok((*row, durable))));
        }
        (Change::Rule { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (Change::AuditAction { reply, .. } | Change::Import { reply, .. }, Err(error)) => {
            drop(reply.send(Err(error)));
        }
        (Change::Catalog { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (Change::CreateKey { reply, .. } | Change::Key { reply, .. }, Err(error)) => {
            drop(reply.send(Err(error)));
        }
        (Change::Access { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (Change::PriceVersion { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (Change::CostVersion { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
        (_, Ok(_)) => unreachable!("each change makes its own kind"),
    }
}

/// Runs the statements of a change, but does not commit.
async fn execute(
    session: &Session,
    books: &mut crate::books::Books,
    change: &Change,
    locked_wallets: LockedWallets,
) -> Result<(Changed, OpenTransaction), ChangeError> {
    session.client.batch_execute("BEGIN").await?;
    let moment = session.client.query_one(NOW, &[]).await?;
    let begun = OpenTransaction {
        now: time(&moment, 0)?,
        transaction: moment.try_get(1)?,
        epoch: Epoch::new(0),
        lease_until: None,
    };
    let now = begun.now;
    let made = match change {
        Change::CreateWallet { id, new, actor, .. } => {
            let row = create_wallet(session, books, *id, new, now, actor).await?;
            Changed::Wallet(Box::new(row))
        }
        Change::Wallet {
            wallet,
            change,
            actor,
            ..
        } => {
            let made =
                change_wallet(session, books, *wallet, change, now, actor, locked_wallets).await?;
            Changed::WalletChange(Box::new(made))
        }
        Change::CreateKey { id, new, actor, .. } => {
            let row = create_key(session, *id, new, now).await?;
            audit(session, &NewAuditRow::key_created(&row), now, actor).await?;
            Changed::Key(Box::new(row))
        }
        Change::Key {
            key, edit, actor, ..
        } => {
            let (row, audited) = change_key(session, *key, edit, locked_wallets).await?;
            if let Some(audited) = audited {
                audit(session, &audited, now, actor).await?;
            }
            Changed::Key(Box::new(row))
        }
        Change::Access { change, actor, .. } => {
            Changed::Access(change_access(session, change, now, actor).await?)
        }
        Change::Rule { change, actor, .. } => {
            Changed::Rule(Box::new(change_rule(session, change, now, actor).await?))
        }
        Change::PriceVersion { model, card, .. } => {
            Changed::Price(price_version(session, model, card, now).await?)
        }
        Change::AuditAction { action, actor, .. } => {
            audit(session, &(**action).clone().into(), now, actor).await?;
            Changed::Nothing
        }
        Change::Catalog { catalog, actor, .. } => {
            Changed::Catalog(store_catalog(session, catalog, now, actor).await?)
        }
        Change::Import { batch, actor, .. } => {
            import(session, books, batch, now, actor).await?;
            Changed::Nothing
        }
        Change::CostVersion { route, .. } => {
            Changed::Cost(cost_version(session, route, now).await?)
        }
    };
    Ok((made, begun))
}

async fn price_version(
    session: &Session,
    model: &str,
    card: &str,
    now: UnixMs,
) -> Result<PriceVersion, ChangeError> {
    let select = "SELECT id FROM price_versions WHERE model = $1 AND card = $2";
    if let Some(keys) = session.client.query_opt(select, &[&model, &card]).await? {
        return Ok(PriceVersion::new(keys.try_get(0)?, model, card));
    }
    let insert = "INSERT INTO price_versions (model, card, created_at) VALUES ($1, $2, $3)
                  ON CONFLICT (model, card) DO NOTHING RETURNING id";
    let made = session
        .client
        .query_opt(insert, &[&model, &card, &now.get()])
        .await?;
    let row = match made {
        Some(row) => row,
        // Another node has inserted it first.
        None => session.client.query_one(select, &[&model, &card]).await?,
    };
    Ok(PriceVersion::new(row.try_get(0)?, model, card))
}

async fn cost_version(
    session: &Session,
    route: &CostedRoute,
    now: UnixMs,
) -> Result<CostVersion, ChangeError> {
    let (model, channel, card) = (&*route.model, &*route.channel, &*route.card);
    let select = "SELECT id FROM cost_versions WHERE model = $1 AND channel = $2 AND card = $3";
    let known = session
        .client
        .query_opt(select, &[&model, &channel, &card])
        .await?;
    if let Some(row) = known {
        return Ok(CostVersion::new(row.try_get(0)?, model, channel, card));
    }
    let insert =
        "INSERT INTO cost_versions (model, channel, card, created_at) VALUES ($1, $2, $3, $4)
                  ON CONFLICT (model, channel, card) DO NOTHING RETURNING id";
    let made = session
        .client
        .query_opt(insert, &[&model, &channel, &card, &now.get()])
        .await?;
    let row = match made {
        Some(row) => row,
        // Another node has inserted it first.
        None => {
            session
                .client
                .query_one(select, &[&model, &channel, &card])
                .await?
        }
    };
    Ok(CostVersion::new(row.try_get(0)?, model, channel, card))
}
