//! The statements of the request path, which are prepared once.

use rusqlite::{Connection, Statement};

use super::insert::Insert;
use crate::sqlite::rows::{FROM_KEYS, HOLD, KEY, WALLET};

const ENTRY_COLUMNS: usize = 21;
/// The number of columns that only manual entries have.
const MANUAL_COLUMNS: usize = 3;

// A failed batch is rolled back as a whole, so SQLite need not be able to undo single statements.
const POST: &str = "INSERT OR ROLLBACK INTO entries (wallet, seq, kind, at, closes, key, held, charge, balance_delta,
     gift_delta, credit_delta, opened_at, request_id, meter, price_version, basis, note, part_of, booked,
     cost, cost_version";

pub(crate) struct Statements<'c> {
    pub(crate) begin: Statement<'c>,
    pub(crate) commit: Statement<'c>,
    pub(crate) data_version: Statement<'c>,
    pub(crate) wallet: Statement<'c>,
    pub(crate) key: Statement<'c>,
    pub(crate) hold: Statement<'c>,
    pub(crate) update_wallet: Statement<'c>,
    pub(crate) write_key_state: Statement<'c>,
    pub(crate) open_hold: Statement<'c>,
    pub(crate) change_hold: Statement<'c>,
    pub(crate) delete_hold: Statement<'c>,
    pub(crate) post: Insert<'c>,
    /// Posts the entries of a batch that has manual ones.
    pub(crate) post_manual: Insert<'c>,
}

impl<'c> Statements<'c> {
    pub(crate) fn prepare(on: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: on.prepare("BEGIN IMMEDIATE")?,
            commit: on.prepare("COMMIT")?,
            data_version: on.prepare("PRAGMA data_version")?,
            wallet: on.prepare(&format!("SELECT {WALLET} FROM wallets w WHERE w.n = ?1"))?,
            key: on.prepare(&format!(
                "SELECT {KEY} {FROM_KEYS} WHERE k.id = ?1"
            ))?,
            hold: on.prepare(&format!(
                "SELECT {HOLD} FROM holds h JOIN keys k ON k.n = h.key WHERE h.id = ?1"
            ))?,
            update_wallet: on.prepare(
                "UPDATE wallets SET balance = ?2, gift_balance = ?3, frozen = ?4, credit_used = ?5, entries = ?6,
                 holds_opened = ?7, head = ?8, exposed = ?9, posted_at = ?10, charged = ?11 WHERE n = ?1",
            )?,
            write_key_state: on.prepare(
                "INSERT OR REPLACE INTO key_states (key, usage, frozen, open_holds, rpm_state, tpm_state,
                 window_before, window_ends_at, window_entries, last_used_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?,
            open_hold: on.prepare(
                "INSERT INTO holds (id, wallet, key, amount, tokens, counts, request_id, opened_at, booked, exposure,
                 cost_booked) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?,
            change_hold: on.prepare(
                "UPDATE holds SET amount = ?2, tokens = ?3, counts = ?4, booked = ?5, exposure = ?6,
                 cost_booked = ?7 WHERE id = ?1",
            )?,
            delete_hold: on.prepare("DELETE FROM holds WHERE id = ?1")?,
            post: Insert::prepare(on, &format!("{POST})"), ENTRY_COLUMNS)?,
            post_manual: Insert::prepare_single(
                on,
                &format!("{POST}, reference, refund_of, actor)"),
                ENTRY_COLUMNS + MANUAL_COLUMNS,
            )?,
        })
    }
}
