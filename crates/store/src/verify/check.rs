//! Makes the checks V1 to V10 of `docs/invariants.md` on given rows.

use std::collections::{HashMap, HashSet};

use ledger::{Meter, Micro, PriceCard, WalletStatus};

use super::report::{Difference, Rule, VerifyReport};
use super::sums::{HoldFound, KeyFound, KeySums, WalletFound, WalletSums};
use crate::chain::{Chains, Head, WalletHead};
use crate::records::balance_point::BalancePoint;
use crate::records::columns::EntryColumns;
use crate::records::cost::CostVersion;
use crate::records::ids::{Epoch, HoldId, PriceVersion, WalletId};

/// The maximum number of differences to report. These are enough to see that a ledger is corrupt.
const DIFFERENCES_MAX: usize = 10_000;

/// A verification in progress. Wallets, keys and prices are added first, then holds and entries.
#[derive(Debug)]
pub(crate) struct Check {
    pub(super) report: VerifyReport,
    live: HashSet<Epoch>,
    pub(super) wallets: HashMap<i64, WalletSums>,
    pub(super) keys: HashMap<i64, KeySums>,
    prices: HashMap<i64, Option<PriceCard>>,
    costs: HashMap<i64, Option<PriceCard>>,
    pub(super) chains: Chains,
    /// Heads noted by an earlier verification whose wallets have not been added yet.
    pub(super) noted: HashMap<WalletId, WalletHead>,
    /// Stored balances that were not compared with the entries yet, by wallet and entry number.
    pub(super) points: HashMap<(i64, i64), BalancePoint>,
    /// Sessions with booked steps.
    pub(super) sessions: HashMap<i64, Session>,
}

#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) wallet: i64,
    /// The booked amount that the open hold's row contains.
    pub(super) stored: i64,
    /// The sum of the charges of the session's entries.
    pub(super) booked: i64,
    /// The upstream cost of the steps: as stored in the open hold, and as the sum of the entries.
    pub(super) cost_stored: i64,
    pub(super) cost_booked: i64,
}

impl Check {
    /// Starts a verification. `live` are the epochs that may own open holds, `noted` the heads from an earlier
    /// verification.
    pub(crate) fn new(live: impl IntoIterator<Item = Epoch>, noted: &[WalletHead]) -> Self {
        Self {
            report: VerifyReport::default(),
            live: live.into_iter().collect(),
            wallets: HashMap::new(),
            keys: HashMap::new(),
            prices: HashMap::new(),
            costs: HashMap::new(),
            chains: Chains::default(),
            noted: noted.iter().map(|noted| (noted.wallet, *noted)).collect(),
            points: HashMap::new(),
            sessions: HashMap::new(),
        }
    }

    pub(crate) fn wallet(&mut self, wallet: WalletFound) {
        self.report.wallets += 1;
        let (n, id) = (wallet.n, wallet.id);
        let noted = self.noted.remove(&id);
        self.wallets.insert(n, WalletSums::of(wallet, noted));
        self.chains.wallet(n, id);
        self.noted_at(n, 0);
    }

    pub(crate) fn key(&mut self, key: KeyFound) {
        self.report.keys += 1;
        self.chains.key(key.n, key.id);
        self.keys.insert(key.n, KeySums::of(key));
    }

    pub(crate) fn price_version(&mut self, number: i64, model: &str, card: &str) {
        self.prices.insert(number, serde_json::from_str(card).ok());
        self.chains
            .price_version(PriceVersion::new(number, model, card));
    }

    pub(crate) fn cost_version(&mut self, number: i64, model: &str, channel: &str, card: &str) {
        self.costs.insert(number, serde_json::from_str(card).ok());
        self.chains
            .cost_version(CostVersion::new(number, model, channel, card));
    }

