//! `tollgate logs`: shows the journal of calls, oldest first.

use std::time::Duration;

use clap::{Args, Subcommand};
use ledger::Micro;
use serde_json::{Value, json};
use store::{JournalEntry, JournalQuery, JournalRow, KeyId, StatusRange, Store, StoreError};

use super::explain;
use crate::cli::accounts::wallet;
use crate::cli::context::Context;
use crate::cli::terminal::{CommandError, Side, StoreRetry, Table, TimeArg, time};
use crate::operations::calls::{Explanation, LATE_MAX, ShownRows, statuses};

/// The delay between two lookups of a followed journal.
const FOLLOW_PAUSE: Duration = Duration::from_millis(500);
/// The number of rows per lookup, which is the store's maximum.
const PAGE_ROWS: u32 = 1_000;

/// Minimum widths of the columns, so that later rows are aligned with the first ones.
const ROW_WIDTHS: [usize; 8] = [20, 26, 20, 24, 6, 14, 9, 10];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Logs {
    #[command(subcommand)]
    command: Option<One>,
    /// Only calls of this wallet.
    #[arg(long, value_name = "NAME_OR_ID")]
    wallet: Option<String>,
    /// Only calls with this key.
    #[arg(long, value_name = "ID")]
    key: Option<KeyId>,
    /// Only calls of this model.
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Only calls with this status: 429, 4xx, or error for 400 and above.
    #[arg(long, value_parser = statuses)]
    status: Option<StatusRange>,
    /// Only calls that ended after this time: 15m, 2d (2 days ago), or a time such as 2026-12-31T00:00:00Z.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    since: Option<TimeArg>,
    /// Only calls that ended before this time.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    until: Option<TimeArg>,
    /// Only the call with this request id.
    #[arg(long, value_name = "REQUEST_ID")]
    request: Option<String>,
    /// The maximum number of calls; the newest are shown.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Keep running and show calls as they end.
    #[arg(long, short)]
    follow: bool,
}

#[derive(Debug, Subcommand)]
enum One {
    /// Show everything about one call.
    Show {
        /// The value of the header `x-request-id` of its answer.
        #[arg(value_name = "REQUEST_ID")]
        request: String,
    },
}

pub(crate) async fn run(command: Logs, context: &mut Context) -> Result<(), CommandError> {
    let store = context.store()?;
    if let Some(One::Show { request }) = command.command {
        return show(&store, &request, context).await;
    }
    let query = query(&store, &command).await?;
    let rows = newest(&store, &query, command.limit).await?;
    print(&rows, Heading::Shown, context)?;
    if command.follow {
        follow(&store, query, &rows, context).await?;
    }
    Ok(())
}

/// Shows new rows until the program is interrupted. Waits while the database is unavailable, and then shows the rows
/// that were written meanwhile.
async fn follow(
    store: &Store,
    mut query: JournalQuery,
    rows: &[JournalEntry],
    context: &mut Context,
) -> Result<(), CommandError> {
    let mut shown = ShownRows::default();
    let mut retry = StoreRetry::default();
    if let Some(last) = rows.last().map(|entry| entry.cursor) {
        // All rows up to the last shown one count as shown. The rows that `--limit` left out are not shown later.
        query.after = Some(last.earlier(LATE_MAX));
        let mut before = retry
            .ask(async || newest(store, &query, u32::MAX).await)
            .await?;
        before.retain(|entry| entry.cursor <= last);
        shown.keep_new(before);
    }
    loop {
        tokio::time::sleep(FOLLOW_PAUSE).await;
        query.after = shown.look_after();
        let rows = retry
            .ask(async || newest(store, &query, u32::MAX).await)
            .await?;
        print(&shown.keep_new(rows), Heading::Hidden, context)?;
    }
}

async fn query(store: &Store, command: &Logs) -> Result<JournalQuery, CommandError> {
    let wallet = match &command.wallet {
        Some(name_or_id) => Some(wallet::find(store, name_or_id).await?.id),
        None => None,
    };
    let time = |when: Option<TimeArg>| {
        let time = when.map(|when| {
            when.before(time::now())
                .ok_or_else(|| CommandError::message("that time lies before the calendar"))
        });
        time.transpose()
    };
    Ok(JournalQuery {
        wallet,
        key: command.key,
        model: command.model.clone(),
        status: command.status,
        request_id: command.request.clone(),
        since: time(command.since)?,
        until: time(command.until)?,
        ..JournalQuery::default()
    })
}

/// The newest rows, at most `count`, oldest first.
async fn newest(
    store: &Store,
    query: &JournalQuery,
    count: u32,
) -> Result<Vec<JournalEntry>, StoreError> {
    let mut rows: Vec<JournalEntry> = Vec::new();
    let mut wanted = count;
    while wanted > 0 {
        let page = JournalQuery {
            before: rows.last().map(|entry| entry.cursor),
            limit: wanted.min(PAGE_ROWS),
            ..query.clone()
        };
        let page = store.journal(page).await?;
        let came = u32::try_from(page.len()).unwrap_or(u32::MAX);
        rows.extend(page);
        if came == 0 {
            break;
        }
        wanted = wanted.saturating_sub(came);
    }
    rows.reverse();
    Ok(rows)
}

