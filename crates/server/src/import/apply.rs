//! Compares a plan with the store and creates the missing accounts.
//!
//! The ids of wallets and keys are derived from their origin. So a second run, or a run after the first was killed,
//! finds the existing accounts and creates the rest.

use std::collections::{HashMap, HashSet};

use ledger::{Micro, UnixMs, WalletStatus};
use serde_json::json;
use store::{
    Actor, AuditAction, Digest, ImportBatch, ImportKnown, ImportQuery, ImportedKey, ImportedWallet,
    KeyId, NewKey, Store, StoreError, WalletId,
};

use super::exact::Amount;
use super::hex::hex;
use super::outcome::Outcome;
use super::plan::{ImportPlan, Leftover, PlannedKey, PlannedSecret, PlannedWallet, SumKind};
use super::secrets_file::SecretsFile;
use crate::operations::secret;

/// The number of accounts that one query compares.
const COMPARED_AT_ONCE: usize = 1_000;
/// The number of accounts that one transaction creates.
const CREATED_AT_ONCE: usize = 400;
/// The maximum length of the name of a wallet or key, and of the reference of an entry.
const TEXT_CHARS_MAX: usize = 200;
const LISTED_TWICE: &str = "listed twice; the first one counts";

/// Why an import stopped. Accounts that were already created stay, and the next run continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the list of secrets: {0}")]
    Secrets(std::io::Error),
    #[error("{0} keys need new secrets; name a file for the list of them with --secrets FILE")]
    NoSecretsFile(usize),
}

/// The accounts to create, after the comparison with the store.
#[derive(Debug)]
pub(crate) struct Comparison {
    wallets: Vec<ImportedWallet>,
    keys: Vec<NewImportedKey>,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
struct NewImportedKey {
    key: ImportedKey,
    origin: String,
    wallet_name: String,
    needs_secret: bool,
}

impl Comparison {
    /// Whether there is nothing left to create.
    pub(crate) fn is_empty(&self) -> bool {
        self.wallets.is_empty() && self.keys.is_empty()
    }

