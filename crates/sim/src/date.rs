//! Formats dates as the vendors do.

const DAY_S: u64 = 86_400;
/// The number of days from 1 March of year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;
const ERA_DAYS: u64 = 146_097;

/// Formats Unix time in seconds as `2026-01-01T00:00:00Z`.
pub(crate) fn iso_8601(unix_s: u64) -> String {
    let (hour, minute, second) = (unix_s % DAY_S / 3600, unix_s % 3600 / 60, unix_s % 60);
    let (year, month, day) = date(unix_s / DAY_S);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Converts days since 1970 to year, month and day. The calculation lets years begin in March, so that a leap day is
/// the last day of its year.
fn date(unix_days: u64) -> (u64, u64, u64) {
    let days = unix_days + EPOCH_DAYS;
    let day_of_era = days % ERA_DAYS;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, later) = if month_from_march < 10 {
        (month_from_march + 3, 0)
    } else {
        (month_from_march - 9, 1)
    };
    (year_of_era + days / ERA_DAYS * 400 + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(unix_s), expected);
        }
    }
}
