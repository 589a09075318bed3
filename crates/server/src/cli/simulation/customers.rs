//! The invented customers of the demo: wallets and keys whose calls fill the console.

use engine::Engine;
use ledger::{Micro, UnixMs};
use store::{Actor, KeyChange, KeyRow, NewWallet, Store, WalletRow};

use super::book_day;
use crate::cli::terminal::CommandError;
use crate::operations::keys::{self, KeyDraft};

/// A wallet, its first top-up, and its keys. The first key makes calls while the demo runs.
struct Customer {
    name: &'static str,
    credit_limit: Micro,
    /// The top-up that is booked before the calls of the past day. If it is zero, the wallet uses its credit line.
    paid: Micro,
    keys: &'static [Key],
}

struct Key {
    name: &'static str,
    limit: Option<Micro>,
    rpm: Option<u32>,
}

const CUSTOMERS: [Customer; 3] = [
    Customer {
        name: "web-shop",
        credit_limit: Micro::new(25_000_000),
        paid: Micro::new(120_000_000),
        keys: &[
            Key {
                name: "production",
                limit: None,
                rpm: Some(600),
            },
            Key {
                name: "staging",
                limit: Some(Micro::new(5_000_000)),
                rpm: Some(60),
            },
        ],
    },
    Customer {
        name: "support-bot",
        credit_limit: Micro::new(50_000_000),
        paid: Micro::ZERO,
        keys: &[Key {
            name: "agents",
            limit: Some(Micro::new(40_000_000)),
            rpm: None,
        }],
    },
    Customer {
        name: "research",
        credit_limit: Micro::new(10_000_000),
        paid: Micro::new(40_000_000),
        keys: &[
            Key {
                name: "notebooks",
                limit: None,
                rpm: Some(120),
            },
            Key {
                name: "evaluation",
                limit: Some(Micro::new(3_000_000)),
                rpm: None,
            },
        ],
    },
];

/// The audit names the demo as the actor, not the person who started it.
fn actor() -> Actor {
    Actor::cli("demo")
}

/// Creates the customers that do not exist, with their past day. Returns fresh secrets for their calls: secrets are not
/// stored, so each start rotates them.
pub(super) async fn prepare(engine: &Engine, now: UnixMs) -> Result<Vec<String>, CommandError> {
    let store = engine.store();
    create_missing(engine, now).await?;
    let mut secrets = Vec::new();
    for customer in &CUSTOMERS {
        if let (Some(wallet), Some(first)) = (
            store.find_wallet(customer.name).await?,
            customer.keys.first(),
        ) {
            secrets.extend(fresh_secret(store, &wallet, first).await?);
        }
    }
    Ok(secrets)
}

/// Creates the customers whose wallets do not exist. Looks up each wallet separately, because somebody may have renamed
/// one of them.
async fn create_missing(engine: &Engine, now: UnixMs) -> Result<(), CommandError> {
    let store = engine.store();
    let mut made: Vec<(KeyRow, &Key)> = Vec::new();
    // One element for each key of all customers. Existing customers have `None`, because their past day is already
    // booked.
    let mut callers: Vec<Option<KeyRow>> = Vec::new();
    for customer in &CUSTOMERS {
        if store.find_wallet(customer.name).await?.is_some() {
            callers.extend(customer.keys.iter().map(|_| None));
            continue;
        }
        let wallet = NewWallet {
            name: customer.name.to_owned(),
            balance: Micro::ZERO,
            gift: Micro::ZERO,
            credit_limit: customer.credit_limit,
        };
        let wallet = store.create_wallet(wallet, &actor()).await?.id;
        if customer.paid > Micro::ZERO {
            let note = "First payment";
            store.top_up(wallet, customer.paid, note, &actor()).await?;
        }
        for one in customer.keys {
            // The limits are set after the past day is booked, so that they do not refuse any of its calls.
            let draft = KeyDraft::named(wallet, one.name);
            let (row, _) = keys::create(store, draft, &actor()).await?;
            callers.push(Some(row.clone()));
            made.push((row, one));
        }
    }
    if made.is_empty() {
        return Ok(());
    }
    book_day::write(engine, &callers, now).await?;
    for (row, key) in made {
        let change = KeyChange {
            limit: Some(key.limit),
            rpm: Some(key.rpm),
            ..KeyChange::default()
        };
        store.update_key(row.id, change, &actor()).await?;
    }
    Ok(())
}

/// Rotates the key of this name, so that only the running demo knows its secret. `None` if somebody has renamed or
/// disabled the key.
async fn fresh_secret(
    store: &Store,
    wallet: &WalletRow,
    wanted: &Key,
) -> Result<Option<String>, CommandError> {
    let keys = store.keys(Some(wallet.id)).await?;
    let is_wanted = |row: &&KeyRow| row.key.enabled && row.name.as_deref() == Some(wanted.name);
    let Some(row) = keys.iter().find(is_wanted) else {
        return Ok(None);
    };
    let (_, secret) = keys::rotate(store, row.id, None, &actor()).await?;
    Ok(Some(secret))
}