    /// The number of keys that get a new secret.
    pub(crate) fn fresh_secrets(&self) -> usize {
        self.keys.iter().filter(|key| key.needs_secret).count()
    }
}

/// The reference of an object that is imported from `source`. A reference that is too long or contains control
/// characters is replaced with its digest.
fn reference(source: &str, origin: &str) -> String {
    let text = format!("import:{source}:{origin}");
    let is_short = text.chars().count() <= TEXT_CHARS_MAX;
    if is_short && !text.chars().any(char::is_control) {
        return text;
    }
    let digest = Digest::of(text.as_bytes());
    format!("import:{}", hex(digest.as_bytes()))
}

/// Compares a plan with the store. Without a store, everything is missing.
pub(crate) async fn compare(
    store: Option<&Store>,
    plan: &ImportPlan,
    source: &str,
) -> Result<Comparison, ImportError> {
    let known = match store {
        Some(store) => existing_accounts(store, plan, source).await?,
        None => ImportKnown::default(),
    };
    let mut comparison = Comparison {
        wallets: Vec::new(),
        keys: Vec::new(),
        outcome: Outcome::of(plan),
    };
    let mut names: HashSet<String> = known.names.keys().cloned().collect();
    let existing = known.names.iter();
    let names_by_wallet: HashMap<WalletId, &str> =
        existing.map(|(name, wallet)| (*wallet, &**name)).collect();
    let mut wallets = HashMap::new();
    for planned in &plan.wallets {
        let reference = reference(source, &planned.origin);
        let id = WalletId::derived(&reference);
        if wallets.contains_key(planned.origin.as_str()) {
            comparison.leave_wallet(planned, LISTED_TWICE.to_owned());
            continue;
        }
        let name = if let Some(booked) = known.wallets.get(&id) {
            comparison.found_wallet(planned, booked.unwrap_or(Micro::ZERO));
            existing_name(store, id, &names_by_wallet).await?
        } else {
            let name = free_name(planned, source, &names);
            names.insert(name.clone());
            comparison.new_wallet(planned, id, name.clone(), reference);
            name
        };
        wallets.insert(planned.origin.as_str(), (id, name));
    }
    let mut digests = HashSet::new();
    let mut keys = HashSet::new();
    for planned in &plan.keys {
        let id = KeyId::derived(&reference(source, &planned.origin));
        if !keys.insert(id) {
            comparison.leave_key(planned, LISTED_TWICE.to_owned());
            continue;
        }
        if known.keys.contains(&id) {
            comparison.outcome.found_key(planned);
            continue;
        }
        let Some((wallet, wallet_name)) = wallets.get(planned.wallet.as_str()) else {
            comparison.leave_key(planned, "its wallet is not imported".to_owned());
            continue;
        };
        if let Some(reason) = secret_is_taken(planned, &known, &mut digests) {
            comparison.leave_key(planned, reason);
            continue;
        }
        comparison.outcome.new_key(planned);
        comparison.keys.push(NewImportedKey {
            key: imported_key(planned, id, *wallet),
            origin: planned.origin.clone(),
            wallet_name: wallet_name.clone(),
            needs_secret: matches!(planned.secret, PlannedSecret::Fresh),
        });
    }
    Ok(comparison)
}

/// Creates the missing accounts, a few hundred at a time.
pub(crate) async fn create(
    store: &Store,
    comparison: Comparison,
    source: &str,
    mut secrets: Option<&mut SecretsFile>,
    actor: &Actor,
) -> Result<Outcome, ImportError> {
    let fresh = comparison.fresh_secrets();
    if fresh > 0 && secrets.is_none() {
        return Err(ImportError::NoSecretsFile(fresh));
    }
    let is_empty = comparison.is_empty();
    let booked = comparison.wallets.iter();
    let booked: Amount = booked.map(|wallet| Amount::from(wallet.balance)).sum();
    for wallets in comparison.wallets.chunks(CREATED_AT_ONCE) {
        let batch = ImportBatch {
            wallets: wallets.to_vec(),
            keys: Vec::new(),
        };
        store.import(batch, actor).await?;
    }
    let mut keys = comparison.keys;
    for keys in keys.chunks_mut(CREATED_AT_ONCE) {
        // The secrets are on disk before the keys exist. If the process is killed in between, a useless line remains,
        // but no secret is lost.
        let mut lines = Vec::new();
        for new in keys.iter_mut().filter(|key| key.needs_secret) {
            let (secret, shown) = secret::fresh();
            new.key.new.digest = Digest::of(secret.as_bytes());
            new.key.new.shown_prefix = shown;
            lines.push([
                new.key.id.to_string(),
                new.wallet_name.clone(),
                new.key.new.name.clone().unwrap_or_default(),
                new.origin.clone(),
                secret,
            ]);
        }
        if let Some(secrets) = secrets.as_deref_mut().filter(|_| !lines.is_empty()) {
            secrets.append(&lines).map_err(ImportError::Secrets)?;
        }
        let batch = ImportBatch {
            wallets: Vec::new(),
            keys: keys.iter().map(|new| new.key.clone()).collect(),
        };
        store.import(batch, actor).await?;
    }
    if !is_empty {
        let outcome = &comparison.outcome;
        let details = json!({
            "wallets": outcome.wallets.created,
            "keys": outcome.keys.created,
            // The balances of the wallets that are counted above, without those that an earlier run created.
            "balance": booked,
        });
        let action = AuditAction {
            action: "import",
            target: source.to_owned(),
            before: None,
            after: Some(details.to_string()),
        };
        store.note_action(action, actor).await?;
    }
    Ok(comparison.outcome)
}

/// The name that an existing wallet has now.
async fn existing_name(
    store: Option<&Store>,
    id: WalletId,
    names: &HashMap<WalletId, &str>,
) -> Result<String, StoreError> {
    if let Some(name) = names.get(&id) {
        return Ok((*name).to_owned());
    }
    // Somebody has renamed the wallet since an earlier run.
    let id = id.to_string();
    let found = match store {
        Some(store) => store.find_wallet(&id).await?,
        None => None,
    };
    Ok(found.map_or(id, |wallet| wallet.name))
}

/// The accounts of a plan that already exist in the store.
async fn existing_accounts(
    store: &Store,
    plan: &ImportPlan,
    source: &str,
) -> Result<ImportKnown, ImportError> {
    let mut known = ImportKnown::default();
    for planned in plan.wallets.chunks(COMPARED_AT_ONCE) {
        let wallets = planned.iter().map(|wallet| {
            let reference = reference(source, &wallet.origin);
            (WalletId::derived(&reference), reference)
        });
        let names = planned
            .iter()
            .flat_map(|wallet| [shown_name(&wallet.name), long_name(wallet, source)]);
        let query = ImportQuery {
            wallets: wallets.collect(),
            names: names.collect(),
            ..ImportQuery::default()
        };
        let found = store.import_known(query).await?;
        known.wallets.extend(found.wallets);
        known.names.extend(found.names);
    }
    for planned in plan.keys.chunks(COMPARED_AT_ONCE) {
        let keys = planned.iter();
        let query = ImportQuery {
            keys: keys
                .map(|key| KeyId::derived(&reference(source, &key.origin)))
                .collect(),
            digests: planned.iter().flat_map(digests).collect(),
            ..ImportQuery::default()
        };
        let found = store.import_known(query).await?;
        known.keys.extend(found.keys);
        known.digests.extend(found.digests);
    }
    Ok(known)
}

impl Comparison {
    fn found_wallet(&mut self, planned: &PlannedWallet, booked: Micro) {
        let outcome = &mut self.outcome;
        outcome.wallets.existing += 1;
        let difference = Amount::from(planned.balance) - Amount::from(booked);
        outcome.money.add(planned.money, planned.balance);
        if difference != Amount::ZERO {
            outcome.money.carried = outcome.money.carried - difference;
            outcome.money.left = outcome.money.left + difference;
            outcome.leftovers.push(Leftover {
                origin: planned.origin.clone(),
                sum: SumKind::Money,
                amount: difference,
                reason: format!("imported before with {booked} credits, and changed there since"),
                is_whole: false,
            });
        }
    }

