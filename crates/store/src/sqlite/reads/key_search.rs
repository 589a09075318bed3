//! Searches for keys.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::records::accounts::KeyRow;
use crate::records::key_query::KeyQuery;
use crate::sqlite::rows::{FROM_KEYS, KEY, key_row};

pub(crate) fn search_keys(on: &Connection, query: &KeyQuery) -> rusqlite::Result<Vec<KeyRow>> {
    let mut conditions: Vec<&str> = vec!["TRUE"];
    let mut values: Vec<Value> = Vec::new();
    if let Some(wallet) = query.wallet {
        conditions.push("k.wallet = (SELECT n FROM wallets WHERE id = ?)");
        values.push(wallet.to_string().into());
    }
    if let Some(after) = query.after {
        conditions.push("k.n < (SELECT n FROM keys WHERE id = ?)");
        values.push(after.to_string().into());
    }
    if let Some(tag) = query.tag_line() {
        conditions.push("instr(k.tags, ?) > 0");
        values.push(tag.into());
    }
    if let Some((anywhere, beginning)) = query.patterns() {
        conditions.push(
            r"(k.name LIKE ? ESCAPE '\' OR w.name LIKE ? ESCAPE '\' OR k.id LIKE ? ESCAPE '\' OR k.shown_prefix LIKE ? ESCAPE '\')",
        );
        values.extend([anywhere.clone(), anywhere, beginning.clone(), beginning].map(Value::from));
    }
    values.push(query.rows_max().into());
    let sql = format!(
        "SELECT {KEY} {FROM_KEYS} WHERE {} ORDER BY k.n DESC LIMIT ?",
        conditions.join(" AND ")
    );
    let mut select = on.prepare_cached(&sql)?;
    select
        .query_map(params_from_iter(values), key_row)?
        .collect()
}
