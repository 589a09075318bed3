//! Reads alerts and rules, and the rows from which alerts are computed, on the read pool.

use ledger::{Micro, UnixMs};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::records::accounts::KeyRow;
use crate::records::alerts::{
    AlertCursor, AlertKind, AlertQuery, AlertRow, AlertSignal, DeliveryState, LastAttempt,
    LowWallet, RuleRow, ScanPage, Webhook, stored_kinds,
};
use crate::records::ids::RuleId;
use crate::sqlite::rows::{FROM_KEYS, KEY, key_row, micro, time_or_null};

/// Columns of an alert, for [`alert_row`].
pub(super) const ALERT: &str =
    "a.n, a.id, a.kind, a.condition, a.subject, a.wallet, a.message, a.at, a.ended_at,
     (SELECT count(*) FROM alert_deliveries d WHERE d.alert = a.n AND d.next_at IS NOT NULL),
     (SELECT count(*) FROM alert_deliveries d WHERE d.alert = a.n AND d.outcome = 'given_up'),
     (SELECT count(*) FROM alert_deliveries d WHERE d.alert = a.n)";

pub(super) const ALERT_COLUMNS: usize = 12;

/// The condition for delivering `d`. The end of an alert waits until its beginning is delivered or given up, because a
/// receiver that gets the end first would keep the alert open.
pub(super) const BEGINNING_IS_DONE: &str =
    "NOT (d.event = 'end' AND EXISTS (SELECT 1 FROM alert_deliveries b WHERE b.alert = d.alert AND b.rule = d.rule
     AND b.event = 'begin' AND b.next_at IS NOT NULL))";

/// Selects rules with their latest attempt, for [`rule_row`].
pub(crate) const RULES: &str =
    "SELECT r.id, r.kinds, r.url, r.wallet, w.name, r.below, r.created_at, d.tried_at, d.problem
     FROM alert_rules r LEFT JOIN wallets w ON w.id = r.wallet
     LEFT JOIN alert_deliveries d ON d.n = (SELECT max(x.n) FROM alert_deliveries x
         WHERE x.rule = r.n AND x.tried_at IS NOT NULL)";

pub(crate) fn rules(on: &Connection) -> rusqlite::Result<Vec<RuleRow>> {
    let mut select = on.prepare_cached(&format!("{RULES} ORDER BY r.n"))?;
    select.query_map([], rule_row)?.collect()
}

pub(crate) fn rule_row(row: &Row<'_>) -> rusqlite::Result<RuleRow> {
    let problem = row.get(8)?;
    Ok(RuleRow {
        id: row.get(0)?,
        kinds: stored_kinds(row.get_ref(1)?.as_str()?),
        url: row.get(2)?,
        wallet: row.get(3)?,
        wallet_name: row.get(4)?,
        below: row.get::<_, Option<i64>>(5)?.map(Micro::new),
        created_at: UnixMs::new(row.get(6)?),
        last_attempt: time_or_null(row, 7)?.map(|at| LastAttempt { at, problem }),
    })
}

pub(crate) fn webhook(on: &Connection, rule: RuleId) -> rusqlite::Result<Option<Webhook>> {
    on.prepare_cached("SELECT url, secret FROM alert_rules WHERE id = ?1")?
        .query_row([rule], |row| {
            Ok(Webhook {
                url: row.get(0)?,
                secret: row.get(1)?,
            })
        })
        .optional()
}

pub(crate) fn alerts(on: &Connection, query: &AlertQuery) -> rusqlite::Result<Vec<AlertRow>> {
    // The condition is part of the SQL text, so that the index of open alerts can be used.
    let open = if query.only_open {
        "a.ended_at IS NULL"
    } else {
        "TRUE"
    };
    let select = format!(
        "SELECT {ALERT} FROM alerts a WHERE {open} AND (?1 IS NULL OR a.kind = ?1) AND (?2 IS NULL OR a.wallet = ?2)
         AND (?3 IS NULL OR a.n < ?3) ORDER BY a.n DESC LIMIT ?4"
    );
    let before = query.before.map(|AlertCursor(before)| before);
    let kind = query.kind.map(AlertKind::as_str);
    let values = params![kind, query.wallet, before, query.rows_max()];
    on.prepare_cached(&select)?
        .query_map(values, |row| alert_row(row, 0))?
        .collect()
}