    fn new_wallet(
        &mut self,
        planned: &PlannedWallet,
        id: WalletId,
        name: String,
        reference: String,
    ) {
        self.outcome.wallets.created += 1;
        self.outcome.money.add(planned.money, planned.balance);
        let status = if planned.is_enabled {
            WalletStatus::Active
        } else {
            WalletStatus::Disabled
        };
        self.wallets.push(ImportedWallet {
            id,
            name,
            status,
            balance: planned.balance,
            credit_limit: planned.credit_limit,
            note: format!("imported from {}", planned.origin),
            reference,
        });
    }

    fn leave_wallet(&mut self, planned: &PlannedWallet, reason: String) {
        let outcome = &mut self.outcome;
        outcome.wallets.left_out += 1;
        outcome.money.left = outcome.money.left + planned.money;
        outcome.leftovers.push(Leftover {
            origin: planned.origin.clone(),
            sum: SumKind::Money,
            amount: planned.money,
            reason,
            is_whole: true,
        });
    }

    fn leave_key(&mut self, planned: &PlannedKey, reason: String) {
        let outcome = &mut self.outcome;
        outcome.keys.left_out += 1;
        let amount = planned.limit_read;
        outcome.limits.left = outcome.limits.left + amount;
        outcome.leftovers.push(Leftover {
            origin: planned.origin.clone(),
            sum: SumKind::Limits,
            amount,
            reason,
            is_whole: true,
        });
    }
}

fn imported_key(planned: &PlannedKey, id: KeyId, wallet: WalletId) -> ImportedKey {
    let (digest, shown, second) = match &planned.secret {
        PlannedSecret::Adopted {
            digest,
            second,
            shown,
        } => (*digest, shown.clone(), *second),
        // These values are replaced when the key is created.
        PlannedSecret::Fresh => (Digest::new([0; 32]), String::new(), None),
    };
    let name = planned.name.as_deref().map(shown_name);
    ImportedKey {
        id,
        new: NewKey {
            wallet,
            name: name.filter(|name| !name.trim().is_empty()),
            digest,
            shown_prefix: shown_name(&shown),
            limits: planned.limits.clone(),
            tags: Vec::new(),
        },
        is_enabled: planned.is_enabled,
        second_secret: second.map(|(digest, until)| (digest, UnixMs::new(until))),
    }
}

fn digests(planned: &PlannedKey) -> impl Iterator<Item = Digest> {
    let found = match &planned.secret {
        PlannedSecret::Adopted { digest, second, .. } => {
            [Some(*digest), second.map(|(digest, _)| digest)]
        }
        PlannedSecret::Fresh => [None, None],
    };
    found.into_iter().flatten()
}

/// The reason why the secret of a key cannot be adopted, if there is one.
fn secret_is_taken(
    planned: &PlannedKey,
    known: &ImportKnown,
    seen: &mut HashSet<Digest>,
) -> Option<String> {
    for digest in digests(planned) {
        if let Some(key) = known.digests.get(&digest) {
            return Some(format!("its secret belongs to {key} already"));
        }
        if !seen.insert(digest) {
            return Some("another key has the same secret".to_owned());
        }
    }
    None
}

/// The name without control characters, truncated to the maximum length.
fn shown_name(name: &str) -> String {
    let printable = name.trim().chars().filter(|it| !it.is_control());
    printable.take(TEXT_CHARS_MAX).collect()
}

fn free_name(planned: &PlannedWallet, source: &str, taken: &HashSet<String>) -> String {
    let name = shown_name(&planned.name);
    let is_usable = !name.is_empty() && !name.starts_with(WalletId::PREFIX);
    if is_usable && !taken.contains(&name) {
        return name;
    }
    long_name(planned, source)
}

/// The wallet's name with its origin, which makes it unique.
fn long_name(planned: &PlannedWallet, source: &str) -> String {
    let name = shown_name(&planned.name);
    let origin = shown_name(&format!("{source} {}", planned.origin));
    let kept = TEXT_CHARS_MAX.saturating_sub(origin.chars().count() + 3);
    let name: String = name.chars().take(kept).collect();
    if name.is_empty() || name.starts_with(WalletId::PREFIX) {
        origin
    } else {
        format!("{name} ({origin})")
    }
}

#[cfg(test)]
mod tests {
    use store::{AuditQuery, Settings, WalletSettings};

