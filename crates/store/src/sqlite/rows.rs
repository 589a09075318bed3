//! Converts rows of the ledger's tables to records.

use ledger::{
    Bucket, Delta, Key, Micro, Period, Reservation, UnixMs, Wallet, WalletStatus, Window,
};
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::books::{BookKey, BookWallet, HoldRow, OpenHold};
use crate::records::accounts::{KeyRow, WalletRow};
use crate::records::balance_point::{BalancePoint, Balances};
use crate::records::calendar::Calendar;
use crate::records::columns::EntryColumns;
use crate::records::ids::{KeyId, WalletId};
use crate::records::model_list::ModelList;
use crate::records::tags::stored_tags;

/// Columns of a wallet, for [`wallet_row`].
pub(super) const WALLET: &str = "w.id, w.name, w.status, w.balance, w.gift_balance, w.frozen, w.credit_limit, w.credit_used, w.created_at, w.entries, w.holds_opened, w.head, w.exposed, w.posted_at, w.charged, w.alert_below";

/// Columns of a key and its wallet, for [`key_row`]. A key that was never used has no row in `key_states`.
pub(super) const KEY: &str = "k.id, w.id, k.name, k.shown_prefix, k.enabled, k.expires_at, k.spend_limit, coalesce(s.usage, 0), coalesce(s.frozen, 0), coalesce(s.open_holds, 0), k.rpm_limit, k.tpm_limit, k.concurrency_limit, coalesce(s.rpm_state, 0), coalesce(s.tpm_state, 0), k.created_at, k.n, k.wallet, k.window_amount, coalesce(s.window_before, 0), coalesce(s.window_ends_at, 0), coalesce(s.window_entries, 0), k.window_per, k.window_zone, s.last_used_at, w.name, k.models, k.tags, k.old_secret_until";

/// The tables that [`KEY`] refers to.
pub(super) const FROM_KEYS: &str =
    "FROM keys k JOIN wallets w ON w.n = k.wallet LEFT JOIN key_states s ON s.key = k.n";

pub(super) fn wallet_row(row: &Row<'_>) -> rusqlite::Result<WalletRow> {
    Ok(WalletRow {
        id: row.get(0)?,
        name: row.get(1)?,
        wallet: Wallet {
            status: row.get::<_, Status>(2)?.0,
            balance: micro(row, 3)?,
            gift_balance: micro(row, 4)?,
            frozen: micro(row, 5)?,
            credit_limit: micro(row, 6)?,
            credit_used: micro(row, 7)?,
            exposed: micro(row, 12)?,
        },
        alert_below: row.get::<_, Option<i64>>(15)?.map(Micro::new),
        created_at: UnixMs::new(row.get(8)?),
    })
}

pub(super) fn book_wallet(row: &Row<'_>) -> rusqlite::Result<BookWallet> {
    Ok(BookWallet {
        wallet: wallet_row(row)?.wallet,
        entries: row.get(9)?,
        holds_opened: row.get(10)?,
        head: row.get(11)?,
        posted_at: UnixMs::new(row.get(13)?),
        charged: micro(row, 14)?,
        dirty: false,
    })
}

pub(super) fn key_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        id: row.get::<_, KeyId>(0)?,
        wallet: row.get::<_, WalletId>(1)?,
        wallet_name: row.get(25)?,
        name: row.get(2)?,
        shown_prefix: row.get(3)?,
        key: key(row)?,
        calendar: calendar(row)?,
        models: model_list(row, 26)?,
        tags: stored_tags(row.get_ref(27)?.as_str_or_null()?),
        last_used_at: time_or_null(row, 24)?,
        old_secret_until: time_or_null(row, 28)?,
        created_at: UnixMs::new(row.get(15)?),
    })
}

fn key(row: &Row<'_>) -> rusqlite::Result<Key> {
    Ok(Key {
        enabled: row.get(4)?,
        expires_at: time_or_null(row, 5)?,
        limit: row.get::<_, Option<i64>>(6)?.map(Micro::new),
        window: window(row)?,
        usage: micro(row, 7)?,
        frozen: micro(row, 8)?,
        open_holds: row.get(9)?,
        rpm_limit: row.get(10)?,
        tpm_limit: row.get(11)?,
        concurrency_limit: row.get(12)?,
        rpm: Bucket::from_state(row.get(13)?),
        tpm: Bucket::from_state(row.get(14)?),
    })
}

