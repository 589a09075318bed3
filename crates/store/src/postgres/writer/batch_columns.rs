//! Collects the changes of a batch as columns, for the one statement that writes them.

use ledger::UnixMs;
use tokio_postgres::types::ToSql;

use crate::books::Books;
use crate::chain::Head;
use crate::postgres::connection::ledger_connection::Session;

/// One list per column, so that one statement writes any number of rows.
#[derive(Default)]
pub(crate) struct BatchColumns<'b> {
    wallets: Wallets,
    keys: Keys,
    opened: NewHolds<'b>,
    changed: ChangedHolds,
    closed: (Vec<i64>, Vec<i64>),
    entries: Entries<'b>,
    points: Points,
}

#[derive(Default)]
struct Wallets {
    n: Vec<i64>,
    status: Vec<&'static str>,
    balance: Vec<i64>,
    gift_balance: Vec<i64>,
    frozen: Vec<i64>,
    credit_limit: Vec<i64>,
    credit_used: Vec<i64>,
    entries: Vec<i64>,
    holds_opened: Vec<i64>,
    head: Vec<Head>,
    exposed: Vec<i64>,
    posted_at: Vec<i64>,
    charged: Vec<i64>,
}

#[derive(Default)]
struct Keys {
    wallet: Vec<i64>,
    n: Vec<i64>,
    usage: Vec<i64>,
    frozen: Vec<i64>,
    open_holds: Vec<i64>,
    rpm_state: Vec<i64>,
    tpm_state: Vec<i64>,
    window_before: Vec<i64>,
    window_ends_at: Vec<i64>,
    window_entries: Vec<i64>,
    last_used_at: Vec<Option<i64>>,
}

#[derive(Default)]
struct NewHolds<'b> {
    wallet: Vec<i64>,
    id: Vec<i64>,
    key: Vec<i64>,
    amount: Vec<i64>,
    tokens: Vec<i64>,
    counts: Vec<bool>,
    request_id: Vec<&'b str>,
    opened_at: Vec<i64>,
    booked: Vec<i64>,
    exposure: Vec<i64>,
    cost_booked: Vec<i64>,
}

#[derive(Default)]
struct ChangedHolds {
    wallet: Vec<i64>,
    id: Vec<i64>,
    amount: Vec<i64>,
    tokens: Vec<i64>,
    counts: Vec<bool>,
    booked: Vec<i64>,
    exposure: Vec<i64>,
    cost_booked: Vec<i64>,
}

#[derive(Default)]
struct Entries<'b> {
    wallet: Vec<i64>,
    seq: Vec<i64>,
    kind: Vec<&'b str>,
    at: Vec<i64>,
    closes: Vec<Option<i64>>,
    key: Vec<Option<i64>>,
    held: Vec<Option<i64>>,
    charge: Vec<i64>,
    balance_delta: Vec<i64>,
    gift_delta: Vec<i64>,
    credit_delta: Vec<i64>,
    opened_at: Vec<Option<i64>>,
    request_id: Vec<Option<&'b str>>,
    meter: Vec<Option<&'b str>>,
    price_version: Vec<Option<i64>>,
    basis: Vec<Option<&'b str>>,
    note: Vec<Option<&'b str>>,
    part_of: Vec<Option<i64>>,
    booked: Vec<i64>,
    reference: Vec<Option<&'b str>>,
    refund_of: Vec<Option<i64>>,
    actor: Vec<Option<&'b str>>,
    cost: Vec<Option<i64>>,
    cost_version: Vec<Option<i64>>,
}

#[derive(Default)]
struct Points {
    wallet: Vec<i64>,
    seq: Vec<i64>,
    posted_at: Vec<i64>,
    balance: Vec<i64>,
    gift_balance: Vec<i64>,
    credit_used: Vec<i64>,
    charged: Vec<i64>,
}

impl<'b> BatchColumns<'b> {
    /// Collects all pending changes. `None` if there is nothing to write.
    pub(crate) fn of(books: &'b mut Books) -> Option<Self> {
        if books.pending.is_empty() {
            return None;
        }
        let mut written = Self::default();
        for n in &books.pending.wallets {
            if let Some(row) = books.wallets.get_mut(*n) {
                let (to, wallet) = (&mut written.wallets, &row.wallet);
                to.n.push(*n);
                to.status.push(wallet.status.as_str());
                to.balance.push(wallet.balance.get());
                to.gift_balance.push(wallet.gift_balance.get());
                to.frozen.push(wallet.frozen.get());
                to.credit_limit.push(wallet.credit_limit.get());
                to.credit_used.push(wallet.credit_used.get());
                to.entries.push(row.entries);
                to.holds_opened.push(row.holds_opened);
                to.head.push(row.head);
                to.exposed.push(wallet.exposed.get());
                to.posted_at.push(row.posted_at.get());
                to.charged.push(row.charged.get());
            }
        }
        for id in &books.pending.keys {
            if let Some(row) = books.keys.get_mut(*id) {
                let (to, key) = (&mut written.keys, &row.key);
                let window = key.window.unwrap_or_default();
                to.wallet.push(row.wallet);
                to.n.push(row.n);
                to.usage.push(key.usage.get());
                to.frozen.push(key.frozen.get());
                to.open_holds.push(i64::from(key.open_holds));
                to.rpm_state.push(key.rpm.state());
                to.tpm_state.push(key.tpm.state());
                to.window_before.push(window.usage_before.get());
                to.window_ends_at.push(window.period.ends_at.get());
                to.window_entries.push(window.period.entries_before);
                to.last_used_at.push(row.last_used_at.map(UnixMs::get));
            }
        }
        let mut key_numbers = Vec::with_capacity(books.pending.opened.len());
        for id in &books.pending.opened {
            let key = books.holds.get(id).map(|hold| hold.key);
            key_numbers.push(key.and_then(|key| books.keys.get_mut(key)).map(|key| key.n));
        }
        // From here on the rows are only read.
        let books = &*books;
        for (id, key) in books.pending.opened.iter().zip(key_numbers) {
            // A hold that is missing was closed in the same batch.
            if let (Some(hold), Some(key)) = (books.holds.get(id), key) {
                let to = &mut written.opened;
                to.wallet.push(hold.wallet);
                to.id.push(id.get());
                to.key.push(key);
                to.amount.push(hold.held.hold.get());
                to.tokens.push(sql_tokens(hold.held.tokens));
                to.counts.push(hold.held.counts_in_flight);
                to.request_id.push(&hold.request_id);
                to.opened_at.push(hold.opened_at.get());
                to.booked.push(hold.booked.get());
                to.exposure.push(hold.held.exposure.get());
                to.cost_booked.push(hold.cost_booked.get());
            }
        }
        for id in &books.pending.changed {
            if let Some(hold) = books.holds.get(id) {
                let to = &mut written.changed;
                to.wallet.push(hold.wallet);
                to.id.push(id.get());
                to.amount.push(hold.held.hold.get());
                to.tokens.push(sql_tokens(hold.held.tokens));
                to.counts.push(hold.held.counts_in_flight);
                to.booked.push(hold.booked.get());
                to.exposure.push(hold.held.exposure.get());
                to.cost_booked.push(hold.cost_booked.get());
            }
        }
        written.post(books);
        Some(written)
    }