    /// Adds a hold: checks V6 and the hold's wallet and key, and adds to the sums of V1.
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
            sums.counting += i64::from(hold.counts_in_flight);
        }
        self.owner(wallet, hold.key, Rule::V1Frozen, || {
            format!("key of hold {id}")
        });
        if hold.booked != 0 || hold.cost_booked != 0 {
            let session = self.sessions.entry(hold.id).or_default();
            (session.wallet, session.stored) = (wallet, hold.booked);
            session.cost_stored = hold.cost_booked;
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

    /// Adds an entry: checks V2, V4, V7, V9 and V10, and adds to the sums of V5. The entries of a wallet come in the
    /// order in which they were posted.
    pub(crate) fn entry(&mut self, entry: &EntryColumns<'_>) {
        self.report.entries += 1;
        self.number(entry);
        self.amounts(entry);
        self.manual(entry);
        self.balances(entry);
        self.settings(entry);
        self.parts(entry);
        self.chains.entry(entry);
        self.noted_at(entry.wallet, entry.seq);
        if let Some(key) = entry.key {
            let what = || format!("key of entry {}", entry.seq);
            self.owner(entry.wallet, key, Rule::V5Usage, what);
        }
        if matches!(entry.kind, "settled" | "part") {
            self.price(entry);
            if let Some(sums) = entry.key.and_then(|key| self.keys.get_mut(&key)) {
                sums.usage += i128::from(entry.charge);
                let window = sums.stored.key.window.unwrap_or_default();
                if entry.seq <= window.period.entries_before {
                    sums.usage_before += i128::from(entry.charge);
                }
            }
        }
    }

    /// Checks that an entry or hold names a key of its own wallet.
    fn owner(&mut self, wallet: i64, key: i64, rule: Rule, what: impl FnOnce() -> String) {
        let found = match self.keys.get(&key) {
            Some(sums) if sums.stored.wallet == wallet => return,
            Some(sums) => format!("{} of another wallet", sums.stored.id),
            None => format!("key number {key}, which does not exist"),
        };
        self.differs(wallet, rule, what(), "a key of the wallet", found);
    }

    /// V9: compares the head that an earlier verification noted after the entry `seq` with the hash of that entry.
    fn noted_at(&mut self, wallet: i64, seq: i64) {
        let noted = self.wallets.get(&wallet).and_then(|sums| sums.noted);
        let Some(noted) = noted.filter(|noted| noted.entries == seq) else {
            return;
        };
        if let Some(head) = self.chains.head(wallet).filter(|head| *head != noted.head) {
            let what = format!("head noted at entry {seq}");
            self.differs(wallet, Rule::V9Chain, what, noted.head, head);
        }
    }

    /// V2 for settings: reads the new value from the note of each entry that sets one.
    fn settings(&mut self, entry: &EntryColumns<'_>) {
        let Some(sums) = self.wallets.get_mut(&entry.wallet) else {
            return;
        };
        let set_to = || entry.note?.rsplit_once("-> ").map(|(_, value)| value);
        let understood = match entry.kind {
            "credit_limit" => set_to()
                .and_then(|limit| limit.parse::<Micro>().ok())
                .map(|limit| sums.credit_limit = limit),
            "status" => set_to()
                .and_then(|status| status.parse::<WalletStatus>().ok())
                .map(|status| sums.status = status),
            _ => Some(()),
        };
        if understood.is_none() {
            let what = format!("note of entry {}", entry.seq);
            let found = entry.note.unwrap_or_default();
            self.differs(entry.wallet, Rule::V2Entries, what, "the new value", found);
        }
    }

    /// V4 for sessions: each entry of a hold contains the sum that the earlier entries have booked.
    fn parts(&mut self, entry: &EntryColumns<'_>) {
        let (before, cost_before) = match (entry.part_of, entry.closes) {
            (Some(hold), _) => {
                let session = self.sessions.entry(hold).or_default();
                session.wallet = entry.wallet;
                let before = (session.booked, session.cost_booked);
                session.booked = before.0.saturating_add(entry.charge);
                session.cost_booked = before.1.saturating_add(entry.cost.unwrap_or(0));
                before
            }
            (None, Some(hold)) => {
                let session = self.sessions.remove(&hold);
                session.map_or((0, 0), |it| (it.booked, it.cost_booked))
            }
            (None, None) => (0, 0),
        };
        self.cost(entry, cost_before);
        if entry.booked != before {
            let what = format!("booked before entry {}", entry.seq);
            self.differs(entry.wallet, Rule::V4Closes, what, before, entry.booked);
        }
    }

    /// V7 for the cost: the price of the usage by the cost card, minus the cost of earlier entries of the hold. An
    /// entry without a cost is not checked.
    fn cost(&mut self, entry: &EntryColumns<'_>, before: i64) {
        if entry.cost.is_none() && entry.cost_version.is_none() {
            return;
        }
        let card = entry.cost_version.and_then(|it| self.costs.get(&it));
        let meter = entry.meter.and_then(|it| serde_json::from_str(it).ok());
        let cost = card
            .and_then(Option::as_ref)
            .zip(meter)
            .and_then(|(card, meter): (_, Meter)| card.price(&meter).ok());
        let expected = cost.map(|cost| cost.get().saturating_sub(before).max(0));
        if expected.is_none() || entry.cost != expected {
            let shown = |cost: Option<i64>| cost.map_or("unknown".to_owned(), |it| it.to_string());
            let what = format!("cost of entry {}", entry.seq);
            let (expected, found) = (shown(expected), shown(entry.cost));
            self.differs(entry.wallet, Rule::V7Price, what, expected, found);
        }
    }

    fn number(&mut self, entry: &EntryColumns<'_>) {
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

    fn amounts(&mut self, entry: &EntryColumns<'_>) {
        let delta = &entry.delta;
        let moved = i128::from(delta.balance) + i128::from(delta.gift_balance)
            - i128::from(delta.credit_used);
        let charge = -i128::from(entry.charge);
        if moved != charge
            && !matches!(
                entry.kind,
                "top_up" | "gift" | "debit" | "refund" | "adjustment"
            )
        {
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
        sums.balance += i128::from(delta.balance);
        sums.gift_balance += i128::from(delta.gift_balance);
        sums.credit_used += i128::from(delta.credit_used);
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

    fn price(&mut self, entry: &EntryColumns<'_>) {
        let card = entry
            .price_version
            .and_then(|version| self.prices.get(&version))
            .and_then(Option::as_ref);
        let meter: Option<Meter> = entry
            .meter
            .and_then(|meter| serde_json::from_str(meter).ok());
        let priced = match (card, &meter) {
            (Some(card), Some(meter)) => card.price(meter).map_err(|error| error.to_string()),
            _ => Err("no price or no meter".to_owned()),
        };
        let what = || format!("charge of entry {}", entry.seq);
        if entry.kind == "part" && meter.as_ref().is_some_and(|meter| !is_of_session(meter)) {
            let found = entry.meter.unwrap_or_default();
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
                // An entry charges the price minus what earlier steps have charged (`booked`). A settlement with usage
                // that the gateway counted itself charges at most the hold. Usage that the upstream reported has no
                // such limit.
                let is_capped = entry.kind == "settled" && entry.basis == Some("counted");
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

    /// V4: reports a hold with more than one close.
    pub(crate) fn closed_twice(&mut self, hold: i64, wallet: i64, closes: i64) {
        let what = format!("closes of hold {}", HoldId::new(hold));
        self.differs(wallet, Rule::V4Closes, what, "one close", closes);
    }

    /// V4: reports a hold that is both open and closed.
    pub(crate) fn open_and_closed(&mut self, hold: i64, wallet: i64) {
        let what = format!("closes of hold {}", HoldId::new(hold));
        self.differs(wallet, Rule::V4Closes, what, "open or closed", 1);
    }

    /// V8: reports a task that lacks something.
    pub(crate) fn task_lacks(&mut self, wallet: i64, task: &str, lacks: &str) {
        let what = format!("task {task}");
        self.differs(wallet, Rule::V8Tasks, what, lacks, "none");
    }

    pub(super) fn differs(
        &mut self,
        wallet: i64,
        rule: Rule,
        what: String,
        expected: impl Into<ReportValue>,
        found: impl Into<ReportValue>,
    ) {
        let wallet = match self.wallets.get(&wallet) {
            Some(sums) => sums.stored.id.to_string(),
            None => format!("wallet number {wallet}"),
        };
        self.push(Difference {
            wallet,
            rule,
            what,
            expected: expected.into().0,
            found: found.into().0,
        });
    }

    pub(super) fn push(&mut self, difference: Difference) {
        if self.report.differences.len() < DIFFERENCES_MAX {
            self.report.differences.push(difference);
        }
    }
}

/// Whether a meter contains only units that a session can use. Only sessions are booked in parts. Tokens without
/// realtime seconds are invalid: only realtime sessions use tokens, and their seconds count from the beginning.
fn is_of_session(meter: &Meter) -> bool {
    let mut rest = Meter {
        realtime_seconds: 0,
        text_inputs: 0,
        tts_stream_characters: 0,
        stt_stream_seconds: 0,
        ..meter.clone()
    };
    if meter.realtime_seconds > 0 {
        (rest.input, rest.cached_input, rest.image_input, rest.output) = (0, 0, 0, 0);
    }
    rest.is_zero()
}

/// A number or a text, as shown in a report.
pub(super) struct ReportValue(String);

impl From<&str> for ReportValue {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for ReportValue {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Head> for ReportValue {
    fn from(head: Head) -> Self {
        Self(head.to_string())
    }
}

impl From<i32> for ReportValue {
    fn from(number: i32) -> Self {
        Self(number.to_string())
    }
}

impl From<i64> for ReportValue {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<i128> for ReportValue {
    fn from(number: i128) -> Self {
        Self(number.to_string())
    }
}