    use super::*;

    fn planned_wallet(number: i64) -> PlannedWallet {
        PlannedWallet {
            origin: format!("users:{number}"),
            name: format!("user {number}"),
            is_enabled: true,
            money: Amount::from(Micro::new(number)),
            balance: Micro::new(number),
            credit_limit: Micro::ZERO,
        }
    }

    fn planned_key(number: i64) -> PlannedKey {
        PlannedKey {
            origin: format!("tokens:{number}"),
            wallet: format!("users:{number}"),
            name: None,
            secret: PlannedSecret::Fresh,
            is_enabled: true,
            limit_read: Amount::ZERO,
            limits: store::KeyLimits::default(),
        }
    }

    /// A plan with these wallets and these keys. Each key belongs to the wallet with its number.
    fn plan_of(wallets: &[i64], keys: &[i64]) -> ImportPlan {
        ImportPlan {
            wallets: wallets.iter().copied().map(planned_wallet).collect(),
            keys: keys.iter().copied().map(planned_key).collect(),
            wallets_read: wallets.len(),
            keys_read: keys.len(),
            money_read: Amount::from(Micro::new(wallets.iter().sum())),
            ..ImportPlan::of("new-api")
        }
    }

    /// A run after an earlier one finds the wallets that exist, under the names that they have now.
    #[tokio::test]
    async fn a_later_run_notes_what_it_created_itself_and_names_wallets_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::attach(&Settings::at(folder.path().join("t.db"))).unwrap();
        let path = folder.path().join("secrets");
        let actor = Actor::cli("test");
        let import = async |plan: &ImportPlan| {
            let mut secrets = SecretsFile::open(&path).unwrap();
            let found = compare(Some(&store), plan, "new-api").await.unwrap();
            let secrets = Some(&mut secrets);
            let created = create(&store, found, "new-api", secrets, &actor).await;
            created.unwrap()
        };
        import(&plan_of(&[1, 20], &[])).await;
        let renamed = WalletId::derived(&reference("new-api", "users:20"));
        let settings = WalletSettings {
            name: Some("renamed".to_owned()),
            ..WalletSettings::default()
        };
        store
            .update_wallet(renamed, settings, &actor)
            .await
            .unwrap();
        import(&plan_of(&[1, 20, 300], &[1, 20, 300])).await;