fn window(row: &Row<'_>) -> rusqlite::Result<Option<Window>> {
    let Some(amount) = row.get::<_, Option<i64>>(18)? else {
        return Ok(None);
    };
    Ok(Some(Window {
        amount: Micro::new(amount),
        usage_before: micro(row, 19)?,
        period: Period {
            ends_at: UnixMs::new(row.get(20)?),
            entries_before: row.get(21)?,
        },
    }))
}

fn calendar(row: &Row<'_>) -> rusqlite::Result<Option<Calendar>> {
    let Some(per) = row.get_ref(22)?.as_str_or_null()? else {
        return Ok(None);
    };
    let zone = row.get_ref(23)?.as_str_or_null()?;
    Ok(Some(Calendar::stored(per, zone.unwrap_or_default())))
}

pub(super) fn model_list(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ModelList>> {
    let list = row.get_ref(column)?.as_str_or_null()?;
    Ok(list.map(ModelList::stored))
}

pub(super) fn time_or_null(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<UnixMs>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(UnixMs::new))
}

pub(super) fn book_key(row: &Row<'_>) -> rusqlite::Result<BookKey> {
    Ok(BookKey {
        n: row.get(16)?,
        wallet: row.get(17)?,
        wallet_id: row.get(1)?,
        key: key(row)?,
        calendar: calendar(row)?,
        last_used_at: time_or_null(row, 24)?,
        dirty: false,
    })
}

/// Columns of a hold, for [`open_hold`].
pub(super) const HOLD: &str = "h.wallet, k.id, h.amount, h.tokens, h.counts, h.request_id, h.opened_at, h.booked, h.exposure, h.cost_booked";

pub(super) fn open_hold(row: &Row<'_>) -> rusqlite::Result<OpenHold> {
    Ok(OpenHold {
        wallet: row.get(0)?,
        key: row.get(1)?,
        held: Reservation {
            hold: micro(row, 2)?,
            exposure: micro(row, 8)?,
            tokens: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
            counts_in_flight: row.get(4)?,
        },
        request_id: row.get_ref(5)?.as_str()?.into(),
        opened_at: UnixMs::new(row.get(6)?),
        booked: micro(row, 7)?,
        cost_booked: micro(row, 9)?,
        row: HoldRow::Same,
    })
}

/// Columns of an entry, for [`entry_columns`].
pub(super) const ENTRY: &str = "wallet, seq, kind, at, closes, part_of, key, held, booked, charge, balance_delta, gift_delta, credit_delta, opened_at, request_id, meter, price_version, basis, note, reference, refund_of, actor, cost, cost_version";

pub(super) fn entry_columns<'a>(row: &'a Row<'_>) -> rusqlite::Result<EntryColumns<'a>> {
    let text = |column| -> rusqlite::Result<Option<&'a str>> {
        Ok(row.get_ref(column)?.as_str_or_null()?)
    };
    Ok(EntryColumns {
        wallet: row.get(0)?,
        seq: row.get(1)?,
        kind: row.get_ref(2)?.as_str()?,
        at: row.get(3)?,
        closes: row.get(4)?,
        part_of: row.get(5)?,
        key: row.get(6)?,
        held: row.get(7)?,
        booked: row.get(8)?,
        charge: row.get(9)?,
        delta: Delta {
            balance: row.get(10)?,
            gift_balance: row.get(11)?,
            credit_used: row.get(12)?,
        },
        opened_at: row.get(13)?,
        request_id: text(14)?,
        meter: text(15)?,
        price_version: row.get(16)?,
        basis: text(17)?,
        note: text(18)?,
        reference: text(19)?,
        refund_of: row.get(20)?,
        actor: text(21)?,
        cost: row.get(22)?,
        cost_version: row.get(23)?,
    })
}

/// Reads a stored balance whose columns start at `first`.
pub(super) fn balance_point(row: &Row<'_>, first: usize) -> rusqlite::Result<BalancePoint> {
    Ok(BalancePoint {
        seq: row.get(first)?,
        posted_at: UnixMs::new(row.get(first + 1)?),
        balances: Balances {
            balance: micro(row, first + 2)?,
            gift_balance: micro(row, first + 3)?,
            credit_used: micro(row, first + 4)?,
        },
        charged: micro(row, first + 5)?,
    })
}

pub(super) fn micro(row: &Row<'_>, column: usize) -> rusqlite::Result<Micro> {
    row.get(column).map(Micro::new)
}

struct Status(WalletStatus);

impl FromSql for Status {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let status = value.as_str()?.parse();
        status
            .map(Self)
            .map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}
