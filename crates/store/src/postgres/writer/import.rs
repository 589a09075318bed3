//! Creates imported accounts. The statements of a batch are sent without waiting for each other's answers.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use ledger::{Micro, UnixMs};
use tokio_postgres::Statement;

use super::audit::INSERT as INSERT_AUDIT;
use super::change_lock::ChangeError;
use crate::books::{Books, NewAuditRow, WalletOpening};
use crate::chain::Head;
use crate::error::StoreError;
use crate::postgres::connection::ledger_connection::Session;
use crate::records::accounts::KeyRow;
use crate::records::audit::Actor;
use crate::records::calendar::Calendar;
use crate::records::ids::WalletId;
use crate::records::import::{ImportBatch, ImportedKey, ImportedWallet};
use crate::records::tags::tags_column;

const INSERT_WALLET: &str =
    "INSERT INTO wallets (id, name, status, created_at, head) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING RETURNING n";

const WALLETS: &str = "SELECT id, n, name FROM wallets WHERE id = ANY($1)";

const KNOWN_SECRETS: &str =
    "SELECT shown_prefix FROM keys WHERE digest = ANY($1) OR old_digest = ANY($1) LIMIT 1";

const INSERT_KEY: &str =
    "INSERT INTO keys (id, wallet, name, digest, shown_prefix, enabled, expires_at, spend_limit, rpm_limit,
    tpm_limit, concurrency_limit, created_at, models, tags, window_amount, window_per, window_zone, old_digest,
    old_secret_until)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    ON CONFLICT DO NOTHING RETURNING n";

pub(super) async fn import(
    session: &Session,
    books: &mut Books,
    batch: &ImportBatch,
    now: UnixMs,
    actor: &Actor,
) -> Result<(), ChangeError> {
    let mut audited = Vec::with_capacity(batch.wallets.len() + batch.keys.len());
    create_wallets(session, books, batch, now, actor, &mut audited).await?;
    create_keys(session, batch, now, &mut audited).await?;
    let statement = session.client.prepare(INSERT_AUDIT).await?;
    let rows = audited.iter();
    try_join_all(rows.map(|row| super::audit::insert(session, &statement, row, now, actor)))
        .await?;
    Ok(())
}

async fn create_wallets(
    session: &Session,
    books: &mut Books,
    batch: &ImportBatch,
    now: UnixMs,
    actor: &Actor,
    audited: &mut Vec<NewAuditRow>,
) -> Result<(), ChangeError> {
    let statement = session.client.prepare(INSERT_WALLET).await?;
    let openings = batch.wallets.iter().map(ImportedWallet::opening);
    let openings = openings.collect::<Result<Vec<_>, _>>()?;
    let inserts = batch.wallets.iter().zip(&openings);
    let inserts =
        inserts.map(|(wallet, opening)| insert_wallet(session, &statement, wallet, opening, now));
    let numbers = try_join_all(inserts).await?;
    for ((wallet, opening), n) in batch.wallets.iter().zip(openings).zip(numbers) {
        audited.push(NewAuditRow::wallet_created(&wallet.row(&opening, now)));
        books.open_wallet(n, wallet.id, opening, now, &actor.name);
    }
    Ok(())
}

async fn insert_wallet(
    session: &Session,
    statement: &Statement,
    wallet: &ImportedWallet,
    opening: &WalletOpening,
    now: UnixMs,
) -> Result<i64, ChangeError> {
    let (id, status) = (wallet.id.to_string(), opening.wallet.status.as_str());
    let head = Head::of_wallet(wallet.id);
    let made = session
        .client
        .query_opt(statement, &[&id, &wallet.name, &status, &now.get(), &head])
        .await?;
    match made {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(ChangeError::Refused(StoreError::Taken {
            what: "wallet",
            name: wallet.name.clone(),
        })),
    }
}

async fn create_keys(
    session: &Session,
    batch: &ImportBatch,
    now: UnixMs,
    audited: &mut Vec<NewAuditRow>,
) -> Result<(), ChangeError> {
    let client = &session.client;
    let digests = batch.keys.iter().flat_map(|key| {
        let second = key.second_secret.as_ref().map(|(digest, _)| digest);
        [Some(&key.new.digest), second].into_iter().flatten()
    });
    let digests: Vec<&[u8]> = digests.map(|digest| digest.as_bytes().as_slice()).collect();
    if let Some(row) = client.query_opt(KNOWN_SECRETS, &[&digests]).await? {
        return Err(taken(row.try_get(0)?));
    }
    let ids = batch.keys.iter().map(|key| key.new.wallet.to_string());
    let ids: Vec<String> = ids.collect();
    let mut wallets: HashMap<WalletId, (i64, String)> = HashMap::new();
    for row in client.query(WALLETS, &[&ids]).await? {
        wallets.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    let statement = client.prepare(INSERT_KEY).await?;
    let mut rows = Vec::with_capacity(batch.keys.len());
    for key in &batch.keys {
        let missing = || StoreError::NotFound {
            what: "wallet",
            id: key.new.wallet.to_string(),
        };
        let (n, name) = wallets.get(&key.new.wallet).ok_or_else(missing)?;
        rows.push((*n, key, key.row(name.clone(), now)?));
    }
    let inserts = rows.iter();
    let inserts = inserts.map(|(n, key, row)| insert_key(session, &statement, *n, key, row));
    try_join_all(inserts).await?;
    audited.extend(rows.iter().map(|(_, _, row)| NewAuditRow::key_created(row)));
    Ok(())
}

async fn insert_key(
    session: &Session,
    statement: &Statement,
    wallet: i64,
    key: &ImportedKey,
    row: &KeyRow,
) -> Result<(), ChangeError> {
    let (limits, calendar) = (&row.key, row.calendar.as_ref());
    let second = key.second_secret.as_ref();
    let made = session
        .client
        .query_opt(
            statement,
            &[
                &row.id.to_string(),
                &wallet,
                &row.name,
                &key.new.digest.as_bytes().as_slice(),
                &row.shown_prefix,
                &limits.enabled,
                &limits.expires_at.map(UnixMs::get),
                &limits.limit.map(Micro::get),
                &limits.rpm_limit.map(i64::from),
                &limits.tpm_limit.map(i64::from),
                &limits.concurrency_limit.map(i64::from),
                &row.created_at.get(),
                &row.models.as_ref().map(ToString::to_string),
                &tags_column(&row.tags),
                &limits.window.map(|window| window.amount.get()),
                &calendar.map(|calendar| calendar.per().as_str()),
                &calendar.map(Calendar::time_zone),
                &second.map(|(digest, _)| digest.as_bytes().as_slice()),
                &second.map(|(_, until)| until.get()),
            ],
        )
        .await?;
    match made {
        Some(_) => Ok(()),
        None => Err(taken(row.shown_prefix.clone())),
    }
}

fn taken(shown_prefix: String) -> ChangeError {
    ChangeError::Refused(StoreError::Taken {
        what: "key",
        name: shown_prefix,
    })
}