        let rows = store.audit(AuditQuery {
            action: Some("import".to_owned()),
            limit: 10,
            ..AuditQuery::default()
        });
        let rows = rows.await.unwrap();
        let notes = rows.iter().map(|row| row.after.as_deref().unwrap());
        let mut notes: Vec<serde_json::Value> = notes
            .map(|note| serde_json::from_str(note).unwrap())
            .collect();
        notes.sort_by_key(|note| note["keys"].as_u64());
        assert_eq!(
            notes,
            [
                json!({ "wallets": 2, "keys": 0, "balance": "0.000021" }),
                json!({ "wallets": 1, "keys": 3, "balance": "0.0003" }),
            ]
        );
        let list = std::fs::read_to_string(&path).unwrap();
        let lines = list.lines().filter(|line| line.starts_with("key_"));
        let mut names: Vec<_> = lines.filter_map(|line| line.split('\t').nth(1)).collect();
        names.sort_unstable();
        assert_eq!(names, ["renamed", "user 1", "user 300"]);
    }

    #[tokio::test]
    async fn what_is_listed_twice_is_created_once() {
        let money = Amount::from(Micro::new(5));
        let wallet = PlannedWallet {
            origin: "users:1".to_owned(),
            name: "ann".to_owned(),
            is_enabled: true,
            money,
            balance: Micro::new(5),
            credit_limit: Micro::ZERO,
        };
        let key = PlannedKey {
            origin: "tokens:1".to_owned(),
            wallet: wallet.origin.clone(),
            name: None,
            secret: PlannedSecret::Fresh,
            is_enabled: true,
            limit_read: money,
            limits: store::KeyLimits {
                limit: Some(Micro::new(5)),
                ..store::KeyLimits::default()
            },
        };
        let plan = ImportPlan {
            wallets: vec![wallet.clone(), wallet],
            keys: vec![key.clone(), key],
            wallets_read: 2,
            keys_read: 2,
            money_read: money + money,
            limits_read: money + money,
            ..ImportPlan::of("new-api")
        };
        let comparison = compare(None, &plan, "new-api").await.unwrap();
        assert_eq!((comparison.wallets.len(), comparison.keys.len()), (1, 1));
        let outcome = &comparison.outcome;
        assert!(outcome.adds_up(), "{outcome:?}");
        assert_eq!((outcome.wallets.left_out, outcome.keys.left_out), (1, 1));
        assert!(outcome.leftovers.iter().all(|it| it.reason == LISTED_TWICE));
    }
}
