//! Inserts rows into the journal.

use ledger::Micro;
use rusqlite::Connection;

use super::names::Names;
use crate::records::ids::HoldId;
use crate::records::journal::{JournalRow, cut};
use crate::records::meter::MeterText;
use crate::sqlite::writer::insert::{Insert, Values};

/// Consecutive rows of calls that ended this close to each other are numbered together.
const NEAR_MS: u64 = 1_000;
/// The maximum number of rows that are numbered together, so that a number is never far from its row's time.
const RUN_ROWS: usize = 2_048;
/// The columns of a row, except its number.
const COLUMNS: &str = "at, wallet, key, status, request_id, model, endpoint, channel, upstream_model, code, stream,
    outcome, meter, charge, admitted_us, upstream_us, first_byte_us, total_us, dropped_params, route_notes,
    request_body, response_body, hold, queued_us, cost";
const COLUMNS_COUNT: usize = 25;

/// Inserts runs of rows. The first row of a run gets an explicit number, and `SQLite` numbers the others. A statement
/// with several explicit numbers would keep a copy of every page that it changes, so that it could be undone.
pub(super) struct Inserts<'c> {
    first: Insert<'c>,
    rest: Insert<'c>,
}

impl<'c> Inserts<'c> {
    pub(super) fn prepare(on: &'c Connection) -> rusqlite::Result<Self> {
        // A batch is rolled back as a whole, so SQLite need not be able to undo single statements.
        let first = format!("INSERT OR ROLLBACK INTO calls ({COLUMNS}, n)");
        let rest = format!("INSERT OR ROLLBACK INTO calls ({COLUMNS})");
        Ok(Self {
            first: Insert::prepare_single(on, &first, COLUMNS_COUNT + 1)?,
            rest: Insert::prepare(on, &rest, COLUMNS_COUNT)?,
        })
    }

    pub(super) fn all(
        &mut self,
        rows: &[JournalRow],
        names: &mut Names<'_>,
    ) -> rusqlite::Result<()> {
        let bounded = rows.chunks(RUN_ROWS);
        let mut runs = bounded.flat_map(|rows| rows.chunk_by(near));
        runs.try_for_each(|run| self.run(run, names))
    }

    fn run(&mut self, run: &[JournalRow], names: &mut Names<'_>) -> rusqlite::Result<()> {
        let Some((first, rest)) = run.split_first() else {
            return Ok(());
        };
        // The time in a row's number must not be before the row's own time.
        let newest = rest.iter().fold(first.at, |newest, row| newest.max(row.at));
        let number = names.number(newest, run.len());
        self.first.all(std::slice::from_ref(first), |row, values| {
            columns(row, names, values)?;
            values.add(number)
        })?;
        self.rest
            .all(rest, |row, values| columns(row, names, values))
    }
}

fn columns(
    row: &JournalRow,
    names: &mut Names<'_>,
    values: &mut Values<'_, '_>,
) -> rusqlite::Result<()> {
    values.add(row.at.get())?;
    let (wallet, key) = names.party(row)?;
    values.add(wallet)?;
    values.add(key)?;
    values.add(row.status)?;
    values.add(&*row.request_id)?;
    values.add(names.word(&row.model)?)?;
    values.add(names.word(&row.endpoint)?)?;
    values.add(names.word_or_null(row.channel.as_deref())?)?;
    values.add(names.word_or_null(row.upstream_model.as_deref())?)?;
    values.add(row.code.as_deref())?;
    values.add(row.stream)?;
    values.add(row.outcome.as_deref())?;
    values.add(row.meter.as_ref().map(MeterText::as_str))?;
    values.add(row.charge.get())?;
    let times = &row.timings;
    values.add(times.admitted_us.map(micros))?;
    values.add(times.upstream_us.map(micros))?;
    values.add(times.first_byte_us.map(micros))?;
    values.add(micros(times.total_us))?;
    values.add(row.dropped_params.as_deref())?;
    values.add(row.route_notes.as_deref())?;
    values.add(row.request_body.as_deref().map(cut))?;
    values.add(row.response_body.as_deref().map(cut))?;
    values.add(row.hold.map(HoldId::get))?;
    values.add(times.queued_us.map(micros))?;
    values.add(row.cost.map(Micro::get))
}

fn near(one: &JournalRow, next: &JournalRow) -> bool {
    next.at.ms_since(one.at).unsigned_abs() < NEAR_MS
}

fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
