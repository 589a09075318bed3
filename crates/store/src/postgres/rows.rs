//! Converts rows of the ledger's tables to records.

use ledger::{
    Bucket, Delta, Key, Micro, Period, Reservation, UnixMs, Wallet, WalletStatus, Window,
};
use tokio_postgres::Row;

use crate::books::BookWallet;
use crate::records::accounts::{KeyRow, WalletRow};
use crate::records::balance_point::{BalancePoint, Balances};
use crate::records::calendar::Calendar;
use crate::records::columns::EntryColumns;
use crate::records::model_list::ModelList;
use crate::records::tags::stored_tags;

type Read<T> = Result<T, tokio_postgres::Error>;

/// Columns of a wallet, for [`wallet_row`].
pub(super) const WALLET: &str = "w.n, w.status, w.balance, w.gift_balance, w.frozen, w.credit_limit, w.credit_used, w.entries, w.holds_opened, w.head, w.exposed, w.posted_at, w.charged, w.id, w.name, w.created_at, w.alert_below";

/// Columns of a key that decisions need, for [`key`] and [`calendar`].
macro_rules! decided_key {
    () => {
        "k.n, k.wallet, k.enabled, k.expires_at, k.spend_limit, k.usage, k.frozen, k.open_holds, k.rpm_limit, k.tpm_limit, k.concurrency_limit, k.rpm_state, k.tpm_state, k.window_amount, k.window_before, k.window_ends_at, k.window_entries, k.window_per, k.window_zone, k.last_used_at"
    };
}
pub(super) use decided_key;

/// Columns of a key and its wallet, for [`key_row`].
pub(super) const KEY: &str = concat!(
    decided_key!(),
    ", k.id, w.id, k.name, k.shown_prefix, k.created_at, w.name, k.models, k.tags, k.old_secret_until"
);

/// Reads the status and the amounts of a wallet, starting at its second column.
pub(super) fn wallet(row: &Row) -> Read<Wallet> {
    Ok(Wallet {
        // The table has a CHECK constraint that allows no other word.
        status: match row.try_get(1)? {
            "disabled" => WalletStatus::Disabled,
            _ => WalletStatus::Active,
        },
        balance: micro(row, 2)?,
        gift_balance: micro(row, 3)?,
        frozen: micro(row, 4)?,
        credit_limit: micro(row, 5)?,
        credit_used: micro(row, 6)?,
        exposed: micro(row, 10)?,
    })
}

pub(super) fn book_wallet(row: &Row) -> Read<BookWallet> {
    Ok(BookWallet {
        wallet: wallet(row)?,
        entries: row.try_get(7)?,
        holds_opened: row.try_get(8)?,
        head: row.try_get(9)?,
        posted_at: time(row, 11)?,
        charged: micro(row, 12)?,
        dirty: false,
    })
}

pub(super) fn wallet_row(row: &Row) -> Read<WalletRow> {
    Ok(WalletRow {
        wallet: wallet(row)?,
        id: row.try_get(13)?,
        name: row.try_get(14)?,
        created_at: time(row, 15)?,
        alert_below: row.try_get::<_, Option<i64>>(16)?.map(Micro::new),
    })
}

/// Reads the limits and counters of a key, starting at its third column.
pub(super) fn key(row: &Row) -> Read<Key> {
    Ok(Key {
        enabled: row.try_get(2)?,
        expires_at: row.try_get::<_, Option<i64>>(3)?.map(UnixMs::new),
        limit: row.try_get::<_, Option<i64>>(4)?.map(Micro::new),
        window: window(row)?,
        usage: micro(row, 5)?,
        frozen: micro(row, 6)?,
        open_holds: small(row.try_get(7)?),
        rpm_limit: row.try_get::<_, Option<i64>>(8)?.map(small),
        tpm_limit: row.try_get::<_, Option<i64>>(9)?.map(small),
        concurrency_limit: row.try_get::<_, Option<i64>>(10)?.map(small),
        rpm: Bucket::from_state(row.try_get(11)?),
        tpm: Bucket::from_state(row.try_get(12)?),
    })
}

fn window(row: &Row) -> Read<Option<Window>> {
    let Some(amount) = row.try_get::<_, Option<i64>>(13)? else {
        return Ok(None);
    };
    Ok(Some(Window {
        amount: Micro::new(amount),
        usage_before: micro(row, 14)?,
        period: Period {
            ends_at: time(row, 15)?,
            entries_before: row.try_get(16)?,
        },
    }))
}

