//! Reads budgets: the amount, the spending, and the reset.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use store::{ForeignRow, PeriodLength};

use crate::import::exact::{Amount, Decimal};

/// A budget of a key, user or team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) max: Option<Amount>,
    pub(super) spend: Amount,
    /// The reset interval in `LiteLLM`'s notation.
    pub(super) duration: Option<String>,
    /// The next reset, in Unix milliseconds.
    pub(super) reset_at: Option<i64>,
    /// Whether the amount is negative, or the amount or the spending is not a number.
    pub(super) is_unreadable: bool,
}

impl Budget {
    /// The budget of a row. If the row has no amount, the amount and the reset interval are those of `shared`, a row of
    /// the table of budgets.
    pub(super) fn of(row: ForeignRow<'_>, shared: Option<ForeignRow<'_>>) -> Self {
        let has_own = row.text("max_budget").is_some();
        let source = if has_own { Some(row) } else { shared };
        let max = source.and_then(|row| amount(row, "max_budget"));
        let spend = amount(row, "spend");
        let is_given = source.is_some_and(|row| row.text("max_budget").is_some());
        let is_unreadable = is_given
            && (max.is_none_or(|max| max < Amount::ZERO)
                || (spend.is_none() && row.text("spend").is_some()));
        Self {
            max: max.filter(|_| !is_unreadable),
            spend: spend.unwrap_or_default(),
            is_unreadable,
            duration: source
                .and_then(|row| row.text("budget_duration"))
                .map(str::to_owned),
            reset_at: row
                .text("budget_reset_at")
                .or_else(|| source?.text("budget_reset_at"))
                .and_then(time),
        }
    }

    /// The unspent part of the budget; negative if it is overspent.
    pub(super) fn rest(&self) -> Option<Amount> {
        self.max.map(|max| max - self.spend)
    }
}

/// A column of US dollars.
fn amount(row: ForeignRow<'_>, column: &str) -> Option<Amount> {
    Decimal::parse(row.text(column)?)?.amount()
}

/// The calendar period of a duration. Other durations, such as 12 hours, have no counterpart.
pub(super) fn period(duration: &str) -> Option<PeriodLength> {
    match duration.trim() {
        "1d" | "24h" | "daily" => Some(PeriodLength::Day),
        "7d" | "1w" | "weekly" => Some(PeriodLength::Week),
        "30d" | "1mo" | "monthly" => Some(PeriodLength::Month),
        _ => None,
    }
}

/// Parses a time from `LiteLLM`'s database. A time without a zone is in UTC.
pub(super) fn time(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_millisecond());
    }
    let time: DateTime = text.parse().ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_calendar_periods_or_none() {
        for (text, per) in [
            ("1d", Some(PeriodLength::Day)),
            ("24h", Some(PeriodLength::Day)),
            ("weekly", Some(PeriodLength::Week)),
            ("30d", Some(PeriodLength::Month)),
            ("1mo", Some(PeriodLength::Month)),
            ("12h", None),
            ("90d", None),
            ("soon", None),
        ] {
            assert_eq!(period(text), per, "{text}");
        }
    }

    #[test]
    fn times_are_utc() {
        for text in [
            "1970-01-02 00:00:00",
            "1970-01-02T00:00:00Z",
            "1970-01-02 00:00:00.000",
        ] {
            assert_eq!(time(text), Some(86_400_000), "{text}");
        }
        assert_eq!(time("never"), None);
    }
}
