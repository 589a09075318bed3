//! Computes statements of a wallet: the sums of each month, the balance of each day, and the CSV table.

use ledger::{DAY_MS, UnixMs};
use store::{BalancePoint, StatementEntry, StatementRange, Store, StoreError, WalletRow};

use super::calendar::{Month, day_start};
use super::views::{BalanceView, EntryView, MonthView};

const MONTHS_MAX: usize = 240;

/// The maximum number of days in a history.
const HISTORY_DAYS: i64 = 366;

pub(crate) const CSV_HEADING: &str = "entry,time,kind,amount,balance_after,paid_after,gift_after,credit_used_after,reference,refund_of,note,actor,key,key_name,request_id\r\n";

/// The sums of each month of a range. Months without entries are left out.
pub(crate) async fn months(
    store: &Store,
    wallet: &WalletRow,
    range: &StatementRange,
) -> Result<Vec<MonthView>, StoreError> {
    let mut months = Vec::new();
    if range.opening.seq >= range.closing.seq {
        return Ok(months);
    }
    let first = if range.opening.seq == 0 {
        // An entry can be older than its wallet, for example if the clock was set back after the wallet was created.
        wallet.created_at.min(range.closing.posted_at)
    } else {
        range.opening.posted_at
    };
    let (Some(mut month), Some(last)) = (Month::of(first), Month::of(range.closing.posted_at))
    else {
        return Ok(months);
    };
    let mut opening = range.opening;
    while month <= last && months.len() < MONTHS_MAX {
        let Some(next) = month.next() else {
            break;
        };
        let closing = if month == last {
            range.closing
        } else {
            let until = store.statement_range(wallet.id, None, Some(next.start()));
            until.await?.closing
        };
        if closing.seq > opening.seq {
            let part = StatementRange { opening, closing };
            let totals = store.statement_totals(wallet.id, &part).await?;
            months.push(MonthView::new(month.name(), &part, totals));
            opening = closing;
        }
        month = next;
    }
    Ok(months)
}

/// The balance at the end of each day (UTC), from the wallet's first day on, for at most a year. The last value is the
/// current balance.
pub(crate) async fn history(
    store: &Store,
    wallet: &WalletRow,
    now: UnixMs,
) -> Result<Vec<BalanceView>, StoreError> {
    let year_ago = day_start(now.minus_ms((HISTORY_DAYS - 1) * DAY_MS));
    let since = year_ago.max(day_start(wallet.created_at));
    let points = store.balance_history(wallet.id, since).await?;
    Ok(days(&points, since, now))
}

/// The last balance of each day from `since` to `now`. A day without entries has the balance of the day before.
fn days(points: &[BalancePoint], since: UnixMs, now: UnixMs) -> Vec<BalanceView> {
    let mut days = Vec::new();
    let mut points = points.iter().peekable();
    let mut current = BalancePoint::default();
    let mut day = since;
    while day <= now && days.len() < usize::try_from(HISTORY_DAYS).unwrap_or(usize::MAX) {
        let end = day.plus_ms(DAY_MS);
        // The clock of another node may be ahead. Its entries count as today's.
        let is_last = end > now;
        while let Some(point) = points.next_if(|point| point.posted_at < end || is_last) {
            current = *point;
        }
        days.push(BalanceView::at(day.get(), &current.balances));
        day = end;
    }
    days
}

/// Formats an entry as a line of the CSV table. Texts that a spreadsheet might interpret as a formula get an
/// apostrophe.
pub(crate) fn csv_line(entry: StatementEntry) -> String {
    let entry = EntryView::from(entry);
    let time = jiff::Timestamp::from_millisecond(entry.at)
        .map_or_else(|_| entry.at.to_string(), |time| time.to_string());
    let text = |text: Option<&str>| text.map(cell).unwrap_or_default();
    let refund_of = entry.refund_of.map(|seq| seq.to_string());
    let cells = [
        entry.seq.to_string(),
        time,
        entry.kind.to_owned(),
        entry.amount.0.to_string(),
        entry.balance_after.0.to_string(),
        entry.paid_after.0.to_string(),
        entry.gift_after.0.to_string(),
        entry.credit_used_after.0.to_string(),
        text(entry.reference.as_deref()),
        refund_of.unwrap_or_default(),
        text(entry.note.as_deref()),
        text(entry.actor.as_deref()),
        text(entry.key.as_deref()),
        text(entry.key_name.as_deref()),
        text(entry.request_id.as_deref()),
    ];
    cells.join(",") + "\r\n"
}

/// Formats a text as a CSV cell: not a formula, and quoted if necessary.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use ledger::Micro;
    use store::Balances;

    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        for (text, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-5", "'-5"),
            ("@cmd", "'@cmd"),
            (
                "=HYPERLINK(\"x\",\"y\")",
                "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"",
            ),
        ] {
            assert_eq!(cell(text), expected);
        }
    }

    #[test]
    fn each_day_has_its_last_balance() {
        let point = |seq: i64, at: i64, balance: i64| BalancePoint {
            seq,
            posted_at: UnixMs::new(at),
            balances: Balances {
                balance: Micro::new(balance),
                ..Balances::default()
            },
            charged: Micro::ZERO,
        };
        let day = 100 * DAY_MS;
        let points = [
            point(1, day - 5, 7),
            point(2, day + 1, 8),
            point(9, day + 9, 9),
            point(10, day + 3 * DAY_MS, 4),
            // An entry from a node whose clock is ahead.
            point(11, day + 9 * DAY_MS, 5),
        ];
        let now = UnixMs::new(day + 3 * DAY_MS + 7);
        let balances = days(&points, UnixMs::new(day), now);
        let balances: Vec<_> = balances
            .iter()
            .map(|it| (it.at, it.balance.0.get()))
            .collect();
        let expected = [(0, 9), (1, 9), (2, 9), (3, 5)].map(|(n, b)| (day + n * DAY_MS, b));
        assert_eq!(balances, expected);
        assert_eq!(days(&[], UnixMs::new(day), UnixMs::new(day)).len(), 1);
    }
}
