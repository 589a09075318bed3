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
    if let (Some((anywhere, beginning)), Some(text)) = (query.patterns(), &query.text) {
        // Only the beginning of a secret is stored, so a whole secret is found by its beginning.
        conditions.push(
            r"(k.name LIKE ? ESCAPE '\' OR w.name LIKE ? ESCAPE '\' OR k.id LIKE ? ESCAPE '\' OR k.shown_prefix LIKE ? ESCAPE '\'
                OR instr(?, k.shown_prefix) = 1)",
        );
        let text = text.clone();
        let texts = [
            anywhere.clone(),
            anywhere,
            beginning.clone(),
            beginning,
            text,
        ];
        values.extend(texts.map(Value::from));
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
