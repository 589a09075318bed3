//! `tollgate wallet statement`: the entries of a wallet with the balance after each.

use clap::Args;
use ledger::UnixMs;
use store::{STATEMENT_ENTRIES_MAX, StatementEntry, StatementRange, Store, WalletRow};

use super::wallet;
use crate::cli::context::Context;
use crate::cli::terminal::{CommandError, Side, Table, TimeArg, time};
use crate::operations::statement;
use crate::operations::views::{BalanceView, EntryView, MonthView, StatementView};

#[derive(Debug, Args)]
pub(crate) struct StatementArgs {
    /// The wallet, by name or id.
    #[arg(value_name = "NAME_OR_ID")]
    wallet: String,
    /// Entries posted at or after this: 30d (30 days ago), or a time such as 2026-11-01.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    from: Option<TimeArg>,
    /// Entries posted before this.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    to: Option<TimeArg>,
    /// How many entries to show, the newest ones of the range. --csv prints all of them.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=4096))]
    limit: u32,
    /// Print comma-separated values for a spreadsheet.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub(super) async fn run(
    args: StatementArgs,
    store: &Store,
    context: &mut Context,
) -> Result<(), CommandError> {
    let row = wallet::find(store, &args.wallet).await?;
    let (from, to) = (moment(args.from)?, moment(args.to)?);
    let range = store.statement_range(row.id, from, to).await?;
    if args.csv {
        return csv(store, &row, &range, context).await;
    }
    let last = range.closing.seq;
    let first = last
        .saturating_sub(i64::from(args.limit))
        .max(range.opening.seq);
    let entries = store.statement_entries(row.id, first, last, args.limit);
    let entries = entries.await?;
    let months = statement::months(store, &row, &range).await?;
    if context.json {
        let balance =
            |point: &store::BalancePoint| BalanceView::at(point.posted_at.get(), &point.balances);
        return context.out.json(&StatementView {
            wallet: row.id.to_string(),
            wallet_name: row.name,
            opening: balance(&range.opening),
            closing: balance(&range.closing),
            months: Some(months),
            data: entries.into_iter().map(EntryView::from).collect(),
            next_cursor: None,
        });
    }
    context.out.table(&entry_table(entries))?;
    if first > range.opening.seq {
        let before = first - range.opening.seq;
        let line = format!("{before} earlier entries are not shown; see --limit and --csv.");
        context.out.line(line)?;
    }
    context.out.line("")?;
    context.out.table(&month_table(&months))
}

/// Prints all entries of a range as CSV, with one page in memory at a time.
async fn csv(
    store: &Store,
    row: &WalletRow,
    range: &StatementRange,
    context: &mut Context,
) -> Result<(), CommandError> {
    context.out.text(statement::CSV_HEADING)?;
    let mut after = range.opening.seq;
    while after < range.closing.seq {
        let page = store.statement_entries(row.id, after, range.closing.seq, STATEMENT_ENTRIES_MAX);
        for entry in page.await? {
            after = entry.entry.seq;
            context.out.text(&statement::csv_line(entry))?;
        }
    }
    Ok(())
}

fn moment(time: Option<TimeArg>) -> Result<Option<UnixMs>, CommandError> {
    let read = |time: TimeArg| {
        let moment = time.before(time::now());
        moment.ok_or_else(|| CommandError::message("that time lies beyond the calendar"))
    };
    time.map(read).transpose()
}

fn entry_table(entries: Vec<StatementEntry>) -> Table {
    let mut table = Table::new([
        ("ENTRY", Side::Right),
        ("TIME", Side::Left),
        ("KIND", Side::Left),
        ("AMOUNT", Side::Right),
        ("BALANCE", Side::Right),
        ("BY", Side::Left),
        ("REFERENCE", Side::Left),
        ("NOTE", Side::Left),
    ]);
    for row in entries {
        let at = row.entry.at;
        let view = EntryView::from(row);
        let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let by = view.actor.as_deref().or(view.key_name.as_deref());
        table.row([
            view.seq.to_string(),
            time::show(at),
            view.kind.to_owned(),
            view.amount.0.to_string(),
            view.balance_after.0.to_string(),
            text(by.or(view.key.as_deref())),
            text(view.reference.as_deref().or(view.request_id.as_deref())),
            text(view.note.as_deref()),
        ]);
    }
    table
}

fn month_table(months: &[MonthView]) -> Table {
    let mut table = Table::new([
        ("MONTH", Side::Left),
        ("KEY", Side::Left),
        ("CALLS", Side::Right),
        ("CHARGED", Side::Right),
        ("TOP-UPS", Side::Right),
        ("GIFTS", Side::Right),
        ("DEBITS", Side::Right),
        ("REFUNDS", Side::Right),
        ("ADJUSTMENTS", Side::Right),
        ("BALANCE", Side::Right),
    ]);
    for month in months {
        table.row([
            month.month.clone(),
            "all".to_owned(),
            month.calls.to_string(),
            month.charged.0.to_string(),
            month.top_up.0.to_string(),
            month.gift.0.to_string(),
            month.debit.0.to_string(),
            month.refund.0.to_string(),
            month.adjustment.0.to_string(),
            month.closing.balance.0.to_string(),
        ]);
        for key in &month.keys {
            let name = key.key_name.as_deref().unwrap_or(&key.key);
            let empty = String::new;
            table.row([
                empty(),
                name.to_owned(),
                key.calls.to_string(),
                key.charged.0.to_string(),
                empty(),
                empty(),
                empty(),
                empty(),
                empty(),
                empty(),
            ]);
        }
    }
    table
}
