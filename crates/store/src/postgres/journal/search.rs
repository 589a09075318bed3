//! Searches the journal from the newest row back, one window of rows at a time.
//!
//! Only wallets, keys and request ids have an index, because further indexes would make every row more expensive to
//! write. The roll-ups of traffic show in which hours a model, channel, endpoint or error occurs, and the search skips
//! the other hours.

use std::sync::Arc;

use ledger::{HOUR_MS, UnixMs};
use tokio_postgres::Client;

use super::query::{Conditions, Read};
use crate::records::journal::{
    JournalCursor, JournalEntry, JournalPage, JournalQuery, SET_BACK_MS_MAX, number_of, time_of,
};
use crate::records::page_time::PageTime;
use crate::usage::{Grain, Totals};

/// The number of rows that are read between two checks of the time limit.
const WINDOW_ROWS: usize = 4_096;
/// The time range whose hours are looked up at once.
const HOURS_AT_ONCE_MS: i64 = 30 * 24 * HOUR_MS;

/// Finds all rows that match, up to the limit of the query.
pub(crate) async fn find(on: Arc<Client>, query: JournalQuery) -> Read<Vec<JournalEntry>> {
    Ok(search(&on, &query, None).await?.entries)
}

/// Finds a page of rows. Stops when the time limit of a page is over, even if the page is not full.
pub(crate) async fn page(on: Arc<Client>, query: JournalQuery) -> Read<JournalPage> {
    search(&on, &query, Some(PageTime::start())).await
}

pub(super) async fn search(
    on: &Client,
    query: &JournalQuery,
    time: Option<PageTime>,
) -> Read<JournalPage> {
    let conditions = Conditions::of(query);
    let (first, mut before) = query.numbers();
    let limit = query.rows_max() as usize;
    let mut hours = Hours::of(on, query).await?;
    let mut entries = Vec::new();
    while first < before {
        let Some((from, to)) = hours.next(on, (first, before)).await? else {
            break;
        };
        if from < to {
            let from = conditions.window_start(on, (from, to), WINDOW_ROWS).await?;
            let room = limit - entries.len();
            entries.extend(conditions.rows(on, (from, to), room).await?);
            before = from;
        }
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

/// The hours that may contain a match.
enum Hours {
    Any,
    These {
        /// The traffic series that match.
        series: Vec<i64>,
        only_errors: bool,
        /// No calls were counted before this time.
        oldest: i64,
        /// Start times of the hours that may contain a match, oldest first.
        found: Vec<i64>,
        /// Hours that begin at or before this time have not been examined yet.
        looked_from: i64,
    },
}

impl Hours {
    async fn of(on: &Client, query: &JournalQuery) -> Read<Self> {
        // Rows that are not counted yet are missing from the roll-ups.
        let uncounted = "SELECT 1 FROM usage_uncounted LIMIT 1";
        if !query.has_traffic_filter() || on.query_opt(uncounted, &[]).await?.is_some() {
            return Ok(Self::Any);
        }
        let plain = |name: &Option<String>| name.as_ref().map(|name| name.replace('\0', ""));
        let (model, channel) = (plain(&query.model), plain(&query.channel));
        let endpoint = plain(&query.endpoint);
        // Calls of unknown models are counted without a model name.
        let select = "SELECT n FROM usage_series WHERE wallet = '' AND key = ''
            AND ($1::text IS NULL OR model IN ($1, '')) AND ($2::text IS NULL OR channel = $2)
            AND ($3::text IS NULL OR endpoint = $3)";
        let series = on.query(select, &[&model, &channel, &endpoint]).await?;
        let series = series.iter().map(|row| row.try_get(0));
        let oldest = "SELECT coalesce(min(at), 0) FROM usage_totals WHERE grain = $1";
        let oldest = on
            .query_one(oldest, &[&Grain::TrafficHour.number()])
            .await?;
        let (_, before) = query.numbers();
        Ok(Self::These {
            series: series.collect::<Read<_>>()?,
            only_errors: query.only_errors(),
            oldest: oldest.try_get(0)?,
            found: Vec::new(),
            looked_from: time_of(before).get(),
        })
    }

    /// The newest range of numbers below `before` that may contain a match. An empty range means that hours were
    /// skipped, and that the caller must call again.
    async fn next(&mut self, on: &Client, (first, before): (i64, i64)) -> Read<Option<(i64, i64)>> {
        let (series, only_errors, oldest, found, looked_from) = match self {
            Self::Any => return Ok(Some((first, before))),
            Self::These {
                series,
                only_errors,
                oldest,
                found,
                looked_from,
            } => (&*series, *only_errors, *oldest, found, looked_from),
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
        let to = *looked_from;
        let earliest = oldest.max(time_of(first).get() - HOUR_MS - SET_BACK_MS_MAX);
        if series.is_empty() || to < earliest {
            return Ok(None);
        }
        let newest = "SELECT max(at) FROM usage_totals WHERE grain = $1 AND at <= $2";
        let grain = Grain::TrafficHour.number();
        let newest = on.query_one(newest, &[&grain, &to]).await?;
        let Some(to) = newest.try_get::<_, Option<i64>>(0)? else {
            return Ok(None);
        };
        let from = to - HOURS_AT_ONCE_MS;
        let select = "SELECT at, totals FROM usage_totals
            WHERE grain = $1 AND at > $2 AND at <= $3 AND series = ANY($4) ORDER BY at";
        for row in on.query(select, &[&grain, &from, &to, series]).await? {
            let hour = row.try_get(0)?;
            let has_match = !only_errors || Totals::stored(row.try_get(1)?).errors > 0;
            if has_match && found.last() != Some(&hour) {
                found.push(hour);
            }
        }
        *looked_from = from;
        Ok(Some((before, before)))
    }
}
