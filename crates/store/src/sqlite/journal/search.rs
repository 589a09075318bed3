//! Searches the journal from the newest row back, one window of rows at a time.
//!
//! Only wallets and request ids have an index, because further indexes would make every row more expensive to write.
//! The roll-ups of traffic show in which hours a model, channel, endpoint or error occurs, and the search skips the
//! other hours.

use std::collections::HashSet;

use ledger::{HOUR_MS, UnixMs};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::query::Conditions;
use super::usage;
use crate::records::journal::{
    JournalCursor, JournalEntry, JournalPage, JournalQuery, SET_BACK_MS_MAX, number_of, time_of,
};
use crate::records::page_time::PageTime;
use crate::usage::{Grain, Totals};

/// The number of rows that are read between two checks of the time limit.
const WINDOW_ROWS: i64 = 4_096;
/// The time range whose hours are looked up at once.
const HOURS_AT_ONCE_MS: i64 = 30 * 24 * HOUR_MS;
/// A character that sorts after every character of a request id.
const LAST_CHAR: char = '\u{10ffff}';

/// Finds all rows that match, up to the limit of the query.
pub(crate) fn find(on: &Connection, query: &JournalQuery) -> rusqlite::Result<Vec<JournalEntry>> {
    // One transaction, so that all windows see the same state of the journal.
    let moment = on.unchecked_transaction()?;
    find_within(&moment, query)
}

/// Like [`find`], within the caller's transaction.
pub(super) fn find_within(
    on: &Connection,
    query: &JournalQuery,
) -> rusqlite::Result<Vec<JournalEntry>> {
    Ok(search(on, query, None)?.entries)
}

/// Finds a page of rows. Stops when the time limit of a page is over, even if the page is not full.
pub(crate) fn page(on: &Connection, query: &JournalQuery) -> rusqlite::Result<JournalPage> {
    let moment = on.unchecked_transaction()?;
    search(&moment, query, Some(PageTime::start()))
}

fn search(
    on: &Connection,
    query: &JournalQuery,
    time: Option<PageTime>,
) -> rusqlite::Result<JournalPage> {
    let Some(conditions) = Conditions::of(on, query)? else {
        return Ok(JournalPage::default());
    };
    let (first, mut before) = query.numbers();
    let limit = query.rows_max() as usize;
    let mut hours = Hours::of(on, query)?;
    let requests = Requests::of(query);
    let mut entries = Vec::new();
    while first < before {
        let room = limit - entries.len();
        let (rows, start) = if let Some(requests) = &requests {
            match requests.window(on, &conditions, (first, before), room)? {
                Some(window) => window,
                None => break,
            }
        } else {
            match hours.next(on, (first, before))? {
                Some((from, to)) if from < to => {
                    let from = window_start(on, conditions.wallet, (from, to))?;
                    (conditions.rows(on, (from, to), room)?, from)
                }
                Some(_) => (Vec::new(), before),
                None => break,
            }
        };
        entries.extend(rows);
        before = start;
        if entries.len() >= limit {
            let last = entries.last().map(|entry: &JournalEntry| entry.cursor);
            return Ok(JournalPage {
                entries,
                next: last,
            });
        }
        if time.is_some_and(|time| time.is_over(entries.len())) && first < before {
            let next = Some(JournalCursor(before));
            return Ok(JournalPage { entries, next });
        }
    }
    Ok(JournalPage {
        entries,
        next: None,
    })
}

/// Finds where the last `WINDOW_ROWS` rows of a range of numbers begin.
fn window_start(
    on: &Connection,
    wallet: Option<i64>,
    (first, before): (i64, i64),
) -> rusqlite::Result<i64> {
    let start = if let Some(wallet) = wallet {
        let sql = "SELECT n FROM calls WHERE wallet = ?1 AND n >= ?2 AND n < ?3 ORDER BY n DESC LIMIT 1 OFFSET ?4";
        on.prepare_cached(sql)?
            .query_row(params![wallet, first, before, WINDOW_ROWS], |row| {
                row.get(0)
            })
            .optional()?
    } else {
        let sql = "SELECT n FROM calls WHERE n >= ?1 AND n < ?2 ORDER BY n DESC LIMIT 1 OFFSET ?3";
        on.prepare_cached(sql)?
            .query_row(params![first, before, WINDOW_ROWS], |row| row.get(0))
            .optional()?
    };
    Ok(start.unwrap_or(first))
}

/// The hours that may contain a match.
enum Hours {
    Any,
    These {
        /// The traffic series that match.
        series: HashSet<i64>,
        only_errors: bool,
        /// Start times of the examined hours that may contain a match, oldest first.
        found: Vec<i64>,
        /// Hours up to and including this one have not been examined yet.
        looked_from: i64,
    },
}

