//! Checks what must be true of every call, whatever happened to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::count::tokens;
use store::{Basis, EntryKind, EntryQuery, EntryRow, JournalQuery, JournalRow};

use crate::client::{ClientResult, View, input_tokens, request_id};
use crate::harness::{Harness, Wave};
use crate::plan::{Act, ClientDialect, Payer, Plan, Reply, ReplyEnd};
use crate::scripted_upstream::WORD;

/// The number of calls per ending: what the caller saw, and how the hold was closed.
pub(crate) type Endings = BTreeMap<(String, String), u64>;

/// Journal rows and ledger entries by request id.
struct StoredRows {
    rows: BTreeMap<String, Vec<JournalRow>>,
    closes: BTreeMap<String, Vec<EntryRow>>,
}

impl StoredRows {
    async fn read(harness: &Harness, wave: &BTreeSet<String>) -> Self {
        let mut stored = Self {
            rows: BTreeMap::new(),
            closes: BTreeMap::new(),
        };
        let mut before = None;
        loop {
            let page = harness.store.journal(JournalQuery {
                before,
                limit: 1_000,
                ..JournalQuery::default()
            });
            let page = page.await.unwrap();
            before = page.last().map(|entry| entry.cursor);
            let count = page.len();
            let of_wave = page
                .into_iter()
                .filter(|entry| wave.contains(&*entry.row.request_id));
            let mut found = 0;
            for entry in of_wave {
                found += 1;
                let rows = stored.rows.entry(entry.row.request_id.to_string());
                rows.or_default().push(entry.row);
            }
            // All further rows belong to earlier waves.
            if found < count || count == 0 {
                break;
            }
        }
        let mut after = None;
        loop {
            let page = harness.store.entries(EntryQuery {
                after,
                ..EntryQuery::default()
            });
            let page = page.await.unwrap();
            let Some(last) = page.last() else {
                return stored;
            };
            after = Some(last.cursor);
            for entry in page {
                let id = entry.call.as_ref().map(|call| call.request_id.to_string());
                if let Some(id) = id.filter(|id| wave.contains(id)) {
                    stored.closes.entry(id).or_default().push(entry);
                }
            }
        }
    }
}

pub(crate) async fn check(
    harness: &Harness,
    plans: &[Arc<Plan>],
    wave: &Wave,
    seed: u64,
    endings: &mut Endings,
) {
    let ids = plans.iter().map(|plan| request_id(plan.number)).collect();
    let stored = StoredRows::read(harness, &ids).await;
    for plan in plans {
        let id = request_id(plan.number);
        let rows = stored.rows.get(&id).map_or(&[][..], Vec::as_slice);
        let closes = stored.closes.get(&id).map_or(&[][..], Vec::as_slice);
        let View {
            client_result,
            words,
        } = wave.seen[&plan.number];
        let attempts = wave.script.attempts(plan.number);
        let words_sent = wave.script.words_sent(plan.number);
        let ending = CheckedCall {
            plan,
            client_result,
            words_seen: words,
            words_sent,
            attempts: attempts.len(),
            used_fallback: attempts.last() == Some(&true),
            rows,
            closes,
        }
        .check()
        .unwrap_or_else(|why| {
            panic!(
                "seed {seed}: {why}\n{plan:#?}\nthe caller saw {client_result:?} and {words} of {words_sent} words after {attempts:?}\n{rows:#?}\n{closes:#?}"
            )
        });
        *endings.entry(ending).or_default() += 1;
    }
}

/// Everything that is known about one call: its plan, what the caller and the upstream saw, and its rows.
struct CheckedCall<'a> {
    plan: &'a Plan,
    client_result: ClientResult,
    /// The number of words of the answer that the caller has read.
    words_seen: u64,
    /// The number of words that the upstream has sent in its last answer.
    words_sent: u64,
    /// The number of requests that have reached an upstream.
    attempts: usize,
    /// Whether the last request was for `m/dear`, the fallback model.
    used_fallback: bool,
    rows: &'a [JournalRow],
    closes: &'a [EntryRow],
}

/// Returns an error with a reason if a condition is false.
macro_rules! require {
    ($truth:expr, $why:literal) => {
        if !$truth {
            return Err($why);
        }
    };
}

