//! Ends a verification: compares the computed sums and chains with the stored values.

use super::check::Check;
use super::report::{Difference, Rule, VerifyReport};
use crate::chain::WalletHead;
use crate::records::ids::HoldId;

impl Check {
    /// Returns the report, after all rows were added.
    pub(crate) fn finish(mut self) -> VerifyReport {
        // The remaining sessions are still open. Their holds must contain the sums that their steps have booked.
        for (hold, session) in std::mem::take(&mut self.sessions) {
            if session.stored != session.booked {
                let what = format!("booked by hold {}", HoldId::new(hold));
                let (found, expected) = (session.stored, session.booked);
                self.differs(session.wallet, Rule::V4Closes, what, expected, found);
            }
            if session.cost_stored != session.cost_booked {
                let what = format!("cost of the steps of hold {}", HoldId::new(hold));
                let (found, expected) = (session.cost_stored, session.cost_booked);
                self.differs(session.wallet, Rule::V4Closes, what, expected, found);
            }
        }
        self.sums();
        self.points_end();
        self.heads();
        self.report
    }

    /// V9: compares the chains with the stored heads, and reports noted heads whose wallet or entry is gone.
    fn heads(&mut self) {
        let mut heads = Vec::new();
        let mut found = Vec::new();
        for (n, sums) in &self.wallets {
            let Some(head) = self.chains.head(*n) else {
                continue;
            };
            heads.push(WalletHead {
                wallet: sums.stored.id,
                entries: sums.last_entry,
                head,
            });
            if sums.stored.head != Some(head) {
                let stored = sums.stored.head.map(|head| head.to_string());
                let stored = stored.unwrap_or_else(|| "none".to_owned());
                found.push((*n, "head".to_owned(), head.to_string(), stored));
            }
            if let Some(noted) = sums.noted.filter(|noted| noted.entries > sums.last_entry) {
                let (expected, last) = (noted.entries.to_string(), sums.last_entry.to_string());
                found.push((*n, "entries noted".to_owned(), expected, last));
            }
        }
        found.sort();
        for (wallet, what, expected, found) in found {
            self.differs(wallet, Rule::V9Chain, what, expected, found);
        }
        let mut gone: Vec<WalletHead> = self.noted.drain().map(|(_, noted)| noted).collect();
        gone.sort_unstable_by_key(|noted| noted.wallet);
        for noted in gone {
            self.push(Difference {
                wallet: noted.wallet.to_string(),
                rule: Rule::V9Chain,
                what: "wallet noted".to_owned(),
                expected: noted.head.to_string(),
                found: "no such wallet".to_owned(),
            });
        }
        heads.sort_unstable_by_key(|head| head.wallet);
        self.report.heads = heads;
    }

    /// V1, V2, V3, V4 and V5: compares the sums with the stored values.
    fn sums(&mut self) {
        let mut found = Vec::new();
        for (n, sums) in &self.wallets {
            let stored = &sums.stored.wallet;
            let wide = |amount: ledger::Micro| i128::from(amount.get());
            for (rule, what, expected, stored) in [
                (Rule::V1Frozen, "frozen", sums.frozen, wide(stored.frozen)),
                (
                    Rule::V1Frozen,
                    "exposed",
                    sums.exposed,
                    wide(stored.exposed),
                ),
                (
                    Rule::V2Entries,
                    "balance",
                    sums.balance,
                    wide(stored.balance),
                ),
                (
                    Rule::V2Entries,
                    "gift_balance",
                    sums.gift_balance,
                    wide(stored.gift_balance),
                ),
                (
                    Rule::V2Entries,
                    "credit_used",
                    sums.credit_used,
                    wide(stored.credit_used),
                ),
                (
                    Rule::V2Entries,
                    "credit_limit",
                    wide(sums.credit_limit),
                    wide(stored.credit_limit),
                ),
                (
                    Rule::V4Closes,
                    "entries",
                    i128::from(sums.last_entry),
                    i128::from(sums.stored.entries),
                ),
                (
                    Rule::V4Closes,
                    "holds opened",
                    i128::from(sums.open + sums.closed),
                    i128::from(sums.stored.holds_opened),
                ),
            ] {
                if expected != stored {
                    found.push((*n, rule, what.to_owned(), expected, stored));
                }
            }
            if wide(stored.credit_used) > 0 && wide(stored.balance) > 0 {
                found.push((
                    *n,
                    Rule::V3Credit,
                    "balance beside used credit".to_owned(),
                    0,
                    wide(stored.balance),
                ));
            }
        }
        self.key_sums(&mut found);
        found.sort_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        for (wallet, rule, what, expected, found) in found {
            self.differs(wallet, rule, what, expected, found);
        }
        self.statuses();
    }

    /// V1 and V5 for keys.
    fn key_sums(&self, found: &mut Vec<(i64, Rule, String, i128, i128)>) {
        for sums in self.keys.values() {
            for (rule, what, expected, stored) in [
                (
                    Rule::V1Frozen,
                    "frozen",
                    sums.frozen,
                    i128::from(sums.stored.key.frozen.get()),
                ),
                (
                    Rule::V1Frozen,
                    "open holds",
                    i128::from(sums.counting),
                    i128::from(sums.stored.key.open_holds),
                ),
                (
                    Rule::V5Usage,
                    "usage",
                    sums.usage,
                    i128::from(sums.stored.key.usage.get()),
                ),
                (
                    Rule::V5Usage,
                    "usage before the window",
                    sums.usage_before,
                    i128::from(
                        sums.stored
                            .key
                            .window
                            .unwrap_or_default()
                            .usage_before
                            .get(),
                    ),
                ),
            ] {
                if expected != stored {
                    found.push((
                        sums.stored.wallet,
                        rule,
                        format!("{what} of {}", sums.stored.id),
                        expected,
                        stored,
                    ));
                }
            }
        }
    }

    fn statuses(&mut self) {
        let mut found: Vec<_> = self
            .wallets
            .iter()
            .map(|(n, sums)| (*n, sums.status, sums.stored.wallet.status))
            .filter(|(_, set, stored)| set != stored)
            .collect();
        found.sort_unstable_by_key(|(n, ..)| *n);
        for (wallet, set, stored) in found {
            let (set, stored) = (set.as_str(), stored.as_str());
            self.differs(wallet, Rule::V2Entries, "status".to_owned(), set, stored);
        }
    }
}
