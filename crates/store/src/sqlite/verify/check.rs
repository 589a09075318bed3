//! Recomputes every invariant from the entries, in one snapshot (reliability 1.3).

use std::collections::HashMap;

use ledger::{Meter, PriceCard};
use rusqlite::Connection;

use super::sums::{Entry, KeySums, WalletSums};
use crate::ids::{Epoch, HoldId};
use crate::sqlite::rows::{KEY, WALLET};
use crate::verify::{Difference, Rule, VerifyReport};

/// A ruined ledger is told by its first differences; the rest would only fill the screen.
const DIFFERENCES_MAX: usize = 10_000;

/// Reads everything in one transaction, which sees one state of the database, and changes
/// nothing.
pub(in crate::sqlite) fn verify(on: &Connection) -> rusqlite::Result<VerifyReport> {
    let snapshot = on.unchecked_transaction()?;
    let mut check = Check::load(&snapshot)?;
    check.holds(&snapshot)?;
    check.entries(&snapshot)?;
    check.doubles(&snapshot)?;
    check.sums();
    snapshot.finish()?;
    Ok(check.report)
}

struct Check {
    report: VerifyReport,
    epoch: Epoch,
    wallets: HashMap<i64, WalletSums>,
    keys: HashMap<i64, KeySums>,
    prices: HashMap<i64, Option<PriceCard>>,
}

