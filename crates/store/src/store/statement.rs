//! Statements: the entries of a wallet with the balance after each, and their sums.
//!
//! Entries are append-only and their numbers have no gaps, so a page is a span of numbers. Its first balance is
//! computed from the latest stored balance before it, which is never far away (`docs/decisions/036`).

use ledger::{Micro, UnixMs};

use super::Store;
use crate::backend::{Backend, on};
use crate::error::StoreError;
use crate::records::accounts::WalletsBeyondCredit;
use crate::records::balance_point::{BalancePoint, POINT_STEP};
use crate::records::ids::WalletId;
use crate::records::statement::{
    EntrySpan, STATEMENT_ENTRIES_MAX, StatementEntry, StatementRange, StatementTotals,
    StoredBalance, StoredBalanceBound, WalletQuery, WalletSpending,
};

impl Store {
    /// Wallets that owe more than their credit line: those with the largest debt, and the total number.
    pub async fn wallets_beyond_credit(
        &self,
        limit: u32,
    ) -> Result<WalletsBeyondCredit, StoreError> {
        on!(self, backend => backend.wallets_beyond_credit(limit).await)
    }

    /// Wallets with their spending, newest first, a page at a time.
    pub async fn list_wallets(
        &self,
        query: WalletQuery,
    ) -> Result<Vec<WalletSpending>, StoreError> {
        on!(self, backend => backend.list_wallets(query).await)
    }

    /// One wallet with its spending. Only the times of the query are used.
    pub async fn find_spending(
        &self,
        wallet: WalletId,
        query: WalletQuery,
    ) -> Result<Option<WalletSpending>, StoreError> {
        on!(self, backend => backend.find_spending(wallet, query).await)
    }

