//! Writes points in time as `YYYY-MM-DDThh:mm:ssZ`.

/// Days from 1 March of year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;
/// Days in four centuries.
const ERA_DAYS: i64 = 146_097;
const DAY_SECONDS: i64 = 86_400;

/// The ISO form of Unix seconds.
pub(crate) fn iso(seconds: i64) -> String {
    // The format has four digits for the year.
    let seconds = seconds.clamp(-62_135_596_800, 253_402_300_799);
    let (days, second) = (
        seconds.div_euclid(DAY_SECONDS),
        seconds.rem_euclid(DAY_SECONDS),
    );
    // Years start in March here, so that a leap day is the last day of its year.
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (1_794_714_296, "2026-11-15T03:44:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(iso(seconds), date);
        }
    }
}