/// Reads an alert from the columns that start at `first`.
pub(super) fn alert_row(row: &Row<'_>, first: usize) -> rusqlite::Result<AlertRow> {
    let count = |column: usize| row.get(first + column);
    Ok(AlertRow {
        cursor: AlertCursor(row.get(first)?),
        id: row.get(first + 1)?,
        kind: row.get(first + 2)?,
        condition: row.get(first + 3)?,
        subject: row.get(first + 4)?,
        wallet: row.get(first + 5)?,
        message: row.get(first + 6)?,
        at: UnixMs::new(row.get(first + 7)?),
        ended_at: time_or_null(row, first + 8)?,
        delivery: DeliveryState::of(count(9)?, count(10)?, count(11)?),
    })
}

/// The signals of all nodes, one for each condition.
pub(crate) fn signals(on: &Connection, now: UnixMs) -> rusqlite::Result<Vec<AlertSignal>> {
    let select = "SELECT condition, kind, subject, min(message) FROM alert_signals WHERE until > ?1
                  GROUP BY condition ORDER BY condition";
    on.prepare_cached(select)?
        .query_map([now.get()], |row| {
            Ok(AlertSignal {
                condition: row.get(0)?,
                kind: row.get(1)?,
                subject: row.get(2)?,
                message: row.get(3)?,
            })
        })?
        .collect()
}

/// Whether a delivery is due and may be made now.
pub(crate) fn has_due_deliveries(on: &Connection, now: UnixMs) -> rusqlite::Result<bool> {
    let select = format!(
        "SELECT EXISTS (SELECT 1 FROM alert_deliveries d WHERE d.next_at <= ?1 AND {BEGINNING_IS_DONE})"
    );
    on.prepare_cached(&select)?
        .query_row([now.get()], |row| row.get(0))
}

pub(crate) fn low_wallets(
    on: &Connection,
    below: Option<Micro>,
    page: ScanPage,
) -> rusqlite::Result<Vec<LowWallet>> {
    // If no rule has an amount, only wallets with their own amount can match. An index finds them.
    let is_low = match below {
        Some(_) => "(total < alert_below OR total < ?1)",
        None => "alert_below IS NOT NULL AND total < alert_below",
    };
    let select = format!(
        "SELECT n, id, name, balance + gift_balance - credit_used AS total, alert_below FROM wallets
         WHERE n > ?2 AND status = 'active' AND {is_low} ORDER BY n LIMIT ?3"
    );
    on.prepare_cached(&select)?
        .query_map(
            params![below.map(Micro::get), page.after, page.limit],
            |row| {
                Ok(LowWallet {
                    row_number: row.get(0)?,
                    id: row.get(1)?,
                    name: row.get(2)?,
                    balance: micro(row, 3)?,
                    below: row.get::<_, Option<i64>>(4)?.map(Micro::new),
                })
            },
        )?
        .collect()
}

/// Finds keys that may have used 80 % of a limit. The caller computes the exact share.
pub(crate) fn keys_near_limits(
    on: &Connection,
    page: ScanPage,
) -> rusqlite::Result<Vec<(i64, KeyRow)>> {
    let select = format!(
        "SELECT {KEY}, k.n AS place {FROM_KEYS} WHERE k.n > ?1 AND k.enabled
         AND (k.spend_limit IS NOT NULL OR k.window_amount IS NOT NULL)
         AND (s.usage >= k.spend_limit / 10 * 8 OR s.usage - s.window_before >= k.window_amount / 10 * 8)
         ORDER BY k.n LIMIT ?2"
    );
    on.prepare_cached(&select)?
        .query_map(params![page.after, page.limit], |row| {
            Ok((row.get("place")?, key_row(row)?))
        })?
        .collect()
}

impl FromSql for AlertKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let kind = value.as_str()?.parse();
        kind.map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}
