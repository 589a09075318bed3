//! The operations of [`Store`](crate::Store) on `PostgreSQL`.

use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::sync::Arc;

use ledger::{Micro, UnixMs};
use tokio::sync::oneshot;

use super::alerts::lookups as alerts;
use super::backend::{HEALTHY_WITHIN, Postgres};
use super::background::runtime;
use super::journal;
use super::reads::{
    access, accounts as lookups, audit, catalog, entries, import, key_search, names, verify,
};
use super::tasks::{self};
use crate::cache::IdHasher;
use crate::chain::WalletHead;
use crate::error::{AdmitError, StoreError};
use crate::postgres::connection::connect::Role;
use crate::queue::command::{Change, Command};
use crate::queue::command_queue::{CommandQueue, PushError};
use crate::records::access::{SessionRow, TokenQuery, TokenRow};
use crate::records::accounts::{KeyHead, KeyRow, WalletRow, WalletsBeyondCredit};
use crate::records::alerts::{
    AlertQuery, AlertRow, AlertSignal, LowWallet, RuleRow, ScanPage, Webhook,
};
use crate::records::audit::{AuditQuery, AuditRow};
use crate::records::catalog::CatalogDocument;
use crate::records::cost::CostRow;
use crate::records::entries::{EntryQuery, EntryRow, PriceRow};
use crate::records::ids::{Digest, KeyId, PriceNumber, RuleId, WalletId};
use crate::records::import::{ImportKnown, ImportQuery};
use crate::records::journal::{JournalEntry, JournalPage, JournalQuery, JournalRow};
use crate::records::key_query::KeyQuery;
use crate::records::names::{AccountNames, FoundAccounts};
use crate::records::task::TaskView;
use crate::records::task_id::TaskId;
use crate::records::task_list::{TaskPage, TaskQuery};
use crate::settings::Server;
use crate::stats::{Backlog, Counters, Stats};
use crate::usage::{UsageQuery, UsageRow};
use crate::verify::VerifyReport;

impl Postgres {
    /// Queues a command in the lane of its hold or wallet, or in the first lane if it has neither. Commands of tasks
    /// and alerts run on connections of their own instead.
    pub(crate) async fn push(&self, command: Command) -> Result<(), PushError> {
        let command = match command {
            Command::Task(task) => return self.tasks.take(task),
            Command::Alert(alert) => return self.tasks.take_alert(alert),
            other => other,
        };
        let wallet = match &command {
            Command::Admit(admit, _) => Some(admit.wallet),
            Command::Extend(extend, _) => return self.lane(extend.hold.lane()).push(command),
            Command::Step(stepping, _) => return self.lane(stepping.hold.lane()).push(command),
            Command::Close(closing) => return self.lane(closing.hold.lane()).push(command),
            Command::Uncount(hold) => return self.lane(hold.lane()).push(command),
            Command::Balance(key, ..) => self.wallet_of(*key).await?,
            Command::Change(change) => match change {
                Change::CreateWallet { id, .. } => Some(*id),
                Change::Wallet { wallet, .. } => Some(*wallet),
                Change::CreateKey { new, .. } => Some(new.wallet),
                Change::Key { key, .. } => self.wallet_of(*key).await?,
                Change::Import { batch, .. } => batch.first_wallet(),
                Change::Access { .. }
                | Change::PriceVersion { .. }
                | Change::CostVersion { .. }
                | Change::AuditAction { .. }
                | Change::Catalog { .. }
                | Change::Rule { .. } => None,
            },
            Command::Task(_) | Command::Alert(_) | Command::Flush(_) => None,
        };
        let lane = wallet.map_or(0, |wallet| self.lane_of(wallet));
        self.lane(lane).push(command)
    }

    pub(crate) fn push_close(&self, command: Command) {
        let lane = match &command {
            Command::Close(closing) => closing.hold.lane(),
            Command::Uncount(hold) => hold.lane(),
            _ => 0,
        };
        self.lane(lane).push_close(command);
    }

    fn lane_of(&self, wallet: WalletId) -> usize {
        let hash = BuildHasherDefault::<IdHasher>::default().hash_one(wallet);
        usize::try_from(hash >> 32).unwrap_or(0) % self.lanes.len()
    }

    #[expect(clippy::indexing_slicing, reason = "there is at least one lane")]
    fn lane(&self, number: usize) -> &CommandQueue {
        &self.lanes[number % self.lanes.len()]
    }

