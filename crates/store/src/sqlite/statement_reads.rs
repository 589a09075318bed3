//! Runs the reads of statements on the connections for searches.

use std::collections::BTreeMap;

use ledger::UnixMs;

use super::backend::Sqlite;
use super::reads::statement;
use crate::error::StoreError;
use crate::records::balance_point::BalancePoint;
use crate::records::ids::WalletId;
use crate::records::statement::{
    EntrySpan, StatementEntry, StoredBalance, StoredBalanceBound, WalletQuery, WalletSpending,
};
use crate::records::totals::{TotalKey, TotalSum};

impl Sqlite {
    pub(crate) async fn list_wallets(
        &self,
        query: WalletQuery,
    ) -> Result<Vec<WalletSpending>, StoreError> {
        let list = move |on: &_| statement::list_wallets(on, &query);
        self.searches.run(list).await
    }

    pub(crate) async fn find_spending(
        &self,
        wallet: WalletId,
        query: WalletQuery,
    ) -> Result<Option<WalletSpending>, StoreError> {
        let find = move |on: &_| statement::find_spending(on, wallet, &query);
        self.searches.run(find).await
    }

    pub(crate) async fn wallet_end(
        &self,
        wallet: WalletId,
    ) -> Result<Option<(i64, BalancePoint)>, StoreError> {
        self.searches
            .run(move |on| statement::wallet_end(on, wallet))
            .await
    }

    pub(crate) async fn balance_anchor(
        &self,
        wallet: i64,
        bound: StoredBalanceBound,
    ) -> Result<StoredBalance, StoreError> {
        self.searches
            .run(move |on| statement::stored_balance(on, wallet, bound))
            .await
    }

    pub(crate) async fn balance_points(
        &self,
        wallet: i64,
        since: UnixMs,
    ) -> Result<Vec<BalancePoint>, StoreError> {
        self.searches
            .run(move |on| statement::balance_points(on, wallet, since.get()))
            .await
    }

    pub(crate) async fn entry_span(
        &self,
        span: EntrySpan,
    ) -> Result<Vec<StatementEntry>, StoreError> {
        self.searches.run(move |on| statement::span(on, span)).await
    }

    pub(crate) async fn span_totals(
        &self,
        span: EntrySpan,
    ) -> Result<BTreeMap<TotalKey, TotalSum>, StoreError> {
        self.searches
            .run(move |on| statement::totals(on, span))
            .await
    }
}