    /// The last `limit` entries of a wallet before the entry `before`, newest first.
    pub async fn latest_entries(
        &self,
        wallet: WalletId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<StatementEntry>, StoreError> {
        let (n, end) = self.wallet_end(wallet).await?;
        let until = before.map_or(end.seq, |before| before.saturating_sub(1).min(end.seq));
        let limit = i64::from(limit.clamp(1, STATEMENT_ENTRIES_MAX));
        let mut entries = self
            .span(n, until.saturating_sub(limit).max(0), until)
            .await?;
        entries.reverse();
        Ok(entries)
    }

    /// The entry with this number.
    pub async fn find_entry(
        &self,
        wallet: WalletId,
        seq: i64,
    ) -> Result<Option<StatementEntry>, StoreError> {
        let (n, end) = self.wallet_end(wallet).await?;
        if !(1..=end.seq).contains(&seq) {
            return Ok(None);
        }
        Ok(self.span(n, seq - 1, seq).await?.pop())
    }

    /// The entries that were posted at or after `from` and before `to`. The posting time of an entry is the latest of
    /// its own time and the times of all earlier entries.
    pub async fn statement_range(
        &self,
        wallet: WalletId,
        from: Option<UnixMs>,
        to: Option<UnixMs>,
    ) -> Result<StatementRange, StoreError> {
        let (n, end) = self.wallet_end(wallet).await?;
        let opening = match from {
            Some(from) => self.state_before(n, end, from).await?,
            None => BalancePoint::default(),
        };
        let closing = match to {
            Some(to) => self.state_before(n, end, to).await?,
            None => end,
        };
        // The range is empty if `to` is before `from`.
        let closing = if closing.seq < opening.seq {
            opening
        } else {
            closing
        };
        Ok(StatementRange { opening, closing })
    }

    /// The entries after the number `after`, up to `until`, oldest first and at most `limit` of them.
    pub async fn statement_entries(
        &self,
        wallet: WalletId,
        after: i64,
        until: i64,
        limit: u32,
    ) -> Result<Vec<StatementEntry>, StoreError> {
        let (n, end) = self.wallet_end(wallet).await?;
        let limit = i64::from(limit.clamp(1, STATEMENT_ENTRIES_MAX));
        let after = after.max(0);
        let until = until.min(end.seq).min(after.saturating_add(limit));
        self.span(n, after, until).await
    }

    /// The sums of the entries of a range.
    pub async fn statement_totals(
        &self,
        wallet: WalletId,
        range: &StatementRange,
    ) -> Result<StatementTotals, StoreError> {
        if range.opening.seq >= range.closing.seq {
            return Ok(StatementTotals::default());
        }
        let (n, _) = self.wallet_end(wallet).await?;
        let stored_balance = self
            .stored_balance(n, StoredBalanceBound::Entry(range.opening.seq))
            .await?;
        let span = EntrySpan {
            wallet: n,
            after: range.opening.seq,
            until: range.closing.seq,
            after_row: stored_balance.after_row,
        };
        let sums = on!(self, backend => backend.span_totals(span).await)?;
        Ok(StatementTotals::of(sums))
    }

    /// The stored balances of a wallet since a time, oldest first, and finally its current state. There is at least one
    /// balance for each day with entries. The latest balance stored before that time, if there is one, comes first.
    pub async fn balance_history(
        &self,
        wallet: WalletId,
        since: UnixMs,
    ) -> Result<Vec<BalancePoint>, StoreError> {
        let (n, end) = self.wallet_end(wallet).await?;
        let before = self
            .stored_balance(n, StoredBalanceBound::Before(since))
            .await?
            .point;
        let points = on!(self, backend => backend.balance_points(n, since).await)?;
        let before = (before.seq > 0).then_some(before);
        let end = (end.seq > 0).then_some(end);
        Ok(before.into_iter().chain(points).chain(end).collect())
    }

    /// The state of a wallet after all entries that were posted before `time`.
    async fn state_before(
        &self,
        n: i64,
        end: BalancePoint,
        time: UnixMs,
    ) -> Result<BalancePoint, StoreError> {
        // A wallet without entries has the same state at any time.
        if end.seq == 0 || end.posted_at < time {
            return Ok(end);
        }
        // Begins at the last stored balance before `time`. The next stored balance is not before `time`, so the
        // requested state is at most `POINT_STEP` entries away.
        let StoredBalance { point, after_row } = self
            .stored_balance(n, StoredBalanceBound::Before(time))
            .await?;
        let span = EntrySpan {
            wallet: n,
            after: point.seq,
            until: end.seq.min(point.seq.saturating_add(POINT_STEP)),
            after_row,
        };
        // `time` is usually the start of a day. The stored balance is then the answer, and reading a single entry
        // confirms it.
        let next_one = EntrySpan {
            until: span.after.saturating_add(1),
            ..span
        };
        let mut found = point;
        for span in [next_one, span] {
            found = point;
            for entry in self.read_span(span).await? {
                let next = step(&found, &entry);
                if next.posted_at >= time {
                    return Ok(found);
                }
                found = next;
            }
        }
        Ok(found)
    }

    /// The entries after the number `after`, up to `until`, with their balances.
    async fn span(
        &self,
        n: i64,
        after: i64,
        until: i64,
    ) -> Result<Vec<StatementEntry>, StoreError> {
        if after >= until {
            return Ok(Vec::new());
        }
        let StoredBalance {
            mut point,
            after_row,
        } = self
            .stored_balance(n, StoredBalanceBound::Entry(after))
            .await?;
        let span = EntrySpan {
            wallet: n,
            after: point.seq,
            until,
            after_row,
        };
        let mut entries = self.read_span(span).await?;
        for entry in &mut entries {
            point = step(&point, entry);
            entry.after = point.balances;
        }
        entries.retain(|entry| entry.entry.seq > after);
        Ok(entries)
    }

    async fn read_span(&self, span: EntrySpan) -> Result<Vec<StatementEntry>, StoreError> {
        let entries = on!(self, backend => backend.entry_span(span).await)?;
        let numbers = entries.iter().map(|entry| entry.entry.seq);
        if numbers.eq(span.after + 1..=span.until) {
            return Ok(entries);
        }
        Err(StoreError::Database(
            "entries are missing; `tollgate ledger verify` tells more".into(),
        ))
    }

    async fn stored_balance(
        &self,
        n: i64,
        bound: StoredBalanceBound,
    ) -> Result<StoredBalance, StoreError> {
        on!(self, backend => backend.balance_anchor(n, bound).await)
    }

    async fn wallet_end(&self, wallet: WalletId) -> Result<(i64, BalancePoint), StoreError> {
        let found = on!(self, backend => backend.wallet_end(wallet).await)?;
        found.ok_or_else(|| StoreError::NotFound {
            what: "wallet",
            id: wallet.to_string(),
        })
    }
}

fn step(point: &BalancePoint, entry: &StatementEntry) -> BalancePoint {
    let entry = &entry.entry;
    point.after(entry.at, &entry.delta, Micro::new(entry.charge.get()))
}
