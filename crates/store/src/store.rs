//! The store and its operations.

mod access;
mod money;
mod statement;
mod tasks;

use std::time::Duration;

use ledger::Micro;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::backend::{Backend, on};
use crate::chain::WalletHead;
use crate::clock;
use crate::error::{AdmitError, OpenError, StoreError};
use crate::queue::command::Admitted;
use crate::queue::command::{Change, Command, CostedRoute, KeyEdit, NewCatalog, Reply};
use crate::queue::durable::Durable;
use crate::records::accounts::{
    KeyChange, KeyHead, KeyRotation, KeyRow, NewKey, NewWallet, WalletRow,
};
use crate::records::audit::{Actor, AuditQuery, AuditRow};
use crate::records::call::{Admit, Close, Extend, SessionStep};
use crate::records::catalog::{CatalogDocument, Deed};
use crate::records::cost::{CostRow, CostVersion};
use crate::records::entries::{EntryQuery, EntryRow, PriceRow};
use crate::records::ids::{Digest, HoldId, KeyId, PriceVersion, WalletId};
use crate::records::journal::{JournalEntry, JournalPage, JournalQuery, JournalRow};
use crate::records::key_query::KeyQuery;
use crate::records::names::{AccountNames, FoundAccounts};
use crate::records::recovery::Recovery;
use crate::records::settled::Settled;
use crate::settings::Settings;
use crate::stats::{Counters, Stats};
use crate::usage::{UsageQuery, UsageRow};
use crate::verify::VerifyReport;

/// How long a caller waits for a decision or a lookup.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Durable state. Cheap to clone. When the last clone is dropped, everything queued is written and the database
/// is closed.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) backend: Backend,
}

/// Opening, closing and health.
impl Store {
    /// Opens the store for a server: takes the server lock, migrates, begins a new epoch, and closes the holds
    /// of earlier epochs as abandoned.
    pub fn open(settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        let (backend, recovery) = Backend::open(settings)?;
        Ok((Self { backend }, recovery))
    }

    /// Opens the store for a command, beside a server that may be running: for reads and administrative
    /// changes, without admission.
    pub fn attach(settings: &Settings) -> Result<Self, OpenError> {
        let backend = Backend::attach(settings)?;
        Ok(Self { backend })
    }

    /// Returns when everything queued so far is durable.
    pub async fn flush(&self) -> Result<(), StoreError> {
        on!(self, backend => backend.flush().await)
    }

    /// Whether admissions can be decided and made durable: the writer and the disk answer within two seconds,
    /// commits succeed, and there is enough disk space.
    pub fn healthy(&self) -> bool {
        on!(self, backend => backend.healthy())
    }

    /// A reading of the counters.
    pub fn stats(&self) -> Stats {
        on!(self, backend => backend.stats())
    }

    /// What this process has settled and committed, by model.
    pub fn settled(&self) -> Vec<Settled> {
        self.counters().settled.read()
    }

    pub(crate) fn counters(&self) -> &Counters {
        on!(self, backend => backend.counters())
    }
}

/// Calls.
impl Store {
    /// Decides a call: wallet, key, limits and rates in one step, all or nothing. Returns when it is decided.
    /// [`Admitted::durable`] tells when the hold is on the disk.
    pub async fn admit(&self, admit: Admit) -> Result<Admitted, AdmitError> {
        on!(self, backend => backend.may_admit())?;
        match self.backend.admit_now(admit) {
            Ok(decided) => decided,
            // Boxed, because a future this large would enlarge every future that awaits it.
            Err(admit) => Box::pin(self.ask_admission(admit)).await,
        }
    }

    async fn ask_admission(&self, admit: Admit) -> Result<Admitted, AdmitError> {
        let (reply, answer) = oneshot::channel();
        self.backend.push(Command::Admit(admit, reply)).await?;
        // A grant that comes too late is dropped, which closes its hold.
        let granted = timeout(ANSWERED_WITHIN, answer)
            .await
            .map_err(|_| AdmitError::Unavailable)?
            .map_err(|_| AdmitError::Unavailable)??;
        granted.accept().ok_or(AdmitError::Unavailable)
    }

    /// Grows an open hold by credits and tokens.
    pub async fn extend(&self, extend: Extend) -> Result<Durable, AdmitError> {
        let (reply, answer) = oneshot::channel();
        self.backend.push(Command::Extend(extend, reply)).await?;
        answer.await.map_err(|_| AdmitError::Unavailable)?
    }

