//! Checks that stored balances agree with the entries (V10), and that refunds do not exceed their top-up (V2).

use ledger::{Micro, UnixMs};

use super::check::Check;
use super::report::Rule;
use crate::records::balance_point::{BalancePoint, keeps_point};
use crate::records::columns::EntryColumns;

impl Check {
    /// Adds a stored balance. All balances are added before the entries.
    pub(crate) fn point(&mut self, wallet: i64, point: BalancePoint) {
        self.points.insert((wallet, point.seq), point);
    }

    /// V10 for one entry: if a balance must be stored before it, compares that balance with the earlier entries.
    pub(super) fn balances(&mut self, entry: &EntryColumns<'_>) {
        let Some(sums) = self.wallets.get_mut(&entry.wallet) else {
            return;
        };
        let (before, at) = (sums.point, UnixMs::new(entry.at));
        let next = before.after(at, &entry.delta, Micro::new(entry.charge));
        sums.point = BalancePoint {
            seq: entry.seq,
            ..next
        };
        if !keeps_point(before.seq, before.posted_at, at) {
            return;
        }
        let found = self.points.remove(&(entry.wallet, before.seq));
        if found != Some(before) {
            let what = format!("balance after entry {}", before.seq);
            let found = found.map_or_else(|| "none".to_owned(), |found| shown(&found));
            self.differs(entry.wallet, Rule::V10Points, what, shown(&before), found);
        }
    }

    /// V10 at the end: reports balances without an entry, and compares the sums of the wallets.
    pub(super) fn points_end(&mut self) {
        let mut rest: Vec<_> = self.points.drain().collect();
        rest.sort_unstable_by_key(|(place, _)| *place);
        for ((wallet, seq), point) in rest {
            let what = format!("balance after entry {seq}");
            self.differs(wallet, Rule::V10Points, what, "none", shown(&point));
        }
        let mut found = Vec::new();
        for (n, sums) in &self.wallets {
            let (stored, point) = (&sums.stored, &sums.point);
            for (what, expected, stored) in [
                ("posted_at", point.posted_at.get(), stored.posted_at),
                ("charged", point.charged.get(), stored.charged),
            ] {
                if expected != stored {
                    found.push((*n, what, expected, stored));
                }
            }
        }
        found.sort_unstable();
        for (wallet, what, expected, stored) in found {
            self.differs(wallet, Rule::V10Points, what.to_owned(), expected, stored);
        }
    }

    /// V2 for manual entries: checks their sign, and that refunds do not exceed their top-up.
    pub(super) fn manual(&mut self, entry: &EntryColumns<'_>) {
        let total = entry.delta.total();
        let expected = match entry.kind {
            "top_up" | "gift" if total <= 0 => "above 0",
            "debit" | "refund" if total >= 0 => "below 0",
            "adjustment" if total == 0 => "not 0",
            _ => "",
        };
        if !expected.is_empty() {
            let what = format!("deltas of entry {}", entry.seq);
            self.differs(entry.wallet, Rule::V2Entries, what, expected, total);
        }
        let Some(sums) = self.wallets.get_mut(&entry.wallet) else {
            return;
        };
        if entry.kind == "top_up" {
            sums.top_ups.insert(entry.seq, total);
        }
        let Some(top_up) = entry.refund_of else {
            return;
        };
        let left = sums.top_ups.get_mut(&top_up).map(|left| {
            *left = left.saturating_add(total);
            *left
        });
        if left.is_none_or(|left| left < 0) {
            let what = format!("refunds of entry {top_up}");
            let found = left.map_or_else(|| "no top-up".to_owned(), |left| left.to_string());
            self.differs(entry.wallet, Rule::V2Entries, what, "0 or more left", found);
        }
    }
}

fn shown(point: &BalancePoint) -> String {
    let BalancePoint {
        seq: _,
        posted_at,
        balances,
        charged,
    } = point;
    format!(
        "balance {}, gift {}, credit used {}, charged {charged}, at {}",
        balances.balance,
        balances.gift_balance,
        balances.credit_used,
        posted_at.get()
    )
}