impl CheckedCall<'_> {
    fn check(&self) -> Result<(String, String), &'static str> {
        let [row] = self.rows else {
            return Err("a call has one row in the journal");
        };
        self.check_close(row)?;
        self.check_view(row)?;
        self.check_charge(row)?;
        self.check_attempts()?;
        self.check_model(row)?;
        let basis = self.basis().map_or("", |basis| match basis {
            Basis::Reported => " as reported",
            Basis::Counted => " as counted",
        });
        let outcome = row.outcome.as_deref().unwrap_or("refused");
        let by = if self.used_fallback {
            " by the fallback"
        } else {
            ""
        };
        let notes = row.route_notes.as_deref().unwrap_or_default();
        let limit = if row.hold.is_none() && notes.contains("passed over") {
            " at a limit"
        } else {
            ""
        };
        let ending = format!("{outcome}{basis}{by}{limit}");
        Ok((format!("{:?}", self.client_result), ending))
    }

    /// Checks that the hold is closed once and that the journal says how.
    fn check_close(&self, row: &JournalRow) -> Result<(), &'static str> {
        require!(
            row.hold.is_some() == row.outcome.is_some(),
            "no hold, no close"
        );
        match (row.hold, self.closes) {
            (None, []) => {
                require!(row.charge.get() == 0, "without a hold nothing is charged");
            }
            // The ledger granted the hold after the caller had left.
            (None, [close]) if self.client_result == ClientResult::Left => {
                require!(
                    close.kind == EntryKind::Released,
                    "a late grant is released"
                );
                require!(row.charge.get() == 0, "a late grant is free");
            }
            (Some(hold), [close]) => {
                let call = close.call.as_ref().ok_or("a close belongs to a call")?;
                require!(call.hold == hold, "the close is that of the hold");
                require!(
                    close.charge == row.charge,
                    "ledger and journal agree on the charge"
                );
                let outcome = match close.kind {
                    EntryKind::Settled => "settled",
                    EntryKind::Released => "released",
                    _ => return Err("a hold is settled or released"),
                };
                require!(
                    row.outcome.as_deref() == Some(outcome),
                    "ledger and journal agree on the end"
                );
            }
            _ => return Err("a hold is closed once"),
        }
        Ok(())
    }

    /// Checks that the journal agrees with what the caller saw.
    fn check_view(&self, row: &JournalRow) -> Result<(), &'static str> {
        let is_settled = row.outcome.as_deref() == Some("settled");
        match self.client_result {
            ClientResult::Failed(status) => {
                require!(
                    row.status == status,
                    "the journal has the status of the error"
                );
                require!(!is_settled, "an error instead of an answer is free");
            }
            ClientResult::Whole | ClientResult::Stream => {
                require!(
                    row.status == 200 && row.code.is_none(),
                    "the journal says success"
                );
                require!(is_settled, "an answer is charged");
            }
            ClientResult::BrokenStream => {
                require!(
                    row.status >= 400 && row.status != 499,
                    "the journal has the error"
                );
            }
            // The caller may have left just after the end.
            ClientResult::Left => require!(row.status >= 200, "the journal has a status"),
        }
        Ok(())
    }

    fn basis(&self) -> Option<Basis> {
        let usage = self.closes.first()?.call.as_ref()?.usage.as_ref();
        usage.map(|usage| usage.basis)
    }

    /// What the upstream did with the last attempt.
    fn last_act(&self) -> Option<&Act> {
        Some(self.plan.act(self.attempts.checked_sub(1)?))
    }

    /// The price of an answer with this many words and without a usage report. It is lower only if the wallet cannot
    /// pay for a larger hold.
    fn counted_price(&self, words: u64) -> i64 {
        let price = self.price_of(input_tokens(self.plan), output_tokens(words));
        self.payable(price)
    }

    /// The price of these tokens, for the model that the row names.
    fn price_of(&self, input: u64, output: u64) -> i64 {
        let used_fallback = self.rows.first().is_some_and(|row| *row.model == *"m/dear");
        let (of_input, of_output) = if used_fallback { (3, 7) } else { (1, 2) };
        i64::try_from(of_input * input + of_output * output).unwrap()
    }

    fn payable(&self, price: i64) -> i64 {
        match (self.plan.payer, &self.closes[0].call) {
            (Payer::Poor, Some(call)) => price.min(call.held.get()),
            _ => price,
        }
    }

    /// The price of a converted stream that breaks after a usage report. Another report might have followed, so the
    /// output in the report counts only if it exceeds the output that arrived.
    fn interim_price(&self, reply: Option<&Reply>, words: u64) -> Option<i64> {
        let is_converted = self.plan.is_streamed && self.plan.dialect == ClientDialect::Messages;
        let (input, output) = reply.filter(|_| is_converted)?.usage?;
        let price = self.price_of(input, output.max(output_tokens(words)));
        Some(self.payable(price))
    }

    /// Checks that the charge is what the upstream reported, or our own count. That count includes at least what the
    /// caller saw, and at most what was sent.
    fn check_charge(&self, row: &JournalRow) -> Result<(), &'static str> {
        let Some(basis) = self.basis() else {
            require!(row.charge.get() == 0, "only usage is charged");
            require!(self.words_seen == 0, "what was delivered is charged");
            return Ok(());
        };
        let reply = match self.last_act() {
            Some(Act::Answer(reply)) => Some(reply),
            Some(_) => None,
            None => return Err("what never reached an upstream is free"),
        };
        let usage = reply.and_then(|reply| reply.usage);
        let price = usage.map(|(input, output)| self.price_of(input, output));
        let held = self.closes[0].call.as_ref().map(|call| call.held);
        match basis {
            Basis::Reported => require!(
                price == Some(row.charge.get()),
                "a report is charged as it is"
            ),
            Basis::Counted => {
                require!(
                    held >= Some(row.charge),
                    "a count is charged within the hold"
                );
                let is_whole = matches!(
                    self.client_result,
                    ClientResult::Whole | ClientResult::Stream
                );
                require!(!is_whole || price.is_none(), "a report is not ignored");
                require!(
                    !is_whole || self.words_seen == self.words_sent,
                    "a whole answer is delivered"
                );
                let charge = row.charge.get();
                let prices = |words| {
                    let counted = self.counted_price(words);
                    let interim = self.interim_price(reply, words).unwrap_or(counted);
                    (counted.min(interim), counted.max(interim))
                };
                require!(
                    charge >= prices(self.words_seen).0,
                    "all that was delivered is charged"
                );
                require!(
                    charge <= prices(self.words_sent).1,
                    "nothing is charged that did not come"
                );
            }
        }
        Ok(())
    }

    /// Checks that the charge is that of the last model that was tried, and that the row names this model.
    fn check_model(&self, row: &JournalRow) -> Result<(), &'static str> {
        let is_backed = self.plan.model.ends_with("backed");
        require!(
            is_backed || !self.used_fallback,
            "only some models fall back"
        );
        if self.basis().is_none() {
            // A caller may leave before its request is read.
            let is_unread = self.client_result == ClientResult::Left && row.model.is_empty();
            let is_named = self.plan.is_misspelt || *row.model == *self.plan.model;
            require!(
                is_named || is_unread,
                "without a charge the row names what was asked for"
            );
            return Ok(());
        }
        let charged_fallback = *row.model == *"m/dear";
        // The caller may have left after the fallback was chosen and before its upstream was called.
        let is_certain = self.client_result != ClientResult::Left;
        require!(
            !is_certain || charged_fallback == self.used_fallback,
            "the row names the model that was charged"
        );
        Ok(())
    }

    /// Checks that no other route is tried after content.
    fn check_attempts(&self) -> Result<(), &'static str> {
        for attempt in 1..self.attempts {
            let shows = match self.plan.act(attempt - 1) {
                Act::Answer(reply) => {
                    !self.plan.is_streamed
                        || !matches!(reply.end, ReplyEnd::CutAfter(0) | ReplyEnd::StallAfter(0))
                }
                // After a rejection of the request itself or a timeout, no other route may be tried.
                Act::Status(400) | Act::Silence => true,
                _ => false,
            };
            require!(
                !shows,
                "no route is tried behind content, a refusal or a timeout"
            );
        }
        require!(
            self.attempts <= self.plan.attempts_max,
            "each route is tried once"
        );
        Ok(())
    }
}

