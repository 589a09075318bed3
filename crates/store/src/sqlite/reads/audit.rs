//! Reads the audit log, page by page.

use ledger::UnixMs;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

use crate::records::audit::{Actor, AuditCursor, AuditQuery, AuditRow, Role};

pub(crate) fn audit(on: &Connection, query: &AuditQuery) -> rusqlite::Result<Vec<AuditRow>> {
    let mut conditions = vec!["TRUE"];
    let mut values: Vec<Value> = Vec::new();
    let mut add = |condition, value: Value, times: usize| {
        conditions.push(condition);
        values.extend(std::iter::repeat_n(value, times));
    };
    if let Some(actor) = &query.actor {
        add("(actor = ? OR actor_name = ?)", actor.clone().into(), 2);
    }
    if let Some(action) = &query.action {
        add("action = ?", action.clone().into(), 1);
    }
    if let Some(target) = &query.target {
        add("target = ?", target.clone().into(), 1);
    }
    if let Some(from) = query.from {
        add("at >= ?", from.get().into(), 1);
    }
    if let Some(to) = query.to {
        add("at < ?", to.get().into(), 1);
    }
    if let Some(AuditCursor(before)) = query.before {
        add("n < ?", before.into(), 1);
    }
    if let Some(pattern) = query.pattern() {
        let any = r"(actor || ' ' || actor_name || ' ' || action || ' ' || target || ' ' || coalesce(before, '') || ' '
                  || coalesce(after, '') || ' ' || coalesce(request_id, '')) LIKE ? ESCAPE '\'";
        add(any, pattern.into(), 1);
    }
    let sql = format!(
        "SELECT n, at, actor, actor_name, role, action, target, before, after, request_id FROM audit
         WHERE {} ORDER BY n DESC LIMIT {}",
        conditions.join(" AND "),
        query.rows_max()
    );
    let mut select = on.prepare_cached(&sql)?;
    let rows = select.query_map(params_from_iter(values), audit_row)?;
    rows.collect()
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        cursor: AuditCursor(row.get(0)?),
        at: UnixMs::new(row.get(1)?),
        actor: Actor {
            id: row.get(2)?,
            name: row.get(3)?,
            role: row.get(4)?,
            request_id: row.get(9)?,
        },
        action: row.get(5)?,
        target: row.get(6)?,
        before: row.get(7)?,
        after: row.get(8)?,
    })
}

impl FromSql for Role {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let role = value.as_str()?.parse();
        role.map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}
