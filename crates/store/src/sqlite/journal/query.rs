//! Searches the journal, newest first, page by page.

use ledger::{Micro, UnixMs};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use crate::records::ids::HoldId;
use crate::records::journal::{
    JournalEntry, JournalPlace, JournalQuery, JournalRow, SET_BACK_MS_MAX, Timings, number_of,
};

/// The rows that match. Conditions are bound values, never parts of the SQL text.
pub(crate) fn find(on: &Connection, query: &JournalQuery) -> rusqlite::Result<Vec<JournalEntry>> {
    let mut conditions = Conditions::default();
    if let Some(wallet) = query.wallet {
        let Some((n, _)) = name(on, &wallet.to_string())? else {
            return Ok(Vec::new());
        };
        conditions.add("c.wallet = ?", n);
    }
    if let Some(key) = query.key {
        let Some((n, wallet)) = name(on, &key.to_string())? else {
            return Ok(Vec::new());
        };
        // The index begins with the wallet, and a key never changes its wallet.
        if query.wallet.is_none() {
            conditions.add("c.wallet = ?", wallet);
        }
        conditions.add("c.key = ?", n);
    }
    if let Some(model) = &query.model {
        let Some((n, _)) = name(on, model)? else {
            return Ok(Vec::new());
        };
        conditions.add("c.model = ?", n);
    }
    if let Some(status) = query.status {
        conditions.add("c.status >= ?", i64::from(status.first));
        conditions.add("c.status <= ?", i64::from(status.last));
    }
    if let Some(request_id) = &query.request_id {
        conditions.add("c.request_id = ?", request_id.clone());
    }
    if let Some(since) = query.since {
        // The number of a row is never earlier than its time.
        conditions.add("c.n >= ?", number_of(since));
        conditions.add("c.at >= ?", since.get());
    }
    if let Some(until) = query.until {
        // It may be later if the clock was set back. The rows are still one range of the index.
        conditions.add("c.n < ?", number_of(until.plus_ms(SET_BACK_MS_MAX)));
        conditions.add("c.at < ?", until.get());
    }
    if let Some(before) = query.before {
        conditions.add("c.n < ?", before.get());
    }
    if let Some(after) = query.after {
        conditions.add("c.n > ?", after.get());
    }
    let limit = query.rows_max();
    let sql = format!(
        "SELECT c.n, c.at, w.name, k.name, c.status, c.request_id, m.name, e.name, ch.name, u.name, c.code, c.stream,
         c.outcome, c.meter, c.charge, c.admitted_us, c.upstream_us, c.first_byte_us, c.total_us, c.dropped_params,
         c.route_notes, c.request_body, c.response_body, c.hold, c.queued_us, c.cost
         FROM calls c
         LEFT JOIN names w ON w.n = c.wallet LEFT JOIN names k ON k.n = c.key
         LEFT JOIN names m ON m.n = c.model LEFT JOIN names e ON e.n = c.endpoint
         LEFT JOIN names ch ON ch.n = c.channel LEFT JOIN names u ON u.n = c.upstream_model
         WHERE {} ORDER BY c.n DESC LIMIT {limit}",
        conditions.sql()
    );
    let mut select = on.prepare_cached(&sql)?;
    let rows = select.query_map(params_from_iter(conditions.values), entry)?;
    rows.collect()
}

#[derive(Default)]
struct Conditions {
    texts: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, text: &'static str, value: impl Into<Value>) {
        self.texts.push(text);
        self.values.push(value.into());
    }

    fn sql(&self) -> String {
        if self.texts.is_empty() {
            "TRUE".to_owned()
        } else {
            self.texts.join(" AND ")
        }
    }
}

fn name(on: &Connection, name: &str) -> rusqlite::Result<Option<(i64, Option<i64>)>> {
    let mut select = on.prepare_cached("SELECT n, wallet FROM names WHERE name = ?1")?;
    select
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<JournalEntry> {
    let micros = |column| {
        Ok::<_, rusqlite::Error>(
            row.get::<_, Option<i64>>(column)?
                .and_then(|us| u64::try_from(us).ok()),
        )
    };
    Ok(JournalEntry {
        place: JournalPlace(row.get(0)?),
        row: JournalRow {
            at: UnixMs::new(row.get(1)?),
            wallet: row.get(2)?,
            key: row.get(3)?,
            status: row.get(4)?,
            request_id: row.get_ref(5)?.as_str()?.into(),
            model: row.get(6)?,
            endpoint: row.get::<_, String>(7)?.into(),
            channel: row.get(8)?,
            upstream_model: row.get(9)?,
            code: row.get::<_, Option<String>>(10)?.map(Into::into),
            stream: row.get(11)?,
            outcome: row.get::<_, Option<String>>(12)?.map(Into::into),
            hold: row.get::<_, Option<i64>>(23)?.map(HoldId::new),
            meter: row.get_ref(13)?.as_str_or_null()?.map(Into::into),
            charge: Micro::new(row.get(14)?),
            cost: row.get::<_, Option<i64>>(25)?.map(Micro::new),
            timings: Timings {
                admitted_us: micros(15)?,
                queued_us: micros(24)?,
                upstream_us: micros(16)?,
                first_byte_us: micros(17)?,
                total_us: micros(18)?.unwrap_or(0),
            },
            dropped_params: row.get(19)?,
            route_notes: row.get(20)?,
            request_body: row.get(21)?,
            response_body: row.get(22)?,
        },
    })
}