    fn post(&mut self, books: &'b Books) {
        let to = &mut self.entries;
        for posting in &books.pending.postings {
            let entry = posting.columns();
            if let Some(hold) = posting.removes() {
                self.closed.0.push(entry.wallet);
                self.closed.1.push(hold.get());
            }
            to.wallet.push(entry.wallet);
            to.seq.push(entry.seq);
            to.kind.push(entry.kind);
            to.at.push(entry.at);
            to.closes.push(entry.closes);
            to.key.push(entry.key);
            to.held.push(entry.held);
            to.charge.push(entry.charge);
            to.balance_delta.push(entry.delta.balance);
            to.gift_delta.push(entry.delta.gift_balance);
            to.credit_delta.push(entry.delta.credit_used);
            to.opened_at.push(entry.opened_at);
            to.request_id.push(entry.request_id);
            to.meter.push(entry.meter);
            to.price_version.push(entry.price_version);
            to.basis.push(entry.basis);
            to.note.push(entry.note);
            to.part_of.push(entry.part_of);
            to.booked.push(entry.booked);
            to.reference.push(entry.reference);
            to.refund_of.push(entry.refund_of);
            to.actor.push(entry.actor);
            to.cost.push(entry.cost);
            to.cost_version.push(entry.cost_version);
        }
        let to = &mut self.points;
        for (wallet, point) in &books.pending.points {
            to.wallet.push(*wallet);
            to.seq.push(point.seq);
            to.posted_at.push(point.posted_at.get());
            to.balance.push(point.balances.balance.get());
            to.gift_balance.push(point.balances.gift_balance.get());
            to.credit_used.push(point.balances.credit_used.get());
            to.charged.push(point.charged.get());
        }
    }

    pub(crate) async fn send(&self, session: &Session) -> Result<(), tokio_postgres::Error> {
        let (wallets, keys) = (&self.wallets, &self.keys);
        let (opened, changed, closed) = (&self.opened, &self.changed, &self.closed);
        let (entries, points) = (&self.entries, &self.points);
        let columns: [&(dyn ToSql + Sync); 76] = [
            &wallets.n,
            &wallets.status,
            &wallets.balance,
            &wallets.gift_balance,
            &wallets.frozen,
            &wallets.credit_limit,
            &wallets.credit_used,
            &wallets.entries,
            &wallets.holds_opened,
            &keys.wallet,
            &keys.n,
            &keys.usage,
            &keys.frozen,
            &keys.open_holds,
            &keys.rpm_state,
            &keys.tpm_state,
            &opened.wallet,
            &opened.id,
            &opened.key,
            &opened.amount,
            &opened.tokens,
            &opened.counts,
            &opened.request_id,
            &opened.opened_at,
            &changed.wallet,
            &changed.id,
            &changed.amount,
            &changed.tokens,
            &changed.counts,
            &closed.0,
            &closed.1,
            &entries.wallet,
            &entries.seq,
            &entries.kind,
            &entries.at,
            &entries.closes,
            &entries.key,
            &entries.held,
            &entries.charge,
            &entries.balance_delta,
            &entries.gift_delta,
            &entries.credit_delta,
            &entries.opened_at,
            &entries.request_id,
            &entries.meter,
            &entries.price_version,
            &entries.basis,
            &entries.note,
            &opened.booked,
            &changed.booked,
            &entries.part_of,
            &entries.booked,
            &wallets.head,
            &wallets.exposed,
            &opened.exposure,
            &changed.exposure,
            &wallets.posted_at,
            &wallets.charged,
            &entries.reference,
            &entries.refund_of,
            &entries.actor,
            &points.wallet,
            &points.seq,
            &points.posted_at,
            &points.balance,
            &points.gift_balance,
            &points.credit_used,
            &points.charged,
            &opened.cost_booked,
            &changed.cost_booked,
            &entries.cost,
            &entries.cost_version,
            &keys.window_before,
            &keys.window_ends_at,
            &keys.window_entries,
            &keys.last_used_at,
        ];
        session.client.execute(&session.sql.write, &columns).await?;
        Ok(())
    }
}

fn sql_tokens(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
