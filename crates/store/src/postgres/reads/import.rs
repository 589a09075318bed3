//! Finds out which parts of an import already exist in the ledger.

use std::sync::Arc;

use ledger::Micro;
use tokio_postgres::Client;

use crate::records::ids::{Digest, KeyId};
use crate::records::import::{ImportKnown, ImportQuery};

type Read<T> = Result<T, tokio_postgres::Error>;

const WALLETS: &str = "SELECT w.id, (e.balance_delta + e.gift_delta - e.credit_delta)::bigint
    FROM unnest($1::text[], $2::text[]) AS asked(id, reference) JOIN wallets w ON w.id = asked.id
    LEFT JOIN entries e ON e.wallet = w.n AND e.reference = asked.reference";
const NAMES: &str = "SELECT name, id FROM wallets WHERE name = ANY($1)";
const KEYS: &str = "SELECT id FROM keys WHERE id = ANY($1)";
const DIGESTS: &str = "SELECT digest, id FROM keys WHERE digest = ANY($1)
    UNION ALL SELECT old_digest, id FROM keys WHERE old_digest = ANY($1)";

pub(crate) async fn known(on: Arc<Client>, query: ImportQuery) -> Read<ImportKnown> {
    let mut known = ImportKnown::default();
    let (ids, references): (Vec<String>, Vec<String>) = query
        .wallets
        .iter()
        .map(|(id, reference)| (id.to_string(), reference.clone()))
        .unzip();
    for row in on.query(WALLETS, &[&ids, &references]).await? {
        let booked: Option<i64> = row.try_get(1)?;
        known
            .wallets
            .insert(row.try_get(0)?, booked.map(Micro::new));
    }
    for row in on.query(NAMES, &[&query.names]).await? {
        known.names.insert(row.try_get(0)?, row.try_get(1)?);
    }
    let keys: Vec<String> = query.keys.iter().map(KeyId::to_string).collect();
    for row in on.query(KEYS, &[&keys]).await? {
        known.keys.insert(row.try_get(0)?);
    }
    let digests = query
        .digests
        .iter()
        .map(|digest| digest.as_bytes().as_slice());
    let digests: Vec<&[u8]> = digests.collect();
    for row in on.query(DIGESTS, &[&digests]).await? {
        let bytes: &[u8] = row.try_get(0)?;
        if let Ok(bytes) = bytes.try_into() {
            known.digests.insert(Digest::new(bytes), row.try_get(1)?);
        }
    }
    Ok(known)
}