impl Hours {
    fn of(on: &Connection, query: &JournalQuery) -> rusqlite::Result<Self> {
        // Rows that are not counted yet are missing from the roll-ups.
        if !query.has_traffic_filter() || usage::uncounted(on)?.is_some() {
            return Ok(Self::Any);
        }
        // Calls of unknown models are counted without a model name.
        let mut select = on.prepare_cached(
            "SELECT n FROM usage_series WHERE wallet = '' AND key = '' AND (?1 IS NULL OR model IN (?1, ''))
             AND (?2 IS NULL OR channel = ?2) AND (?3 IS NULL OR endpoint = ?3)",
        )?;
        let names = params![query.model, query.channel, query.endpoint];
        let series = select.query_map(names, |row| row.get(0))?;
        let (_, before) = query.numbers();
        Ok(Self::These {
            series: series.collect::<rusqlite::Result<_>>()?,
            only_errors: query.only_errors(),
            found: Vec::new(),
            looked_from: time_of(before).get(),
        })
    }

    /// The newest range of numbers below `before` that may contain a match. An empty range means that hours were
    /// skipped, and that the caller must call again.
    fn next(
        &mut self,
        on: &Connection,
        (first, before): (i64, i64),
    ) -> rusqlite::Result<Option<(i64, i64)>> {
        let (series, only_errors, found, looked_from) = match self {
            Self::Any => return Ok(Some((first, before))),
            Self::These {
                series,
                only_errors,
                found,
                looked_from,
            } => (&*series, *only_errors, found, looked_from),
        };
        while let Some(hour) = found.last() {
            let hour = UnixMs::new(*hour);
            // The time in a row's number may be later than the row's own time.
            let end = number_of(hour.plus_ms(HOUR_MS + SET_BACK_MS_MAX)).min(before);
            let start = number_of(hour).max(first);
            if start < end {
                return Ok(Some((start, end)));
            }
            found.pop();
        }
        let earliest = time_of(first).get() - HOUR_MS - SET_BACK_MS_MAX;
        if series.is_empty() || *looked_from < earliest {
            return Ok(None);
        }
        let grain = Grain::TrafficHour.number();
        let newest = "SELECT max(at) FROM usage_totals WHERE grain = ?1 AND at <= ?2";
        let mut newest = on.prepare_cached(newest)?;
        let newest: Option<i64> =
            newest.query_row([i64::from(grain), *looked_from], |row| row.get(0))?;
        let Some(to) = newest else { return Ok(None) };
        let from = to - HOURS_AT_ONCE_MS;
        let mut select = on.prepare_cached(
            "SELECT at, series, totals FROM usage_totals WHERE grain = ?1 AND at > ?2 AND at <= ?3 ORDER BY at",
        )?;
        let mut rows = select.query(params![grain, from, to])?;
        while let Some(row) = rows.next()? {
            let hour = row.get(0)?;
            let has_match = found.last() != Some(&hour)
                && series.contains(&row.get(1)?)
                && (!only_errors || Totals::stored(row.get_ref(2)?.as_blob()?).errors > 0);
            if has_match {
                found.push(hour);
            }
        }
        *looked_from = from;
        Ok(Some((before, before)))
    }
}

/// A range of request ids.
struct Requests {
    first: String,
    last: String,
}

impl Requests {
    fn of(query: &JournalQuery) -> Option<Self> {
        let whole = query.request_id.as_ref().map(|id| Self {
            first: id.clone(),
            last: id.clone(),
        });
        whole.or_else(|| {
            let first = query.request_prefix.clone()?;
            let last = format!("{first}{LAST_CHAR}");
            Some(Self { first, last })
        })
    }

    /// The matching rows of the newest hour that begins below the number `before`, and the first number of that hour.
    fn window(
        &self,
        on: &Connection,
        conditions: &Conditions,
        (first, before): (i64, i64),
        limit: usize,
    ) -> rusqlite::Result<Option<(Vec<JournalEntry>, i64)>> {
        let newest = time_of(before - 1).get() / HOUR_MS;
        let hour = "SELECT (n >> 20) / 3600000 FROM calls WHERE (n >> 20) / 3600000 <= ?1
                    ORDER BY (n >> 20) / 3600000 DESC LIMIT 1";
        let hour: Option<i64> = on
            .prepare_cached(hour)?
            .query_row([newest], |row| row.get(0))
            .optional()?;
        let Some(hour) = hour else { return Ok(None) };
        let ids = (&*self.first, &*self.last);
        let rows = conditions.rows_of_requests(on, hour, ids, (first, before), limit)?;
        let start = number_of(UnixMs::new(hour * HOUR_MS));
        Ok(Some((rows, start.max(first))))
    }
}
