//! Reads the audit log, page by page.

use std::sync::Arc;

use ledger::UnixMs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::postgres::ids::by_word;
use crate::postgres::rows::time;
use crate::records::audit::{Actor, AuditCursor, AuditQuery, AuditRow, Role};

type Read<T> = Result<T, tokio_postgres::Error>;

pub(crate) async fn audit(on: Arc<Client>, query: AuditQuery) -> Read<Vec<AuditRow>> {
    let (from, to) = (query.from.map(UnixMs::get), query.to.map(UnixMs::get));
    let before = query.before.map(|AuditCursor(before)| before);
    let pattern = query.pattern();
    let mut conditions = vec!["TRUE".to_owned()];
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
    let mut add = |condition: &str, value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(actor) = &query.actor {
        add("(actor = ? OR actor_name = ?)", actor);
    }
    if let Some(action) = &query.action {
        add("action = ?", action);
    }
    if let Some(target) = &query.target {
        add("target = ?", target);
    }
    if let Some(from) = &from {
        add("at >= ?", from);
    }
    if let Some(to) = &to {
        add("at < ?", to);
    }
    if let Some(before) = &before {
        add("n < ?", before);
    }
    if let Some(pattern) = &pattern {
        let any = r"concat_ws(' ', actor, actor_name, action, target, before, after, request_id) ILIKE ? ESCAPE '\'";
        add(any, pattern);
    }
    let sql = format!(
        "SELECT n, at, actor, actor_name, role, action, target, before, after, request_id FROM audit
         WHERE {} ORDER BY n DESC LIMIT {}",
        conditions.join(" AND "),
        query.rows_max()
    );
    on.query(&sql, &values)
        .await?
        .iter()
        .map(audit_row)
        .collect()
}

fn audit_row(row: &Row) -> Read<AuditRow> {
    Ok(AuditRow {
        cursor: AuditCursor(row.try_get(0)?),
        at: time(row, 1)?,
        actor: Actor {
            id: row.try_get(2)?,
            name: row.try_get(3)?,
            role: row.try_get(4)?,
            request_id: row.try_get(9)?,
        },
        action: row.try_get(5)?,
        target: row.try_get(6)?,
        before: row.try_get(7)?,
        after: row.try_get(8)?,
    })
}

by_word!(Role);
