//! Decides whether more calls fail than usual.

/// The minimum number of calls for an alert to begin.
const CALLS_MIN: u64 = 20;
/// The percentage of failed calls at which an alert begins. It must also be at least `TIMES` the usual percentage.
const PERCENT: u64 = 5;
const TIMES: u64 = 3;

/// The number of calls, and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    pub requests: u64,
    pub errors: u64,
}

impl CallCounts {
    /// Adds both counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            errors: self.errors.saturating_add(other.errors),
        }
    }

    fn percent(self) -> u64 {
        let hundred = self.errors.saturating_mul(100);
        hundred.checked_div(self.requests).unwrap_or(0)
    }
}

/// An error rate above normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusualErrors {
    /// The percentage of calls that failed.
    pub percent: u64,
    /// The percentage of calls that usually fail.
    pub usual_percent: u64,
}

/// Decides whether the error rate of the last minutes is above normal. An open alert ends only below half of the
/// threshold, so that a rate around the threshold does not begin and end alerts repeatedly. An open alert also
/// continues while there are few calls, because clients call less when calls fail.
pub fn unusual_errors(
    recent: CallCounts,
    usual: CallCounts,
    is_known: bool,
) -> Option<UnusualErrors> {
    let (percent, usual_percent) = (recent.percent(), usual.percent());
    let least = PERCENT.max(usual_percent.saturating_mul(TIMES));
    let (times, calls_min) = if is_known { (2, 1) } else { (1, CALLS_MIN) };
    let is_high = recent.requests >= calls_min && percent.saturating_mul(times) >= least;
    is_high.then_some(UnusualErrors {
        percent,
        usual_percent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_unusual_when_they_are_many_and_above_normal() {
        let counts = |(errors, requests)| CallCounts { requests, errors };
        // Columns: recent calls, usual calls, whether an alert begins, whether an open alert continues.
        for (recent, usual, begins, goes_on) in [
            ((0, 0), (0, 0), false, false),
            ((5, 10), (0, 1_000), false, true),
            ((0, 10), (0, 1_000), false, false),
            ((2, 100), (0, 1_000), false, false),
            ((3, 100), (0, 1_000), false, true),
            ((6, 100), (10, 1_000), true, true),
            ((6, 100), (40, 1_000), false, true),
            ((5, 100), (40, 1_000), false, false),
            ((30, 100), (0, 0), true, true),
        ] {
            let found =
                [false, true].map(|known| unusual_errors(counts(recent), counts(usual), known));
            let found = found.map(|it| it.is_some());
            assert_eq!(found, [begins, goes_on], "{recent:?} {usual:?}");
        }
    }
}
