//! Recomputes every invariant from the rows it is fed (reliability 1.3).

use std::collections::{HashMap, HashSet};

use ledger::{Meter, PriceCard};

use super::report::{Difference, Rule, VerifyReport};
use super::sums::{Entry, HoldFound, KeyFound, KeySums, WalletFound, WalletSums};
use crate::ids::{Epoch, HoldId};

/// A ruined ledger is told by its first differences; the rest would only fill the screen.
const DIFFERENCES_MAX: usize = 10_000;

/// A verification on its way: wallets, keys and prices go in first, then holds and entries.
#[derive(Debug)]
pub(crate) struct Check {
    report: VerifyReport,
    live: HashSet<Epoch>,
    wallets: HashMap<i64, WalletSums>,
    keys: HashMap<i64, KeySums>,
    prices: HashMap<i64, Option<PriceCard>>,
    /// Sessions that have booked steps: what the open hold says, and what its entries add up to.
    sessions: HashMap<i64, Session>,
}

#[derive(Debug, Default)]
struct Session {
    wallet: i64,
    stored: i64,
    booked: i64,
}

impl Check {
    /// `live` are the epochs that may own open holds.
    pub(crate) fn new(live: impl IntoIterator<Item = Epoch>) -> Self {
        Self {
            report: VerifyReport::default(),
            live: live.into_iter().collect(),
            wallets: HashMap::new(),
            keys: HashMap::new(),
            prices: HashMap::new(),
            sessions: HashMap::new(),
        }
    }

    pub(crate) fn wallet(&mut self, wallet: WalletFound) {
        self.report.wallets += 1;
        self.wallets.insert(wallet.n, WalletSums::of(wallet));
    }

    pub(crate) fn key(&mut self, key: KeyFound) {
        self.report.keys += 1;
        self.keys.insert(key.n, KeySums::of(key));
    }

    pub(crate) fn price_version(&mut self, version: i64, card: &str) {
        self.prices.insert(version, serde_json::from_str(card).ok());
    }

    /// V6, and the sums of V1.
    pub(crate) fn hold(&mut self, hold: &HoldFound) {
        let (id, wallet) = (HoldId::new(hold.id), hold.wallet);
        let amount = i128::from(hold.amount);
        self.report.open_holds += 1;
        if let Some(sums) = self.wallets.get_mut(&wallet) {
            sums.frozen += amount;
            sums.exposed += i128::from(hold.exposure);
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
        if let Some(sums) = self.keys.get_mut(&hold.key) {
            sums.frozen += amount;
            sums.counting += i64::from(hold.counts);
        }
        if hold.booked != 0 {
            let session = self.sessions.entry(hold.id).or_default();
            (session.wallet, session.stored) = (wallet, hold.booked);
        }
        if !hold.of_task && !self.live.contains(&id.epoch()) {
            self.differs(
                wallet,
                Rule::V6Owner,
                format!("owner of hold {id}"),
                "a live epoch",
                id.epoch().get(),
            );
        }
    }

    /// V2 and V4 as the entries go by, V7, and the sums of V5. A wallet's entries come in the
    /// order of their posting.
    pub(crate) fn entry(&mut self, entry: &Entry) {
        self.report.entries += 1;
        self.number(entry);
        self.amounts(entry);
        self.parts(entry);
        if matches!(&*entry.kind, "settled" | "part") {
            self.price(entry);
            if let Some(sums) = entry.key.and_then(|key| self.keys.get_mut(&key)) {
                sums.usage += i128::from(entry.charge);
            }
        }
    }

    /// V4 of sessions: each entry of a hold knows what those before it have booked.
    fn parts(&mut self, entry: &Entry) {
        let before = match (entry.part_of, entry.closes) {
            (Some(hold), _) => {
                let session = self.sessions.entry(hold).or_default();
                session.wallet = entry.wallet;
                let before = session.booked;
                session.booked = before.saturating_add(entry.charge);
                before
            }
            (None, Some(hold)) => self.sessions.remove(&hold).map_or(0, |it| it.booked),
            (None, None) => 0,
        };
        if entry.booked != before {
            let what = format!("booked before entry {}", entry.seq);
            self.differs(entry.wallet, Rule::V4Closes, what, before, entry.booked);
        }
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
        let priced = match (card, &meter) {
            (Some(card), Some(meter)) => card.price(meter).map_err(|error| error.to_string()),
            _ => Err("no price or no meter".to_owned()),
        };
        let what = || format!("charge of entry {}", entry.seq);
        if entry.kind == "part" && meter.as_ref().is_some_and(|meter| !is_of_session(meter)) {
            let found = entry.meter.clone().unwrap_or_default();
            self.differs(
                entry.wallet,
                Rule::V4Closes,
                what(),
                "a session's usage",
                found,
            );
        }
        match priced {
            Ok(price) => {
                // What we counted ourselves is capped at the hold when it ends; what was reported
                // is not. What earlier steps have booked is paid.
                let is_capped =
                    entry.kind == "settled" && entry.basis.as_deref() == Some("counted");
                let cap = entry.held.filter(|_| is_capped);
                let cap = cap.map(|held| held.saturating_add(entry.booked));
                let total = cap.map_or(price.get(), |cap| cap.min(price.get()));
                let expected = total.saturating_sub(entry.booked).max(0);
                if entry.charge != expected {
                    self.differs(entry.wallet, Rule::V7Price, what(), expected, entry.charge);
                }
            }
            Err(error) => self.differs(entry.wallet, Rule::V7Price, what(), error, entry.charge),
        }
    }

    /// V4 again: a hold with more than one close.
    pub(crate) fn closed_twice(&mut self, hold: i64, wallet: i64, closes: i64) {
        let what = format!("closes of hold {}", HoldId::new(hold));
        self.differs(wallet, Rule::V4Closes, what, "one close", closes);
    }

    /// V4 again: a hold that is open and closed.
    pub(crate) fn open_and_closed(&mut self, hold: i64, wallet: i64) {
        let what = format!("closes of hold {}", HoldId::new(hold));
        self.differs(wallet, Rule::V4Closes, what, "open or closed", 1);
    }

    /// V8: a task that lacks what it should have.
    pub(crate) fn task_lacks(&mut self, wallet: i64, task: &str, lacks: &str) {
        let what = format!("task {task}");
        self.differs(wallet, Rule::V8Tasks, what, lacks, "none");
    }

    /// What differs, when everything has been fed.
    pub(crate) fn finish(mut self) -> VerifyReport {
        // What is left are sessions without a close: their holds are open and know their steps.
        for (hold, session) in std::mem::take(&mut self.sessions) {
            if session.stored != session.booked {
                let what = format!("booked by hold {}", HoldId::new(hold));
                let (found, expected) = (session.stored, session.booked);
                self.differs(session.wallet, Rule::V4Closes, what, expected, found);
            }
        }
        self.sums();
        self.report
    }

    /// V1, V2, V3, V4 and V5: what was added up against what is stored.
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
            Some(sums) => sums.stored.id.clone(),
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

/// Whether a meter has what sessions use and nothing else: only their holds are booked in parts.
fn is_of_session(meter: &Meter) -> bool {
    let rest = Meter {
        realtime_seconds: 0,
        text_inputs: 0,
        tts_stream_characters: 0,
        stt_stream_seconds: 0,
        ..meter.clone()
    };
    rest.is_zero()
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

impl From<i32> for Shown {
    fn from(number: i32) -> Self {
        Self(number.to_string())
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