    /// The wallet of a key. `None` if there is no such key.
    async fn wallet_of(&self, key: KeyId) -> Result<Option<WalletId>, PushError> {
        if let Some(wallet) = self.key_wallets.wallet_of(key) {
            return Ok(Some(wallet));
        }
        let found = self.find_key(key).await.map_err(|error| {
            tracing::warn!(%error, "the wallet of a key could not be looked up");
            PushError::Closed
        })?;
        Ok(found.map(|row| row.wallet))
    }

    /// Returns when everything that was queued before is durable.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let mut answers = Vec::new();
        for lane in &self.lanes {
            let (reply, answer) = oneshot::channel();
            lane.push(Command::Flush(reply))?;
            answers.push(answer);
        }
        for answer in answers {
            let durable = answer.await.map_err(|_| StoreError::Unavailable)?;
            durable.wait().await.map_err(|_| StoreError::Unavailable)?;
        }
        if let Some(journal) = &self.journal {
            journal.flush().await;
        }
        Ok(())
    }

    /// Fails if no call can be admitted at present.
    pub(crate) fn may_admit(&self) -> Result<(), AdmitError> {
        if self.journal.is_none() || !self.node.is_leased() || self.counters.failing.get() {
            return Err(AdmitError::Unavailable);
        }
        Ok(())
    }

    pub(crate) fn healthy(&self) -> bool {
        self.health.is_whole()
            && (self.journal.is_none() || self.node.is_leased())
            && self
                .lanes
                .iter()
                .all(|lane| !lane.is_closed() && lane.oldest() < HEALTHY_WITHIN)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            queue_depth: self.lanes.iter().map(|lane| lane.depth() as u64).sum(),
            journal_queue: self
                .journal
                .as_ref()
                .map_or(0, |journal| journal.queued() as u64),
            ..self.counters.read()
        }
    }

    pub(crate) async fn key_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<KeyHead>, StoreError> {
        let found = self
            .reads
            .look_up(move |on| lookups::key_by_digest(on, digest))
            .await?;
        if let Some(head) = &found {
            self.key_wallets.insert(head.key, head.wallet);
        }
        Ok(found)
    }

    pub(crate) async fn wallets(&self) -> Result<Vec<WalletRow>, StoreError> {
        self.searches.run(lookups::wallets).await
    }

    pub(crate) async fn wallets_beyond_credit(
        &self,
        limit: u32,
    ) -> Result<WalletsBeyondCredit, StoreError> {
        self.searches
            .run(move |on| lookups::wallets_beyond_credit(on, limit))
            .await
    }

    pub(crate) async fn find_wallet(
        &self,
        name_or_id: String,
    ) -> Result<Option<WalletRow>, StoreError> {
        self.reads
            .look_up(move |on| lookups::find_wallet(on, name_or_id.clone()))
            .await
    }

    pub(crate) async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        self.searches.run(move |on| lookups::keys(on, wallet)).await
    }

    pub(crate) async fn search_keys(&self, query: KeyQuery) -> Result<Vec<KeyRow>, StoreError> {
        let search = move |on| key_search::search_keys(on, query.clone());
        self.searches.run(search).await
    }

    pub(crate) async fn find_key(&self, key: KeyId) -> Result<Option<KeyRow>, StoreError> {
        let found = self
            .reads
            .look_up(move |on| lookups::find_key(on, key))
            .await?;
        if let Some(row) = &found {
            self.key_wallets.insert(row.id, row.wallet);
        }
        Ok(found)
    }

    pub(crate) async fn account_names(
        &self,
        wallets: Vec<WalletId>,
        keys: Vec<KeyId>,
    ) -> Result<AccountNames, StoreError> {
        self.searches
            .run(move |on| names::names(on, wallets.clone(), keys.clone()))
            .await
    }

    pub(crate) async fn import_known(&self, query: ImportQuery) -> Result<ImportKnown, StoreError> {
        self.searches
            .run(move |on| import::known(on, query.clone()))
            .await
    }

    pub(crate) async fn find_accounts(
        &self,
        text: String,
        limit: u32,
    ) -> Result<FoundAccounts, StoreError> {
        self.searches
            .run(move |on| names::find(on, text.clone(), limit))
            .await
    }

    pub(crate) async fn entries(&self, query: EntryQuery) -> Result<Vec<EntryRow>, StoreError> {
        self.searches
            .run(move |on| entries::entries(on, query.clone()))
            .await
    }

    pub(crate) async fn find_task(
        &self,
        wallet: WalletId,
        task: TaskId,
    ) -> Result<Option<TaskView>, StoreError> {
        self.reads
            .look_up(move |on| tasks::find(on, wallet, task))
            .await
    }

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, StoreError> {
        self.searches
            .run(move |on| tasks::list(on, query.clone()))
            .await
    }

    pub(crate) async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.searches.run(tasks::backlog).await
    }

    pub(crate) async fn task_channels(&self) -> Result<Vec<(Box<str>, u64)>, StoreError> {
        self.searches.run(tasks::channels).await
    }

    pub(crate) async fn tokens(&self, query: TokenQuery) -> Result<Vec<TokenRow>, StoreError> {
        self.searches.run(move |on| access::tokens(on, query)).await
    }

    pub(crate) async fn token_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<TokenRow>, StoreError> {
        self.reads
            .look_up(move |on| access::token_by_digest(on, digest))
            .await
    }

    pub(crate) async fn session(&self, digest: Digest) -> Result<Option<SessionRow>, StoreError> {
        self.reads
            .look_up(move |on| access::session(on, digest))
            .await
    }

    pub(crate) async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditRow>, StoreError> {
        self.searches
            .run(move |on| audit::audit(on, query.clone()))
            .await
    }

    pub(crate) async fn alert_rules(&self) -> Result<Vec<RuleRow>, StoreError> {
        self.searches.run(alerts::rules).await
    }

    pub(crate) async fn webhook(&self, rule: RuleId) -> Result<Option<Webhook>, StoreError> {
        self.searches.run(move |on| alerts::webhook(on, rule)).await
    }

    pub(crate) async fn alerts(&self, query: AlertQuery) -> Result<Vec<AlertRow>, StoreError> {
        self.searches
            .run(move |on| alerts::alerts(on, query.clone()))
            .await
    }

    /// The current signals, by the database's clock.
    pub(crate) async fn alert_signals(&self, _: UnixMs) -> Result<Vec<AlertSignal>, StoreError> {
        self.searches.run(alerts::signals).await
    }

    pub(crate) async fn low_wallets(
        &self,
        below: Option<Micro>,
        page: ScanPage,
    ) -> Result<Vec<LowWallet>, StoreError> {
        self.searches
            .run(move |on| alerts::low_wallets(on, below, page))
            .await
    }

    pub(crate) async fn keys_near_limits(
        &self,
        page: ScanPage,
    ) -> Result<Vec<(i64, KeyRow)>, StoreError> {
        self.searches
            .run(move |on| alerts::keys_near_limits(on, page))
            .await
    }

    pub(crate) async fn latest_catalog(&self) -> Result<Option<CatalogDocument>, StoreError> {
        self.reads.look_up(catalog::latest).await
    }

    pub(crate) async fn catalog_version(&self) -> Result<i64, StoreError> {
        self.reads.look_up(catalog::version).await
    }

    pub(crate) async fn costs(&self) -> Result<Vec<CostRow>, StoreError> {
        self.searches.run(entries::costs).await
    }

    pub(crate) async fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        self.searches.run(entries::prices).await
    }

    pub(crate) async fn price(&self, version: PriceNumber) -> Result<Option<PriceRow>, StoreError> {
        self.reads
            .look_up(move |on| entries::price(on, version))
            .await
    }

    /// Verifies the ledger. It runs on its own thread and connection, because it reads everything and must not delay
    /// other work.
    pub(crate) async fn verify(&self, noted: Vec<WalletHead>) -> Result<VerifyReport, StoreError> {
        let target = Arc::clone(&self.target);
        let lease = self.node.lease().max(Server::at("").lease);
        let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let runtime = runtime().map_err(|_| StoreError::Unavailable)?;
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-verify".to_owned());
        let spawned = thread.spawn(move || {
            let verified: Result<_, StoreError> = runtime.block_on(async {
                let mut client = target.connect(Role::Verify).await?;
                Ok(verify::verify(&mut client, lease, &noted).await?)
            });
            drop(reply.send(verified));
        });
        spawned.map_err(|_| StoreError::Unavailable)?;
        answer.await.map_err(|_| StoreError::Unavailable)?
    }

    pub(crate) fn journal_append(&self, row: Box<JournalRow>) {
        match &self.journal {
            Some(journal) => journal.append(row),
            None => self.counters.journal_dropped.add(1),
        }
    }

    pub(crate) async fn journal(
        &self,
        query: JournalQuery,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        self.searches
            .run(move |on| journal::find(on, query.clone()))
            .await
    }

    pub(crate) async fn journal_page(
        &self,
        query: JournalQuery,
    ) -> Result<JournalPage, StoreError> {
        self.searches
            .run(move |on| journal::page(on, query.clone()))
            .await
    }

    pub(crate) async fn usage(
        &self,
        query: UsageQuery,
    ) -> Result<Option<Vec<UsageRow>>, StoreError> {
        self.searches
            .run(move |on| journal::usage(on, query.clone()))
            .await
    }
}
