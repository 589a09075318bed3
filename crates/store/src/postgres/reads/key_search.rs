//! Searches for keys.

use std::sync::Arc;

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::postgres::rows::{KEY, key_row};
use crate::records::accounts::KeyRow;
use crate::records::key_query::KeyQuery;

pub(crate) async fn search_keys(
    on: Arc<Client>,
    query: KeyQuery,
) -> Result<Vec<KeyRow>, tokio_postgres::Error> {
    let mut conditions: Vec<String> = vec!["TRUE".to_owned()];
    let mut values: Vec<String> = Vec::new();
    let mut add = |condition: &str, value: String| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(wallet) = query.wallet {
        let condition = "k.wallet = (SELECT n FROM wallets WHERE id = ?)";
        add(condition, wallet.to_string());
    }
    if let Some(after) = query.after {
        let condition = "k.n < (SELECT n FROM keys WHERE id = ?)";
        add(condition, after.to_string());
    }
    if let Some(tag) = query.tag_line() {
        add("position(? in k.tags) > 0", tag);
    }
    if let (Some((anywhere, beginning)), Some(text)) = (query.patterns(), &query.text) {
        values.extend([anywhere, beginning, text.clone()]);
        let (anywhere, beginning, text) = (values.len() - 2, values.len() - 1, values.len());
        conditions.push(format!(
            // Only the beginning of a secret is stored, so a whole secret is found by its beginning.
            r"(k.name ILIKE ${anywhere} OR w.name ILIKE ${anywhere} OR k.id ILIKE ${beginning} OR k.shown_prefix ILIKE ${beginning}
                OR starts_with(${text}, k.shown_prefix))"
        ));
    }
    let sql = format!(
        "SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet WHERE {} ORDER BY k.n DESC LIMIT {}",
        conditions.join(" AND "),
        query.rows_max(),
    );
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
    on.query(&sql, &values).await?.iter().map(key_row).collect()
}
