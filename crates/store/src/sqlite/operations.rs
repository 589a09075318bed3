//! The operations of [`Store`](crate::Store) on `SQLite`.

use std::sync::Arc;

use ledger::{Micro, UnixMs};
use tokio::sync::oneshot;

use super::alerts::lookups as alerts;
use super::backend::{HEALTHY_WITHIN, Sqlite, searchers};
use super::journal;
use super::reads::{
    access, accounts as lookups, audit, catalog, entries, import, key_search, names,
};
use super::tasks::lookups as task_looks;
use crate::chain::WalletHead;
use crate::clock;
use crate::error::{AdmitError, StoreError};
use crate::queue::command::AdmittedCall;
use crate::queue::command::Command;
use crate::queue::command_queue::PushError;
use crate::records::access::{SessionRow, TokenQuery, TokenRow};
use crate::records::accounts::{KeyHead, KeyRow, WalletRow, WalletsBeyondCredit};
use crate::records::alerts::{
    AlertQuery, AlertRow, AlertSignal, LowWallet, RuleRow, ScanPage, Webhook,
};
use crate::records::audit::{AuditQuery, AuditRow};
use crate::records::call::{Admit, Close};
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
use crate::sqlite::connection::connect::reader;
use crate::sqlite::connection::files::size;
use crate::sqlite::connection::open::journal_path;
use crate::sqlite::reads::pool::Reads;
use crate::sqlite::reads::verify::verify;
use crate::stats::{Backlog, Counters, Stats};
use crate::usage::{UsageQuery, UsageRow};
use crate::verify::VerifyReport;

impl Sqlite {
    pub(crate) fn push(&self, command: Command) -> Result<(), PushError> {
        self.queue.push(command)
    }

    pub(crate) fn push_close(&self, command: Command) {
        self.queue.push_close(command);
    }

    /// Decides a call at once, or returns the request so that the caller can queue it.
    pub(crate) fn admit_now(
        &self,
        admit: Admit,
    ) -> Result<Result<AdmittedCall, AdmitError>, Admit> {
        self.shared_ledger.admit(admit)
    }

    /// Closes a hold at once if possible, and otherwise queues the close.
    pub(crate) fn close(&self, closing: Close) {
        if let Err(closing) = self.shared_ledger.close(closing) {
            self.push_close(Command::Close(closing));
        }
    }

    /// Fails if no call can be admitted at present.
    pub(crate) fn may_admit(&self) -> Result<(), AdmitError> {
        let counters = &self.counters;
        if self.server.is_none()
            || counters.below_floor.get()
            || counters.failing.get()
            || self.sync_queue.is_broken()
        {
            return Err(AdmitError::Unavailable);
        }
        Ok(())
    }

