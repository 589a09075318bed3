//! Reads alerts and rules, and the rows from which alerts are computed.

use std::sync::Arc;

use ledger::Micro;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::postgres::ids::by_word;
use crate::postgres::rows::{KEY, key_row, micro, time, time_or_null};
use crate::records::accounts::KeyRow;
use crate::records::alerts::{
    AlertCursor, AlertKind, AlertQuery, AlertRow, AlertSignal, DeliveryState, LastAttempt,
    LowWallet, RuleRow, ScanPage, Webhook, stored_kinds,
};
use crate::records::ids::RuleId;

type Read<T> = Result<T, tokio_postgres::Error>;

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

pub(crate) async fn rules(on: Arc<Client>) -> Read<Vec<RuleRow>> {
    let rows = on.query(&format!("{RULES} ORDER BY r.n"), &[]).await?;
    rows.iter().map(rule_row).collect()
}

pub(crate) fn rule_row(row: &Row) -> Read<RuleRow> {
    let problem = row.try_get(8)?;
    Ok(RuleRow {
        id: row.try_get(0)?,
        kinds: stored_kinds(row.try_get(1)?),
        url: row.try_get(2)?,
        wallet: row.try_get(3)?,
        wallet_name: row.try_get(4)?,
        below: row.try_get::<_, Option<i64>>(5)?.map(Micro::new),
        created_at: time(row, 6)?,
        last_attempt: time_or_null(row, 7)?.map(|at| LastAttempt { at, problem }),
    })
}

pub(crate) async fn webhook(on: Arc<Client>, rule: RuleId) -> Read<Option<Webhook>> {
    let select = "SELECT url, secret FROM alert_rules WHERE id = $1";
    let found = on.query_opt(select, &[&rule.to_string()]).await?;
    let webhook = |row: Row| {
        Ok(Webhook {
            url: row.try_get(0)?,
            secret: row.try_get(1)?,
        })
    };
    found.map(webhook).transpose()
}

pub(crate) async fn alerts(on: Arc<Client>, query: AlertQuery) -> Read<Vec<AlertRow>> {
    // The condition is part of the SQL text, so that the index of open alerts can be used.
    let open = if query.only_open {
        "a.ended_at IS NULL"
    } else {
        "TRUE"
    };
    let select = format!(
        "SELECT {ALERT} FROM alerts a WHERE {open} AND ($1::text IS NULL OR a.kind = $1)
         AND ($2::text IS NULL OR a.wallet = $2) AND ($3::bigint IS NULL OR a.n < $3) ORDER BY a.n DESC LIMIT $4"
    );
    let before = query.before.map(|AlertCursor(before)| before);
    let kind = query.kind.map(AlertKind::as_str);
    let wallet = query.wallet.map(|wallet| wallet.to_string());
    let limit = i64::from(query.rows_max());
    let values: [&(dyn ToSql + Sync); 4] = [&kind, &wallet, &before, &limit];
    let rows = on.query(&select, &values).await?;
    rows.iter().map(|row| alert_row(row, 0)).collect()
}

/// Reads an alert from the columns that start at `first`.
pub(super) fn alert_row(row: &Row, first: usize) -> Read<AlertRow> {
    let count = |column: usize| row.try_get(first + column);
    Ok(AlertRow {
        cursor: AlertCursor(row.try_get(first)?),
        id: row.try_get(first + 1)?,
        kind: row.try_get(first + 2)?,
        condition: row.try_get(first + 3)?,
        subject: row.try_get(first + 4)?,
        wallet: row.try_get(first + 5)?,
        message: row.try_get(first + 6)?,
        at: time(row, first + 7)?,
        ended_at: time_or_null(row, first + 8)?,
        delivery: DeliveryState::of(count(9)?, count(10)?, count(11)?),
    })
}

/// The signals of all nodes, one for each condition.
pub(crate) async fn signals(on: Arc<Client>) -> Read<Vec<AlertSignal>> {
    let select = "SELECT DISTINCT ON (condition) condition, kind, subject, message FROM alert_signals
                  WHERE until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY condition, node";
    let signal = |row: &Row| {
        Ok(AlertSignal {
            condition: row.try_get(0)?,
            kind: row.try_get(1)?,
            subject: row.try_get(2)?,
            message: row.try_get(3)?,
        })
    };
    on.query(select, &[]).await?.iter().map(signal).collect()
}

pub(crate) async fn low_wallets(
    on: Arc<Client>,
    below: Option<Micro>,
    page: ScanPage,
) -> Read<Vec<LowWallet>> {
    // If no rule has an amount, only wallets with their own amount can match. An index finds them.
    let is_low = match below {
        Some(_) => {
            "(balance + gift_balance - credit_used < alert_below
                    OR balance + gift_balance - credit_used < $1::bigint)"
        }
        None => {
            "alert_below IS NOT NULL AND balance + gift_balance - credit_used < alert_below
                 AND $1::bigint IS NULL"
        }
    };
    let select = format!(
        "SELECT n, id, name, balance + gift_balance - credit_used, alert_below FROM wallets
         WHERE n > $2 AND status = 'active' AND {is_low} ORDER BY n LIMIT $3"
    );
    let (below, limit) = (below.map(Micro::get), i64::from(page.limit));
    let wallet = |row: &Row| {
        Ok(LowWallet {
            row_number: row.try_get(0)?,
            id: row.try_get(1)?,
            name: row.try_get(2)?,
            balance: micro(row, 3)?,
            below: row.try_get::<_, Option<i64>>(4)?.map(Micro::new),
        })
    };
    let rows = on.query(&select, &[&below, &page.after, &limit]).await?;
    rows.iter().map(wallet).collect()
}

/// Finds keys that may have used 80 % of a limit. The caller computes the exact share.
pub(crate) async fn keys_near_limits(on: Arc<Client>, page: ScanPage) -> Read<Vec<(i64, KeyRow)>> {
    let select = format!(
        "SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.n > $1 AND k.enabled
         AND (k.spend_limit IS NOT NULL OR k.window_amount IS NOT NULL)
         AND (k.usage >= k.spend_limit / 10 * 8 OR k.usage - k.window_before >= k.window_amount / 10 * 8)
         ORDER BY k.n LIMIT $2"
    );
    let rows = on
        .query(&select, &[&page.after, &i64::from(page.limit)])
        .await?;
    // The first column is the key's row number.
    let near = |row: &Row| Ok((row.try_get(0)?, key_row(row)?));
    rows.iter().map(near).collect()
}

by_word!(AlertKind);