/// Reads the periods of a key's window.
pub(super) fn calendar(row: &Row) -> Read<Option<Calendar>> {
    let Some(per) = row.try_get::<_, Option<&str>>(17)? else {
        return Ok(None);
    };
    let zone: Option<&str> = row.try_get(18)?;
    Ok(Some(Calendar::stored(per, zone.unwrap_or_default())))
}

pub(super) fn last_used_at(row: &Row) -> Read<Option<UnixMs>> {
    time_or_null(row, 19)
}

/// The index of the key's id in [`KEY`].
pub(super) const KEY_ID: usize = 20;

pub(super) fn key_row(row: &Row) -> Read<KeyRow> {
    Ok(KeyRow {
        key: key(row)?,
        calendar: calendar(row)?,
        last_used_at: last_used_at(row)?,
        id: row.try_get(KEY_ID)?,
        wallet: row.try_get(21)?,
        name: row.try_get(22)?,
        shown_prefix: row.try_get(23)?,
        created_at: time(row, 24)?,
        wallet_name: row.try_get(25)?,
        models: model_list(row, 26)?,
        tags: stored_tags(row.try_get(27)?),
        old_secret_until: time_or_null(row, 28)?,
    })
}

pub(super) fn model_list(row: &Row, column: usize) -> Read<Option<ModelList>> {
    let list: Option<&str> = row.try_get(column)?;
    Ok(list.map(ModelList::stored))
}

/// Reads the amounts of a hold, starting at its second column: amount, tokens, whether it counts, and its exposure.
pub(super) fn held(row: &Row) -> Read<Reservation> {
    Ok(Reservation {
        hold: micro(row, 1)?,
        tokens: u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0),
        counts_in_flight: row.try_get(3)?,
        exposure: micro(row, 4)?,
    })
}

/// Columns of an entry, for [`entry_columns`].
pub(super) const ENTRY: &str = "wallet, seq, kind, at, closes, part_of, key, held, booked, charge, balance_delta, gift_delta, credit_delta, opened_at, request_id, meter, price_version, basis, note, reference, refund_of, actor, cost, cost_version";

pub(super) fn entry_columns(row: &Row) -> Read<EntryColumns<'_>> {
    Ok(EntryColumns {
        wallet: row.try_get(0)?,
        seq: row.try_get(1)?,
        kind: row.try_get(2)?,
        at: row.try_get(3)?,
        closes: row.try_get(4)?,
        part_of: row.try_get(5)?,
        key: row.try_get(6)?,
        held: row.try_get(7)?,
        booked: row.try_get(8)?,
        charge: row.try_get(9)?,
        delta: Delta {
            balance: row.try_get(10)?,
            gift_balance: row.try_get(11)?,
            credit_used: row.try_get(12)?,
        },
        opened_at: row.try_get(13)?,
        request_id: row.try_get(14)?,
        meter: row.try_get(15)?,
        price_version: row.try_get(16)?,
        basis: row.try_get(17)?,
        note: row.try_get(18)?,
        reference: row.try_get(19)?,
        refund_of: row.try_get(20)?,
        actor: row.try_get(21)?,
        cost: row.try_get(22)?,
        cost_version: row.try_get(23)?,
    })
}

/// Reads a stored balance whose columns start at `first`.
pub(super) fn balance_point(row: &Row, first: usize) -> Read<BalancePoint> {
    Ok(BalancePoint {
        seq: row.try_get(first)?,
        posted_at: time(row, first + 1)?,
        balances: Balances {
            balance: micro(row, first + 2)?,
            gift_balance: micro(row, first + 3)?,
            credit_used: micro(row, first + 4)?,
        },
        charged: micro(row, first + 5)?,
    })
}

pub(super) fn micro(row: &Row, column: usize) -> Read<Micro> {
    row.try_get(column).map(Micro::new)
}

pub(super) fn time_or_null(row: &Row, column: usize) -> Read<Option<UnixMs>> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(UnixMs::new))
}

pub(super) fn time(row: &Row, column: usize) -> Read<UnixMs> {
    row.try_get(column).map(UnixMs::new)
}

/// Converts a number that a CHECK constraint keeps in range.
pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