    /// Books what a session has used and extends its hold. Returns how far the hold reaches, from the beginning
    /// of the session: as far as requested, or as far as affordable.
    pub async fn step_session(&self, step: SessionStep) -> Result<Micro, AdmitError> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Step(Box::new(step), reply);
        self.backend.push(command).await?;
        answer.await.map_err(|_| AdmitError::Unavailable)?
    }

    /// Stops counting a hold against its key's concurrency, because the caller is gone and the upstream is only
    /// drained. The hold stays open.
    pub fn stop_counting(&self, hold: HoldId) {
        self.backend.push_close(Command::Uncount(hold));
    }

    /// Closes a hold. Never fails and never waits. The first close of a hold wins, and later ones are counted.
    pub fn close(&self, close: Close) {
        self.backend.close(close);
    }

    /// A key and its wallet at one instant, after all settlements that were queued before. What it shows is
    /// durable.
    pub async fn balance(&self, key: &KeyId) -> Result<(ledger::Wallet, ledger::Key), StoreError> {
        let balance = self.ask(|reply| Command::Balance(*key, clock::now(), reply));
        found_in_time(balance).await
    }

    /// The key with this digest.
    pub async fn key_by_digest(&self, digest: &Digest) -> Result<Option<KeyHead>, StoreError> {
        on!(self, backend => backend.key_by_digest(*digest).await)
    }

    /// The version of a price card. Stored if it is new, and kept forever.
    pub async fn price_version(
        &self,
        model: &str,
        card_json: &str,
    ) -> Result<PriceVersion, StoreError> {
        let (owned, card) = (model.to_owned(), card_json.to_owned());
        let version = self.change(|reply| Change::PriceVersion {
            model: owned,
            card,
            now: clock::now(),
            reply,
        });
        let version = version.await?;
        self.counters().settled.name(version, model);
        Ok(version)
    }

    /// Writes a row of the audit about something that changes nothing in the store.
    pub async fn note_deed(&self, deed: Deed, actor: &Actor) -> Result<(), StoreError> {
        let (deed, actor) = (Box::new(deed), Box::new(actor.clone()));
        let noted = self.change(|reply| Change::Deed {
            deed,
            now: clock::now(),
            actor,
            reply,
        });
        noted.await
    }

    /// Stores a catalog as the one after version `expected` (0: none yet), and the row of the audit with it. Returns
    /// its version, or `None` if `expected` is not the latest.
    pub async fn replace_catalog(
        &self,
        expected: i64,
        document: String,
        deed: Deed,
        actor: &Actor,
    ) -> Result<Option<i64>, StoreError> {
        let catalog = Box::new(NewCatalog {
            expected,
            document,
            deed,
        });
        let actor = Box::new(actor.clone());
        let stored = self.change(|reply| Change::Catalog {
            catalog,
            now: clock::now(),
            actor,
            reply,
        });
        stored.await
    }

    /// The latest stored catalog.
    pub async fn latest_catalog(&self) -> Result<Option<CatalogDocument>, StoreError> {
        on!(self, backend => backend.latest_catalog().await)
    }

    /// The version of the latest stored catalog, 0 if there is none.
    pub async fn catalog_version(&self) -> Result<i64, StoreError> {
        on!(self, backend => backend.catalog_version().await)
    }

    /// The version of a route's cost card. Stored if it is new, and kept forever.
    pub async fn cost_version(
        &self,
        model: &str,
        channel: &str,
        card_json: &str,
    ) -> Result<CostVersion, StoreError> {
        let route = CostedRoute {
            model: model.to_owned(),
            channel: channel.to_owned(),
            card: card_json.to_owned(),
        };
        let version = self.change(|reply| Change::CostVersion {
            route,
            now: clock::now(),
            reply,
        });
        version.await
    }
}

/// Wallets and keys. Changes are durable when they return, together with the row of the audit that names the actor.
impl Store {
    /// Creates a wallet. Its initial amounts are booked as entries.
    pub async fn create_wallet(
        &self,
        new: NewWallet,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let id = WalletId::random();
        self.change(|reply| Change::CreateWallet {
            id,
            new,
            now: clock::now(),
            actor: Box::new(actor.clone()),
            reply,
        })
        .await
    }

    /// All wallets, oldest first.
    pub async fn wallets(&self) -> Result<Vec<WalletRow>, StoreError> {
        on!(self, backend => backend.wallets().await)
    }

    /// The wallet with this id or name.
    pub async fn find_wallet(&self, name_or_id: &str) -> Result<Option<WalletRow>, StoreError> {
        on!(self, backend => backend.find_wallet(name_or_id.to_owned()).await)
    }

    /// Creates a key of a wallet.
    pub async fn create_key(&self, new: NewKey, actor: &Actor) -> Result<KeyRow, StoreError> {
        let id = KeyId::random();
        self.change(|reply| Change::CreateKey {
            id,
            new,
            now: clock::now(),
            actor: Box::new(actor.clone()),
            reply,
        })
        .await
    }

