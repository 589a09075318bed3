//! Selects the rows of the journal that meet all conditions of a query.

use ledger::{Micro, UnixMs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::records::ids::HoldId;
use crate::records::journal::{JournalCursor, JournalEntry, JournalQuery, JournalRow, Timings};

pub(super) type Read<T> = Result<T, tokio_postgres::Error>;

/// The conditions of a search. Their values are bound parameters, never parts of the SQL text.
#[derive(Default)]
pub(super) struct Conditions {
    texts: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
    /// The number of conditions on columns that have an index. They come first.
    indexed: usize,
    without_bodies: bool,
}

impl Conditions {
    pub(super) fn of(query: &JournalQuery) -> Self {
        let mut conditions = Self {
            without_bodies: query.without_bodies,
            ..Self::default()
        };
        conditions.add_indexed(query);
        conditions.indexed = conditions.texts.len();
        for (text, name) in [
            ("model = ?", &query.model),
            ("channel = ?", &query.channel),
            ("endpoint = ?", &query.endpoint),
            ("code = ?", &query.code),
        ] {
            if let Some(name) = name {
                conditions.add(text, name.replace('\0', ""));
            }
        }
        if let Some(status) = query.status {
            conditions.add("status >= ?", i32::from(status.first));
            conditions.add("status <= ?", i32::from(status.last));
        }
        if let Some(since) = query.since {
            conditions.add("at >= ?", since.get());
        }
        if let Some(until) = query.until {
            conditions.add("at < ?", until.get());
        }
        conditions
    }

    fn add_indexed(&mut self, query: &JournalQuery) {
        if let Some(request_id) = &query.request_id {
            self.add("request_id = ?", request_id.replace('\0', ""));
        }
        if let Some(prefix) = &query.request_prefix {
            let prefix = prefix.replace('\0', "");
            // These operators match the index, which compares bytes regardless of the database's collation.
            self.add("request_id ~<=~ ?", format!("{prefix}\u{10ffff}"));
            self.add("request_id ~>=~ ?", prefix);
        }
        if let Some(key) = query.key {
            self.add("key = ?", key.to_string());
        }
        if let Some(wallet) = query.wallet {
            self.add("wallet = ?", wallet.to_string());
        }
    }

    fn add(&mut self, text: &'static str, value: impl ToSql + Sync + Send + 'static) {
        self.values.push(Box::new(value));
        self.texts
            .push(text.replace('?', &format!("${}", self.values.len())));
    }

    /// The newest matching rows in this range of numbers. The end is exclusive.
    pub(super) async fn rows(
        &self,
        on: &Client,
        numbers: (i64, i64),
        limit: usize,
    ) -> Read<Vec<JournalEntry>> {
        let bodies = if self.without_bodies {
            "NULL, NULL"
        } else {
            "request_body, response_body"
        };
        let columns = format!(
            "n, at, wallet, key, status, request_id, model, endpoint, channel, upstream_model, code, stream, outcome,
             hold, meter, charge, admitted_us, queued_us, upstream_us, first_byte_us, total_us, dropped_params,
             route_notes, {bodies}, cost"
        );
        let limit = format!("LIMIT {limit}");
        let rows = self.select(on, &columns, self.texts.len(), numbers, &limit);
        rows.await?.iter().map(entry).collect()
    }

    /// Finds where the last `rows` rows of a range of numbers begin. Only the indexed conditions apply.
    pub(super) async fn window_start(
        &self,
        on: &Client,
        numbers: (i64, i64),
        rows: usize,
    ) -> Read<i64> {
        let nth = format!("OFFSET {rows} LIMIT 1");
        let found = self.select(on, "n", self.indexed, numbers, &nth).await?;
        let start = found.first().map(|row| row.try_get(0)).transpose()?;
        Ok(start.unwrap_or(numbers.0))
    }

    async fn select(
        &self,
        on: &Client,
        columns: &str,
        conditions: usize,
        (first, before): (i64, i64),
        limit: &str,
    ) -> Read<Vec<Row>> {
        let mut texts = vec![format!("n >= {first} AND n < {before}")];
        texts.extend(self.texts.iter().take(conditions).cloned());
        let sql = format!(
            "SELECT {columns} FROM calls WHERE {} ORDER BY n DESC {limit}",
            texts.join(" AND ")
        );
        let values = self.values.iter().take(conditions);
        let values: Vec<&(dyn ToSql + Sync)> = values
            .map(|value| -> &(dyn ToSql + Sync) { &**value })
            .collect();
        on.query(&sql, &values).await
    }
}

fn entry(row: &Row) -> Read<JournalEntry> {
    let micros = |column: usize| {
        let us: Option<i64> = row.try_get(column)?;
        Ok::<_, tokio_postgres::Error>(us.and_then(|us| u64::try_from(us).ok()))
    };
    Ok(JournalEntry {
        cursor: JournalCursor(row.try_get(0)?),
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
            is_late_charge: false,
        },
    })
}
