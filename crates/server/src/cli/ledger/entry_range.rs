//! The arguments that select entries: a day, or a time range.

use clap::Args;
use ledger::{DAY_MS, UnixMs};
use store::{EntryQuery, EntryRow, Store};

use crate::cli::accounts::wallet;
use crate::cli::terminal::{CommandError, TimeArg, time};

/// Selects the entries that a command reads.
#[derive(Debug, Args)]
pub(crate) struct EntryRange {
    /// One day, in UTC: 2026-12-31.
    #[arg(long, value_name = "DATE", value_parser = day, conflicts_with_all = ["since", "until"])]
    day: Option<UnixMs>,
    /// From this time on: 30d (30 days ago), or a time such as 2026-12-31T00:00:00Z.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    since: Option<TimeArg>,
    /// Before this time.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    until: Option<TimeArg>,
    /// Only this wallet.
    #[arg(long, value_name = "NAME_OR_ID")]
    wallet: Option<String>,
}

impl EntryRange {
    /// Calls `visit` for each entry in the order of posting, reading a page at a time.
    pub(crate) async fn each(
        &self,
        store: &Store,
        mut visit: impl FnMut(&EntryRow),
    ) -> Result<(), CommandError> {
        let mut query = self.query(store).await?;
        loop {
            let page = store.entries(query.clone()).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            query.after = Some(last.cursor);
            page.iter().for_each(&mut visit);
        }
    }

    async fn query(&self, store: &Store) -> Result<EntryQuery, CommandError> {
        let before_the_calendar = || CommandError::message("that time lies before the calendar");
        let now = time::now();
        let time = |when: Option<TimeArg>| {
            when.map(|when| when.before(now).ok_or_else(before_the_calendar))
                .transpose()
        };
        let wallet = match &self.wallet {
            Some(name_or_id) => Some(wallet::find(store, name_or_id).await?.id),
            None => None,
        };
        let (since, until) = match self.day {
            Some(day) => (Some(day), Some(day.plus_ms(DAY_MS))),
            None => (time(self.since)?, time(self.until)?),
        };
        Ok(EntryQuery {
            wallet,
            since,
            until,
            ..EntryQuery::default()
        })
    }
}

/// The day of a time, in UTC.
pub(crate) fn day_of(at: UnixMs) -> String {
    time::show(at).chars().take(10).collect()
}

fn day(text: &str) -> Result<UnixMs, String> {
    match time::parse(text) {
        Ok(TimeArg::At(at)) if text.len() == 10 && at.get() % DAY_MS == 0 => Ok(at),
        _ => Err("write a day such as 2026-12-31".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_alone() {
        assert_eq!(day("1970-01-03"), Ok(UnixMs::new(2 * DAY_MS)));
        for text in ["3d", "1970-01-03T00:00:00Z", "1970-13-01", ""] {
            assert!(day(text).is_err(), "{text}");
        }
        assert_eq!(day_of(UnixMs::new(2 * DAY_MS + 5)), "1970-01-03");
    }
}