    /// The keys of a wallet, or all keys, oldest first.
    pub async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        let found = on!(self, backend => backend.keys(wallet).await)?;
        Ok(as_of_now(found))
    }

    /// The keys that a search finds, newest first.
    pub async fn search_keys(&self, query: KeyQuery) -> Result<Vec<KeyRow>, StoreError> {
        let found = on!(self, backend => backend.search_keys(query).await)?;
        Ok(as_of_now(found))
    }

    /// The key with this id.
    pub async fn find_key(&self, key: &KeyId) -> Result<Option<KeyRow>, StoreError> {
        let found = on!(self, backend => backend.find_key(*key).await)?;
        Ok(found.map(|row| row.at(clock::now())))
    }

    /// Changes a key's name and limits, effective at the next admission.
    pub async fn update_key(
        &self,
        key: KeyId,
        change: KeyChange,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        self.change_key(key, KeyEdit::Limits(change), actor).await
    }

    /// Replaces the secret of a key. The one before it ends at once or at a set time, and any older one at once.
    pub async fn rotate_key(
        &self,
        key: KeyId,
        rotation: KeyRotation,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        self.change_key(key, KeyEdit::Rotate(rotation), actor).await
    }

    /// Allows or stops calls with this key.
    pub async fn set_key_enabled(
        &self,
        key: KeyId,
        enabled: bool,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        self.change_key(key, KeyEdit::Enabled(enabled), actor).await
    }

    async fn change_key(
        &self,
        key: KeyId,
        edit: KeyEdit,
        actor: &Actor,
    ) -> Result<KeyRow, StoreError> {
        let now = clock::now();
        let changed = self.change(|reply| Change::Key {
            key,
            edit,
            now,
            actor: Box::new(actor.clone()),
            reply,
        });
        Ok(changed.await?.at(now))
    }

    /// Rows of the audit, newest first.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditRow>, StoreError> {
        on!(self, backend => backend.audit(query).await)
    }

    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce(Reply<T>) -> Change,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Command::Change(change(reply))).await
    }

    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.backend.push(command(reply)).await?;
        let (value, durable) = answer.await.map_err(|_| StoreError::Unavailable)??;
        durable.wait().await.map_err(|_| StoreError::Unavailable)?;
        Ok(value)
    }
}

fn as_of_now(rows: Vec<KeyRow>) -> Vec<KeyRow> {
    let now = clock::now();
    rows.into_iter().map(|row| row.at(now)).collect()
}

/// The result of a lookup, or an error if the store does not answer in time.
pub(crate) async fn found_in_time<T>(
    look: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let found = timeout(ANSWERED_WITHIN, look).await;
    found.unwrap_or(Err(StoreError::Unavailable))
}

/// Verification, entries and the journal.
impl Store {
    /// Recomputes every invariant from the entries, in one snapshot of the live database.
    pub async fn verify(&self) -> Result<VerifyReport, StoreError> {
        self.verify_with(Vec::new()).await
    }

    /// The same, and checks that every head that was noted before is still part of its wallet's chain.
    pub async fn verify_with(&self, noted: Vec<WalletHead>) -> Result<VerifyReport, StoreError> {
        on!(self, backend => backend.verify(noted).await)
    }

    /// The names of these wallets and keys.
    pub async fn account_names(
        &self,
        wallets: Vec<WalletId>,
        keys: Vec<KeyId>,
    ) -> Result<AccountNames, StoreError> {
        on!(self, backend => backend.account_names(wallets, keys).await)
    }

    /// Wallets and keys whose names contain a text, in any case, or whose ids begin with it. A key is also found
    /// by its secret.
    pub async fn find_accounts(&self, text: &str, limit: u32) -> Result<FoundAccounts, StoreError> {
        on!(self, backend => backend.find_accounts(text.to_owned(), limit).await)
    }

    /// Entries in the order of their posting, a page at a time.
    pub async fn entries(&self, query: EntryQuery) -> Result<Vec<EntryRow>, StoreError> {
        on!(self, backend => backend.entries(query).await)
    }

    /// Every price card, oldest first.
    pub async fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        on!(self, backend => backend.prices().await)
    }

    /// Every cost card, oldest first.
    pub async fn costs(&self) -> Result<Vec<CostRow>, StoreError> {
        on!(self, backend => backend.costs().await)
    }

    /// Adds a row to the journal. Never waits: a row that does not fit into the queue is dropped and counted.
    pub fn journal_append(&self, row: JournalRow) {
        on!(self, backend => backend.journal_append(row));
    }

    /// Rows of the journal, newest first.
    pub async fn journal(&self, query: JournalQuery) -> Result<Vec<JournalEntry>, StoreError> {
        on!(self, backend => backend.journal(query).await)
    }

    /// The same, a page at a time and never for long: a page may have few rows, or none, and still say where the
    /// search goes on.
    pub async fn journal_page(&self, query: JournalQuery) -> Result<JournalPage, StoreError> {
        on!(self, backend => backend.journal_page(query).await)
    }

    /// Counts calls. Fast however many there are, because the journal's writers keep the sums.
    pub async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        on!(self, backend => backend.usage(query).await)
    }
}