impl Check {
    fn load(on: &Connection) -> rusqlite::Result<Self> {
        let epoch = on.query_row("SELECT coalesce(max(epoch), 0) FROM epochs", [], |row| {
            row.get(0)
        })?;
        let mut check = Self {
            report: VerifyReport::default(),
            epoch: Epoch::new(epoch),
            wallets: HashMap::new(),
            keys: HashMap::new(),
            prices: HashMap::new(),
        };
        let mut select = on.prepare(&format!("SELECT {WALLET}, w.n FROM wallets w"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            check.wallets.insert(row.get(11)?, WalletSums::load(row)?);
        }
        let mut select = on.prepare(&format!(
            "SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet"
        ))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            check.keys.insert(row.get(16)?, KeySums::load(row)?);
        }
        let mut select = on.prepare("SELECT id, card FROM price_versions")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let card: String = row.get(1)?;
            check
                .prices
                .insert(row.get(0)?, serde_json::from_str(&card).ok());
        }
        check.report.wallets = check.wallets.len() as u64;
        check.report.keys = check.keys.len() as u64;
        Ok(check)
    }

    /// V6, and the sums of V1.
    fn holds(&mut self, on: &Connection) -> rusqlite::Result<()> {
        let mut select = on.prepare("SELECT id, wallet, key, amount, counts FROM holds")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (id, wallet, key) = (HoldId::new(row.get(0)?), row.get(1)?, row.get(2)?);
            let amount = i128::from(row.get::<_, i64>(3)?);
            self.report.open_holds += 1;
            if let Some(sums) = self.wallets.get_mut(&wallet) {
                sums.frozen += amount;
                sums.open += 1;
            } else {
                self.differs(
                    wallet,
                    Rule::V4Closes,
                    format!("hold {id}"),
                    "a wallet",
                    "none",
                );
            }
            if let Some(sums) = self.keys.get_mut(&key) {
                sums.frozen += amount;
                sums.counting += row.get::<_, i64>(4)?;
            }
            if id.epoch() != self.epoch {
                let (expected, found) = (self.epoch.get(), id.epoch().get());
                self.differs(
                    wallet,
                    Rule::V6Owner,
                    format!("epoch of hold {id}"),
                    expected,
                    found,
                );
            }
        }
        Ok(())
    }

    /// V2 and V4 as the entries go by, V7, and the sums of V5.
    fn entries(&mut self, on: &Connection) -> rusqlite::Result<()> {
        // By row number: within a wallet that is the order of posting, and it is the file's own order.
        let mut select = on.prepare(
            "SELECT wallet, seq, kind, closes, key, held, charge, balance_delta, gift_delta, credit_delta, meter,
             price_version, basis FROM entries ORDER BY n",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.report.entries += 1;
            let entry = Entry::read(row)?;
            self.number(&entry);
            self.amounts(&entry);
            if entry.kind == "settled" {
                self.price(&entry);
                if let Some(sums) = entry.key.and_then(|key| self.keys.get_mut(&key)) {
                    sums.usage += i128::from(entry.charge);
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, entry: &Entry) {
        let Some(sums) = self.wallets.get_mut(&entry.wallet) else {
            self.differs(
                entry.wallet,
                Rule::V4Closes,
                format!("entry {}", entry.seq),
                "a wallet",
                "none",
            );
            return;
        };
        let expected = sums.last_entry + 1;
        sums.last_entry = entry.seq;
        sums.closed += i64::from(entry.closes.is_some());
        if entry.seq != expected {
            self.differs(
                entry.wallet,
                Rule::V4Closes,
                "the next entry".to_owned(),
                expected,
                entry.seq,
            );
        }
    }

    fn amounts(&mut self, entry: &Entry) {
        let moved = i128::from(entry.balance) + i128::from(entry.gift_balance)
            - i128::from(entry.credit_used);
        let charge = -i128::from(entry.charge);
        if moved != charge && !matches!(&*entry.kind, "top_up" | "gift") {
            self.differs(
                entry.wallet,
                Rule::V2Entries,
                format!("deltas of entry {}", entry.seq),
                charge,
                moved,
            );
        }
        let Some(sums) = self.wallets.get_mut(&entry.wallet) else {
            return;
        };
        sums.balance += i128::from(entry.balance);
        sums.gift_balance += i128::from(entry.gift_balance);
        sums.credit_used += i128::from(entry.credit_used);
        let lowest = sums.balance.min(sums.gift_balance).min(sums.credit_used);
        if lowest < 0 {
            self.differs(
                entry.wallet,
                Rule::V2Entries,
                format!("totals at entry {}", entry.seq),
                "0 or more",
                lowest,
            );
        }
    }

    fn price(&mut self, entry: &Entry) {
        let card = entry
            .price_version
            .and_then(|version| self.prices.get(&version))
            .and_then(Option::as_ref);
        let meter: Option<Meter> = entry
            .meter
            .as_deref()
            .and_then(|meter| serde_json::from_str(meter).ok());
        let priced = match (card, meter) {
            (Some(card), Some(meter)) => card.price(&meter).map_err(|error| error.to_string()),
            _ => Err("no price or no meter".to_owned()),
        };
        let what = || format!("charge of entry {}", entry.seq);
        match priced {
            Ok(price) => {
                // What we counted ourselves is capped at the hold; what was reported is not.
                let cap = if entry.basis.as_deref() == Some("counted") {
                    entry.held
                } else {
                    None
                };
                let expected = cap.map_or(price.get(), |held| held.min(price.get()));
                if entry.charge != expected {
                    self.differs(entry.wallet, Rule::V7Price, what(), expected, entry.charge);
                }
            }
            Err(error) => self.differs(entry.wallet, Rule::V7Price, what(), error, entry.charge),
        }
    }

    /// V4 again: holds that are closed twice, or open and closed.
    fn doubles(&mut self, on: &Connection) -> rusqlite::Result<()> {
        let twice = "SELECT closes, min(wallet), count(*) FROM entries WHERE closes IS NOT NULL
                     GROUP BY closes HAVING count(*) > 1";
        let both = "SELECT h.id, h.wallet, 1 FROM holds h WHERE EXISTS (SELECT 1 FROM entries e WHERE e.closes = h.id)";
        for (sql, expected) in [(twice, "one close"), (both, "open or closed")] {
            let mut select = on.prepare(sql)?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let (hold, closes): (i64, i64) = (row.get(0)?, row.get(2)?);
                let what = format!("closes of hold {}", HoldId::new(hold));
                self.differs(row.get(1)?, Rule::V4Closes, what, expected, closes);
            }
        }
        Ok(())
    }

    /// V1, V2, V3, V4 and V5: what was added up against what is stored.
    fn sums(&mut self) {
        let mut found = Vec::new();
        for (n, sums) in &self.wallets {
            let stored = &sums.stored;
            let wide = |amount: ledger::Micro| i128::from(amount.get());
            for (rule, what, expected, stored) in [
                (Rule::V1Frozen, "frozen", sums.frozen, wide(stored.frozen)),
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
                    Rule::V4Closes,
                    "entries",
                    i128::from(sums.last_entry),
                    i128::from(sums.stored_entries),
                ),
                (
                    Rule::V4Closes,
                    "holds opened",
                    i128::from(sums.open + sums.closed),
                    i128::from(sums.stored_holds_opened),
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
        for sums in self.keys.values() {
            for (rule, what, expected, stored) in [
                (
                    Rule::V1Frozen,
                    "frozen",
                    sums.frozen,
                    i128::from(sums.stored.frozen.get()),
                ),
                (
                    Rule::V1Frozen,
                    "open holds",
                    i128::from(sums.counting),
                    i128::from(sums.stored.open_holds),
                ),
                (
                    Rule::V5Usage,
                    "usage",
                    sums.usage,
                    i128::from(sums.stored.usage.get()),
                ),
            ] {
                if expected != stored {
                    found.push((
                        sums.wallet,
                        rule,
                        format!("{what} of {}", sums.id),
                        expected,
                        stored,
                    ));
                }
            }
        }
        found.sort_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        for (wallet, rule, what, expected, found) in found {
            self.differs(wallet, rule, what, expected, found);
        }
    }

    fn differs(
        &mut self,
        wallet: i64,
        rule: Rule,
        what: String,
        expected: impl Into<Shown>,
        found: impl Into<Shown>,
    ) {
        if self.report.differences.len() >= DIFFERENCES_MAX {
            return;
        }
        let wallet = match self.wallets.get(&wallet) {
            Some(sums) => sums.id.clone(),
            None => format!("wallet number {wallet}"),
        };
        let (expected, found) = (expected.into().0, found.into().0);
        self.report.differences.push(Difference {
            wallet,
            rule,
            what,
            expected,
            found,
        });
    }
}

/// A number or a text, as a report shows it.
struct Shown(String);

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<i64> for Shown {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<i128> for Shown {
    fn from(number: i128) -> Self {
        Self(number.to_string())
    }
}
