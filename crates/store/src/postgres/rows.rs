//! Reads rows of the ledger.

use ledger::{Bucket, Delta, Key, Micro, Reservation, UnixMs, Wallet, WalletStatus};
use tokio_postgres::Row;

use crate::books::BookWallet;
use crate::records::accounts::{KeyRow, WalletRow};
use crate::records::balance_point::{BalancePoint, Balances};
use crate::records::columns::EntryColumns;

type Read<T> = Result<T, tokio_postgres::Error>;

/// Columns of a wallet, for [`wallet_row`].
pub(super) const WALLET: &str = "w.n, w.status, w.balance, w.gift_balance, w.frozen, w.credit_limit, w.credit_used, w.entries, w.holds_opened, w.head, w.exposed, w.posted_at, w.charged, w.id, w.name, w.created_at";

/// Columns of a key beside its wallet, for [`key_row`].
pub(super) const KEY: &str = "k.n, k.wallet, k.enabled, k.expires_at, k.spend_limit, k.usage, k.frozen, k.open_holds, k.rpm_limit, k.tpm_limit, k.concurrency_limit, k.rpm_state, k.tpm_state, k.id, w.id, k.name, k.shown_prefix, k.created_at";

/// The amounts of a wallet, starting at its second column.
pub(super) fn wallet(row: &Row) -> Read<Wallet> {
    Ok(Wallet {
        // The table has a check on it.
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
    })
}

/// The limits and counters of a key, starting at its third column.
pub(super) fn key(row: &Row) -> Read<Key> {
    Ok(Key {
        enabled: row.try_get(2)?,
        expires_at: row.try_get::<_, Option<i64>>(3)?.map(UnixMs::new),
        limit: row.try_get::<_, Option<i64>>(4)?.map(Micro::new),
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

pub(super) fn key_row(row: &Row) -> Read<KeyRow> {
    Ok(KeyRow {
        key: key(row)?,
        id: row.try_get(13)?,
        wallet: row.try_get(14)?,
        name: row.try_get(15)?,
        shown_prefix: row.try_get(16)?,
        created_at: time(row, 17)?,
    })
}

/// The amounts of a hold: amount, tokens, whether it counts, and its exposure, starting at its second column.
pub(super) fn held(row: &Row) -> Read<Reservation> {
    Ok(Reservation {
        hold: micro(row, 1)?,
        tokens: u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0),
        counts: row.try_get(3)?,
        exposure: micro(row, 4)?,
    })
}

/// Columns of an entry, for [`entry_columns`].
pub(super) const ENTRY: &str = "wallet, seq, kind, at, closes, part_of, key, held, booked, charge, balance_delta, gift_delta, credit_delta, opened_at, request_id, meter, price_version, basis, note, reference, refund_of, actor, cost, cost_version";

/// An entry as it is stored.
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

/// A stored balance, whose number is in column `first`.
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

pub(super) fn time(row: &Row, column: usize) -> Read<UnixMs> {
    row.try_get(column).map(UnixMs::new)
}

/// The table has a check on it.
pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