async fn show(store: &Store, request: &str, context: &mut Context) -> Result<(), CommandError> {
    let explanation = Explanation::find(store, request).await?;
    let explanation = explanation
        .ok_or_else(|| CommandError::message(format!("no call `{request}` in the journal")))?;
    let row = &explanation.row;
    if context.json {
        let mut whole = row_json(row);
        for (name, value) in explain::members(&explanation) {
            whole[name] = value;
        }
        return context.out.json(&whole);
    }
    let mut table = Table::new([("MEMBER", Side::Left), ("VALUE", Side::Left)]);
    for (name, value) in members(row) {
        let shown = match (name, value) {
            (_, Value::Null) => continue,
            ("at", _) => time::show(row.at),
            (_, Value::String(text)) => text,
            (_, other) => other.to_string(),
        };
        table.row([name.to_owned(), shown]);
    }
    context.out.table(&table)?;
    explain::print(&explanation, context)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Shown,
    Hidden,
}

fn print(
    rows: &[JournalEntry],
    heading: Heading,
    context: &mut Context,
) -> Result<(), CommandError> {
    if context.json {
        let mut rows = rows.iter();
        return rows.try_for_each(|entry| context.out.json(&row_json(&entry.row)));
    }
    if rows.is_empty() && heading == Heading::Hidden {
        return Ok(());
    }
    let table = row_table(rows.iter().map(|entry| &entry.row));
    match heading {
        Heading::Shown => context.out.table(&table),
        Heading::Hidden => context.out.rows(&table),
    }
}

fn row_json(row: &JournalRow) -> Value {
    let members = members(row).into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// All members of a call, most important first. Amounts are in credits and in micro-credits.
fn members(row: &JournalRow) -> Vec<(&'static str, Value)> {
    let timings = &row.timings;
    vec![
        ("request_id", json!(&*row.request_id)),
        ("at", json!(row.at)),
        ("wallet", json!(row.wallet)),
        ("key", json!(row.key)),
        ("endpoint", json!(row.endpoint)),
        ("model", json!(&*row.model)),
        ("stream", json!(row.stream)),
        ("status", json!(row.status)),
        ("code", json!(row.code)),
        ("outcome", json!(row.outcome)),
        ("charge", json!(row.charge.to_string())),
        ("charge_micro", json!(row.charge.get().to_string())),
        ("cost", json!(row.cost.map(|cost| cost.to_string()))),
        (
            "cost_micro",
            json!(row.cost.map(|cost| cost.get().to_string())),
        ),
        (
            "usage",
            json!(row.meter.as_ref().and_then(|meter| meter.read().ok())),
        ),
        ("channel", json!(row.channel.as_deref())),
        ("upstream_model", json!(row.upstream_model.as_deref())),
        ("route_notes", json!(row.route_notes)),
        ("dropped_params", json!(row.dropped_params)),
        ("hold", json!(row.hold.map(|hold| hold.to_string()))),
        ("queued_us", json!(timings.queued_us)),
        ("admitted_us", json!(timings.admitted_us)),
        ("upstream_us", json!(timings.upstream_us)),
        ("first_byte_us", json!(timings.first_byte_us)),
        ("total_us", json!(timings.total_us)),
        ("request_body", json!(row.request_body)),
        ("response_body", json!(row.response_body)),
    ]
}

fn row_table<'a>(rows: impl Iterator<Item = &'a JournalRow>) -> Table {
    let mut table = Table::new([
        ("AT", Side::Left),
        ("REQUEST", Side::Left),
        ("KEY", Side::Left),
        ("MODEL", Side::Left),
        ("STATUS", Side::Right),
        ("OUTCOME", Side::Left),
        ("CHARGE", Side::Right),
        ("TIME", Side::Right),
    ])
    .at_least(ROW_WIDTHS);
    let text = |value: Option<&str>| value.unwrap_or("-").to_owned();
    for row in rows {
        let ended = row.code.as_deref().or(row.outcome.as_deref());
        table.row([
            time::show(row.at),
            row.request_id.to_string(),
            row.key
                .map_or_else(|| "-".to_owned(), |key| key.to_string()),
            row.model.to_string(),
            row.status.to_string(),
            text(ended),
            charge(row.charge),
            millis(row.timings.total_us),
        ]);
    }
    table
}

fn charge(amount: Micro) -> String {
    if amount == Micro::ZERO {
        "-".to_owned()
    } else {
        amount.to_string()
    }
}

/// Microseconds as milliseconds with one decimal.
fn millis(micros: u64) -> String {
    format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use ledger::UnixMs;

    use super::*;

    #[test]
    fn a_row_tells_its_charge_in_both_spellings() {
        let row = JournalRow {
            at: UnixMs::new(1000),
            request_id: "req_1".into(),
            model: "a/b".into(),
            status: 200,
            charge: Micro::new(1_500_000),
            cost: Some(Micro::new(250_000)),
            ..JournalRow::default()
        };
        let value = row_json(&row);
        assert_eq!(value["charge"], "1.5");
        assert_eq!(value["charge_micro"], "1500000");
        assert_eq!(
            (&value["cost"], &value["cost_micro"]),
            (&json!("0.25"), &json!("250000"))
        );
        assert_eq!(row_json(&JournalRow::default())["cost_micro"], Value::Null);
        assert_eq!(value["at"], 1000);
        assert_eq!(value["key"], Value::Null);
    }

    #[test]
    fn times_are_shown_in_milliseconds() {
        for (micros, shown) in [(0, "0.0 ms"), (1_250, "1.2 ms"), (2_000_000, "2000.0 ms")] {
            assert_eq!(millis(micros), shown);
        }
    }
}
