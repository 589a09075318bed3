//! Searches the journal, newest first, page by page.

use std::sync::Arc;

use ledger::{Micro, UnixMs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::records::ids::HoldId;
use crate::records::journal::{
    JournalEntry, JournalPlace, JournalQuery, JournalRow, SET_BACK_MS_MAX, Timings, number_of,
};

type Read<T> = Result<T, tokio_postgres::Error>;

/// The rows that match. Conditions are bound values, never parts of the SQL text.
pub(crate) async fn find(on: Arc<Client>, query: JournalQuery) -> Read<Vec<JournalEntry>> {
    let mut conditions = Conditions::default();
    if let Some(wallet) = query.wallet {
        conditions.add("wallet = ?", wallet.to_string());
    }
    if let Some(key) = query.key {
        conditions.add("key = ?", key.to_string());
    }
    if let Some(model) = &query.model {
        conditions.add("model = ?", model.replace('\0', ""));
    }
    if let Some(status) = query.status {
        conditions.add("status >= ?", i32::from(status.first));
        conditions.add("status <= ?", i32::from(status.last));
    }
    if let Some(request_id) = &query.request_id {
        conditions.add("request_id = ?", request_id.replace('\0', ""));
    }
    if let Some(since) = query.since {
        // The number of a row is never earlier than its time.
        conditions.add("n >= ?", number_of(since));
        conditions.add("at >= ?", since.get());
    }
    if let Some(until) = query.until {
        // It may be later if the clock was set back. The rows are still one range of the index.
        conditions.add("n < ?", number_of(until.plus_ms(SET_BACK_MS_MAX)));
        conditions.add("at < ?", until.get());
    }
    if let Some(before) = query.before {
        conditions.add("n < ?", before.get());
    }
    if let Some(after) = query.after {
        conditions.add("n > ?", after.get());
    }
    let sql = format!(
        "SELECT n, at, wallet, key, status, request_id, model, endpoint, channel, upstream_model, code, stream, outcome,
         hold, meter, charge, admitted_us, queued_us, upstream_us, first_byte_us, total_us, dropped_params, route_notes,
         request_body, response_body, cost
         FROM calls WHERE {} ORDER BY n DESC LIMIT {}",
        conditions.sql(),
        query.rows_max(),
    );
    let values: Vec<&(dyn ToSql + Sync)> = conditions
        .values
        .iter()
        .map(|value| -> &(dyn ToSql + Sync) { &**value })
        .collect();
    on.query(&sql, &values).await?.iter().map(entry).collect()
}

#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Conditions {
    fn add(&mut self, text: &'static str, value: impl ToSql + Sync + Send + 'static) {
        self.values.push(Box::new(value));
        self.texts
            .push(text.replace('?', &format!("${}", self.values.len())));
    }

    fn sql(&self) -> String {
        if self.texts.is_empty() {
            "TRUE".to_owned()
        } else {
            self.texts.join(" AND ")
        }
    }
}

fn entry(row: &Row) -> Read<JournalEntry> {
    let micros = |column: usize| {
        let us: Option<i64> = row.try_get(column)?;
        Ok::<_, tokio_postgres::Error>(us.and_then(|us| u64::try_from(us).ok()))
    };
    Ok(JournalEntry {
        place: JournalPlace(row.try_get(0)?),
        row: JournalRow {
            at: UnixMs::new(row.try_get(1)?),
            wallet: row.try_get(2)?,
            key: row.try_get(3)?,
            status: u16::try_from(row.try_get::<_, i32>(4)?).unwrap_or(0),
            request_id: row.try_get::<_, &str>(5)?.into(),
            model: row.try_get::<_, &str>(6)?.into(),
            endpoint: row.try_get::<_, String>(7)?.into(),
            channel: row.try_get::<_, Option<&str>>(8)?.map(Into::into),
            upstream_model: row.try_get::<_, Option<&str>>(9)?.map(Into::into),
            code: row.try_get::<_, Option<String>>(10)?.map(Into::into),
            stream: row.try_get(11)?,
            outcome: row.try_get::<_, Option<String>>(12)?.map(Into::into),
            hold: row.try_get::<_, Option<i64>>(13)?.map(HoldId::new),
            meter: row.try_get::<_, Option<&str>>(14)?.map(Into::into),
            charge: Micro::new(row.try_get(15)?),
            cost: row.try_get::<_, Option<i64>>(25)?.map(Micro::new),
            timings: Timings {
                admitted_us: micros(16)?,
                queued_us: micros(17)?,
                upstream_us: micros(18)?,
                first_byte_us: micros(19)?,
                total_us: micros(20)?.unwrap_or(0),
            },
            dropped_params: row.try_get(21)?,
            route_notes: row.try_get(22)?,
            request_body: row.try_get(23)?,
            response_body: row.try_get(24)?,
        },
    })
}