/// Our token count of this many words.
fn output_tokens(words: u64) -> u64 {
    tokens(WORD.repeat(usize::try_from(words).unwrap()).as_bytes())
}

/// Checks that every kind of ending occurs, so that no check above is unused.
pub(crate) fn every_ending_has_occurred(endings: &Endings, calls: u64) {
    if calls < 5_000 {
        return;
    }
    for (client_result, outcome) in [
        ("Failed(400)", "released"),
        ("Failed(402)", "refused"),
        ("Failed(404)", "refused"),
        ("Failed(429)", "refused"),
        ("Failed(502)", "released"),
        ("Failed(503)", "released"),
        ("Failed(504)", "released"),
        ("Whole", "settled as reported"),
        ("Whole", "settled as counted"),
        ("Stream", "settled as reported"),
        ("Stream", "settled as counted"),
        ("BrokenStream", "settled as reported"),
        ("BrokenStream", "settled as counted"),
        ("Left", "released"),
        ("Failed(429)", "refused at a limit"),
        ("Failed(502)", "released by the fallback"),
        ("Whole", "settled as reported by the fallback"),
        ("Whole", "settled as counted by the fallback"),
        ("Stream", "settled as reported by the fallback"),
        ("Stream", "settled as counted by the fallback"),
        ("Left", "settled as reported"),
        ("Left", "settled as counted"),
    ] {
        let ending = (client_result.to_owned(), outcome.to_owned());
        assert!(
            endings.contains_key(&ending),
            "no {ending:?} in {endings:#?}"
        );
    }
}
