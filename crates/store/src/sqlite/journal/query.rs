//! Selects the rows of the journal that meet all conditions of a query.

use ledger::{Micro, UnixMs};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use crate::records::ids::HoldId;
use crate::records::journal::{JournalCursor, JournalEntry, JournalQuery, JournalRow, Timings};

/// The conditions of a search. Their values are bound parameters, never parts of the SQL text.
pub(super) struct Conditions {
    texts: Vec<&'static str>,
    values: Vec<Value>,
    /// The number of the wallet. Its rows have an index.
    pub(super) wallet: Option<i64>,
    without_bodies: bool,
}

impl Conditions {
    /// Translates a query. Returns `None` if no row can match, because a name was never used.
    pub(super) fn of(on: &Connection, query: &JournalQuery) -> rusqlite::Result<Option<Self>> {
        let mut conditions = Self {
            texts: Vec::new(),
            values: Vec::new(),
            wallet: None,
            without_bodies: query.without_bodies,
        };
        let wallet = query.wallet.map(|wallet| wallet.to_string());
        let key = query.key.map(|key| key.to_string());
        for (text, name) in [
            ("c.wallet = ?", wallet.as_deref()),
            ("c.key = ?", key.as_deref()),
            ("c.model = ?", query.model.as_deref()),
            ("c.channel = ?", query.channel.as_deref()),
            ("c.endpoint = ?", query.endpoint.as_deref()),
        ] {
            let Some(name) = name else { continue };
            let Some((n, wallet)) = number_of_name(on, name)? else {
                return Ok(None);
            };
            conditions.add(text, n);
            match text {
                "c.wallet = ?" => conditions.wallet = Some(n),
                // The index begins with the wallet. A key never moves to another wallet, so its wallet can be added.
                "c.key = ?" if query.wallet.is_none() => {
                    conditions.add("c.wallet = ?", wallet);
                    conditions.wallet = wallet;
                }
                _ => {}
            }
        }
        if let Some(status) = query.status {
            conditions.add("c.status >= ?", i64::from(status.first));
            conditions.add("c.status <= ?", i64::from(status.last));
        }
        if let Some(code) = &query.code {
            conditions.add("c.code = ?", code.clone());
        }
        if let Some(since) = query.since {
            conditions.add("c.at >= ?", since.get());
        }
        if let Some(until) = query.until {
            conditions.add("c.at < ?", until.get());
        }
        Ok(Some(conditions))
    }

    fn add(&mut self, text: &'static str, value: impl Into<Value>) {
        self.texts.push(text);
        self.values.push(value.into());
    }

    /// The newest matching rows in this range of numbers. The end is exclusive.
    pub(super) fn rows(
        &self,
        on: &Connection,
        (first, before): (i64, i64),
        limit: usize,
    ) -> rusqlite::Result<Vec<JournalEntry>> {
        self.select(
            on,
            "c.n >= ? AND c.n < ?",
            [first.into(), before.into()],
            limit,
        )
    }

    /// The newest matching rows of an hour whose request ids are in a range.
    pub(super) fn rows_of_requests(
        &self,
        on: &Connection,
        hour: i64,
        (first, last): (&str, &str),
        (first_n, before_n): (i64, i64),
        limit: usize,
    ) -> rusqlite::Result<Vec<JournalEntry>> {
        let range = "(c.n >> 20) / 3600000 = ? AND c.request_id >= ? AND c.request_id <= ?
            AND +c.n >= ? AND +c.n < ?";
        let values: [Value; 5] = [
            hour.into(),
            first.to_owned().into(),
            last.to_owned().into(),
            first_n.into(),
            before_n.into(),
        ];
        self.select(on, range, values, limit)
    }

    fn select(
        &self,
        on: &Connection,
        range: &str,
        range_values: impl IntoIterator<Item = Value>,
        limit: usize,
    ) -> rusqlite::Result<Vec<JournalEntry>> {
        let mut texts = vec![range];
        texts.extend(&self.texts);
        let values = range_values.into_iter().chain(self.values.iter().cloned());
        let bodies = if self.without_bodies {
            "NULL, NULL"
        } else {
            "c.request_body, c.response_body"
        };
        let sql = format!(
            "SELECT c.n, c.at, w.name, k.name, c.status, c.request_id, m.name, e.name, ch.name, u.name, c.code,
             c.stream, c.outcome, c.meter, c.charge, c.admitted_us, c.upstream_us, c.first_byte_us, c.total_us,
             c.dropped_params, c.route_notes, {bodies}, c.hold, c.queued_us, c.cost
             FROM calls c
             LEFT JOIN names w ON w.n = c.wallet LEFT JOIN names k ON k.n = c.key
             LEFT JOIN names m ON m.n = c.model LEFT JOIN names e ON e.n = c.endpoint
             LEFT JOIN names ch ON ch.n = c.channel LEFT JOIN names u ON u.n = c.upstream_model
             WHERE {} ORDER BY c.n DESC LIMIT {limit}",
            texts.join(" AND ")
        );
        let mut select = on.prepare_cached(&sql)?;
        let rows = select.query_map(params_from_iter(values), entry)?;
        rows.collect()
    }
}

fn number_of_name(on: &Connection, name: &str) -> rusqlite::Result<Option<(i64, Option<i64>)>> {
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
        cursor: JournalCursor(row.get(0)?),
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
            is_late_charge: false,
        },
    })
}