    pub(crate) fn healthy(&self) -> bool {
        !self.counters.failing.get()
            && !self.counters.below_floor.get()
            && !self.sync_queue.is_broken()
            && !self.queue.is_closed()
            && self.queue.oldest() < HEALTHY_WITHIN
            && self.sync_queue.stalled_for() < HEALTHY_WITHIN
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            queue_depth: self.queue.depth() as u64,
            journal_queue: self
                .server
                .as_ref()
                .map_or(0, |server| server.journal.queued() as u64),
            ..self.counters.read()
        }
    }

    pub(crate) async fn key_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<KeyHead>, StoreError> {
        self.reads
            .run(move |on| lookups::key_by_digest(on, &digest))
            .await
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
            .run(move |on| lookups::find_wallet(on, &name_or_id))
            .await
    }

    pub(crate) async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        self.searches.run(move |on| lookups::keys(on, wallet)).await
    }

    pub(crate) async fn search_keys(&self, query: KeyQuery) -> Result<Vec<KeyRow>, StoreError> {
        self.searches
            .run(move |on| key_search::search_keys(on, &query))
            .await
    }

    pub(crate) async fn find_key(&self, key: KeyId) -> Result<Option<KeyRow>, StoreError> {
        self.reads.run(move |on| lookups::find_key(on, key)).await
    }

    pub(crate) async fn account_names(
        &self,
        wallets: Vec<WalletId>,
        keys: Vec<KeyId>,
    ) -> Result<AccountNames, StoreError> {
        self.searches
            .run(move |on| names::names(on, &wallets, &keys))
            .await
    }

    pub(crate) async fn import_known(&self, query: ImportQuery) -> Result<ImportKnown, StoreError> {
        self.searches.run(move |on| import::known(on, &query)).await
    }

    pub(crate) async fn find_accounts(
        &self,
        text: String,
        limit: u32,
    ) -> Result<FoundAccounts, StoreError> {
        self.searches
            .run(move |on| names::find(on, &text, limit))
            .await
    }

    pub(crate) async fn entries(&self, query: EntryQuery) -> Result<Vec<EntryRow>, StoreError> {
        self.searches
            .run(move |on| entries::entries(on, &query))
            .await
    }

    pub(crate) async fn tokens(&self, query: TokenQuery) -> Result<Vec<TokenRow>, StoreError> {
        self.searches.run(move |on| access::tokens(on, query)).await
    }

    pub(crate) async fn token_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<TokenRow>, StoreError> {
        self.reads
            .run(move |on| access::token_by_digest(on, &digest))
            .await
    }

    pub(crate) async fn session(&self, digest: Digest) -> Result<Option<SessionRow>, StoreError> {
        self.reads
            .run(move |on| access::session(on, &digest, clock::now()))
            .await
    }

    pub(crate) async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditRow>, StoreError> {
        self.searches.run(move |on| audit::audit(on, &query)).await
    }

    pub(crate) async fn alert_rules(&self) -> Result<Vec<RuleRow>, StoreError> {
        self.searches.run(alerts::rules).await
    }

    pub(crate) async fn webhook(&self, rule: RuleId) -> Result<Option<Webhook>, StoreError> {
        self.searches.run(move |on| alerts::webhook(on, rule)).await
    }

    pub(crate) async fn alerts(&self, query: AlertQuery) -> Result<Vec<AlertRow>, StoreError> {
        self.searches
            .run(move |on| alerts::alerts(on, &query))
            .await
    }

    pub(crate) async fn alert_signals(&self, now: UnixMs) -> Result<Vec<AlertSignal>, StoreError> {
        self.searches.run(move |on| alerts::signals(on, now)).await
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

    pub(crate) async fn has_due_deliveries(&self, now: UnixMs) -> Result<bool, StoreError> {
        self.reads
            .run(move |on| alerts::has_due_deliveries(on, now))
            .await
    }

    pub(crate) async fn latest_catalog(&self) -> Result<Option<CatalogDocument>, StoreError> {
        self.reads.run(catalog::latest).await
    }

    pub(crate) async fn catalog_version(&self) -> Result<i64, StoreError> {
        self.reads.run(catalog::version).await
    }

    pub(crate) async fn costs(&self) -> Result<Vec<CostRow>, StoreError> {
        self.searches.run(entries::costs).await
    }

    pub(crate) async fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        self.searches.run(entries::prices).await
    }

    pub(crate) async fn price(&self, version: PriceNumber) -> Result<Option<PriceRow>, StoreError> {
        self.reads.run(move |on| entries::price(on, version)).await
    }

    pub(crate) async fn find_task(
        &self,
        wallet: WalletId,
        task: TaskId,
    ) -> Result<Option<TaskView>, StoreError> {
        self.reads
            .run(move |on| task_looks::find(on, wallet, task))
            .await
    }

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, StoreError> {
        self.searches
            .run(move |on| task_looks::list(on, &query))
            .await
    }

    pub(crate) async fn task_channels(&self) -> Result<Vec<(Box<str>, u64)>, StoreError> {
        self.searches.run(task_looks::channels).await
    }

    pub(crate) async fn backlog(&self, now: UnixMs) -> Result<Backlog, StoreError> {
        self.searches
            .run(move |on| task_looks::backlog(on, now))
            .await
    }

    /// Whether tasks are due. Runs on the read pool, so that the writer wakes up only if there is work.
    pub(crate) async fn has_due_tasks(&self, now: UnixMs) -> Result<bool, StoreError> {
        self.reads
            .run(move |on| task_looks::has_due(on, "tasks", now))
            .await
    }

    pub(crate) async fn has_due_callbacks(&self, now: UnixMs) -> Result<bool, StoreError> {
        self.reads
            .run(move |on| task_looks::has_due(on, "callbacks", now))
            .await
    }

    /// Verifies the ledger. The verification has its own thread and connection, because it reads everything and must
    /// not delay lookups.
    pub(crate) async fn verify(&self, noted: Vec<WalletHead>) -> Result<VerifyReport, StoreError> {
        let connection = reader(&self.path)?;
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-verify".to_owned());
        let spawned = thread.spawn(move || drop(reply.send(verify(&connection, &noted))));
        spawned.map_err(|_| StoreError::Unavailable)?;
        Ok(answer.await.map_err(|_| StoreError::Unavailable)??)
    }

    pub(crate) fn journal_append(&self, row: Box<JournalRow>) {
        match &self.server {
            Some(server) => server.journal.append(row),
            None => self.counters.journal_dropped.add(1),
        }
    }

    /// Returns when everything that was queued before is durable.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.push(Command::Flush(reply))?;
        let durable = answer.await.map_err(|_| StoreError::Unavailable)?;
        durable.wait().await.map_err(|_| StoreError::Unavailable)?;
        if let Some(server) = &self.server {
            server.journal.flush().await;
        }
        Ok(())
    }

    pub(crate) async fn journal(
        &self,
        query: JournalQuery,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        match self.journal_reads()? {
            Some(reads) => reads.run(move |on| journal::find(on, &query)).await,
            None => Ok(Vec::new()),
        }
    }

    pub(crate) async fn journal_page(
        &self,
        query: JournalQuery,
    ) -> Result<JournalPage, StoreError> {
        match self.journal_reads()? {
            Some(reads) => reads.run(move |on| journal::page(on, &query)).await,
            None => Ok(JournalPage::default()),
        }
    }

    pub(crate) async fn usage(
        &self,
        query: UsageQuery,
    ) -> Result<Option<Vec<UsageRow>>, StoreError> {
        match self.journal_reads()? {
            Some(reads) => reads.run(move |on| journal::usage(on, query)).await,
            None => Ok(Some(Vec::new())),
        }
    }

    fn journal_reads(&self) -> Result<Option<Arc<Reads>>, StoreError> {
        let mut reads = self.journal_reads.lock();
        if let Some(reads) = &*reads {
            return Ok(Some(Arc::clone(reads)));
        }
        let path = journal_path(&self.path);
        // No server has used this database yet.
        if size(&path).is_none_or(|bytes| bytes == 0) {
            return Ok(None);
        }
        let pool = Reads::new("journal-read", searchers(&path)?, self.search_limits);
        let pool = pool.map_err(|_| StoreError::Unavailable)?;
        Ok(Some(Arc::clone(reads.insert(Arc::new(pool)))))
    }
}
