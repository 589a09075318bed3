//! The statements of the request path, which are prepared once for each connection.

use tokio_postgres::{Client, Statement};

use crate::postgres::rows::decided_key;

/// Locks the wallets of a batch, in the same order on all nodes. A wallet, its keys and its holds are changed only
/// under this lock.
const LOCK: &str = "SELECT n, status, balance, gift_balance, frozen, credit_limit, credit_used, entries, holds_opened, head,
    exposed, posted_at, charged FROM wallets WHERE n = ANY($1) ORDER BY n FOR NO KEY UPDATE";

/// Selects the time after locking, the transaction's id, and the time until which this node may open holds.
const TIME_AND_LEASE: &str =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_current_xact_id()::text,
    (SELECT lease_until FROM nodes WHERE epoch = $1 AND closed_at IS NULL)";

const KEYS: &str = concat!(
    "SELECT ",
    decided_key!(),
    " FROM unnest($1::bigint[], $2::bigint[]) AS u (wallet, n) JOIN keys k ON k.wallet = u.wallet AND k.n = u.n"
);

const HOLDS: &str = "SELECT h.id, h.amount, h.tokens, h.counts, h.exposure, h.request_id, h.opened_at, h.booked,
    h.cost_booked
    FROM unnest($1::bigint[], $2::bigint[]) AS u (wallet, id) JOIN holds h ON h.wallet = u.wallet AND h.id = u.id";

/// Writes all changes of a batch in one statement, which takes effect as a whole or not at all.
const WRITE: &str = "WITH
    changed_wallets AS (
        UPDATE wallets w SET status = u.status, balance = u.balance, gift_balance = u.gift_balance, frozen = u.frozen,
            credit_limit = u.credit_limit, credit_used = u.credit_used, entries = u.entries,
            holds_opened = u.holds_opened, head = u.head, exposed = u.exposed, posted_at = u.posted_at, charged = u.charged,
            summed = u.entries
        FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::bigint[], $53::bytea[], $54::bigint[], $57::bigint[], $58::bigint[])
            AS u (n, status, balance, gift_balance, frozen, credit_limit, credit_used, entries, holds_opened, head,
                exposed, posted_at, charged)
        WHERE w.n = u.n),
    changed_keys AS (
        UPDATE keys k SET usage = u.usage, frozen = u.frozen, open_holds = u.open_holds, rpm_state = u.rpm_state,
            tpm_state = u.tpm_state, window_before = u.window_before, window_ends_at = u.window_ends_at,
            window_entries = u.window_entries, last_used_at = u.last_used_at
        FROM unnest($10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::bigint[], $73::bigint[], $74::bigint[], $75::bigint[], $76::bigint[])
            AS u (wallet, n, usage, frozen, open_holds, rpm_state, tpm_state, window_before, window_ends_at,
                window_entries, last_used_at)
        WHERE k.wallet = u.wallet AND k.n = u.n),
    opened AS (
        INSERT INTO holds (wallet, id, key, amount, tokens, counts, request_id, opened_at, booked, exposure,
            cost_booked)
        SELECT * FROM unnest($17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::boolean[],
            $23::text[], $24::bigint[], $49::bigint[], $55::bigint[], $69::bigint[])),
    changed_holds AS (
        UPDATE holds h SET amount = u.amount, tokens = u.tokens, counts = u.counts, booked = u.booked,
            exposure = u.exposure, cost_booked = u.cost_booked
        FROM unnest($25::bigint[], $26::bigint[], $27::bigint[], $28::bigint[], $29::boolean[], $50::bigint[],
            $56::bigint[], $70::bigint[]) AS u (wallet, id, amount, tokens, counts, booked, exposure, cost_booked)
        WHERE h.wallet = u.wallet AND h.id = u.id),
    closed AS (
        DELETE FROM holds h USING unnest($30::bigint[], $31::bigint[]) AS u (wallet, id)
        WHERE h.wallet = u.wallet AND h.id = u.id),
    points AS (
        INSERT INTO balance_points (wallet, seq, posted_at, balance, gift_balance, credit_used, charged)
        SELECT * FROM unnest($62::bigint[], $63::bigint[], $64::bigint[], $65::bigint[], $66::bigint[], $67::bigint[],
            $68::bigint[]))
    INSERT INTO entries (wallet, seq, kind, at, closes, key, held, charge, balance_delta, gift_delta, credit_delta,
        opened_at, request_id, meter, price_version, basis, note, part_of, booked, reference, refund_of, actor,
        cost, cost_version)
    SELECT * FROM unnest($32::bigint[], $33::bigint[], $34::text[], $35::bigint[], $36::bigint[], $37::bigint[],
        $38::bigint[], $39::bigint[], $40::bigint[], $41::bigint[], $42::bigint[], $43::bigint[], $44::text[],
        $45::text[], $46::bigint[], $47::text[], $48::text[], $51::bigint[], $52::bigint[],
        $59::text[], $60::bigint[], $61::text[], $71::bigint[], $72::bigint[])";

/// Selects the row numbers of keys and their wallets, which never change.
const NUMBERS: &str =
    "SELECT k.id, k.n, k.wallet, w.id FROM keys k JOIN wallets w ON w.n = k.wallet
    WHERE k.id = ANY($1)";

pub(crate) struct Statements {
    /// Locks wallets, and waits for those that other transactions have locked.
    pub(crate) lock: Statement,
    /// Locks wallets, and skips those that other transactions have locked.
    pub(crate) lock_free: Statement,
    pub(crate) moment: Statement,
    pub(crate) keys: Statement,
    pub(crate) holds: Statement,
    pub(crate) write: Statement,
    pub(crate) numbers: Statement,
}

impl Statements {
    pub(crate) async fn prepare(on: &Client) -> Result<Self, tokio_postgres::Error> {
        let lock_free = format!("{LOCK} SKIP LOCKED");
        let (lock, lock_free, moment, keys, holds, write, numbers) = tokio::try_join!(
            on.prepare(LOCK),
            on.prepare(&lock_free),
            on.prepare(TIME_AND_LEASE),
            on.prepare(KEYS),
            on.prepare(HOLDS),
            on.prepare(WRITE),
            on.prepare(NUMBERS),
        )?;
        Ok(Self {
            lock,
            lock_free,
            moment,
            keys,
            holds,
            write,
            numbers,
        })
    }
}
