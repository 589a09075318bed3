//! Decides which usage reports are plausible.
//!
//! A report beyond what a model can do counts as malformed (N6): the call is billed by our own count, and the operator
//! is told. Otherwise one absurd report could make a wallet's sums so large that no later charge fits.

use ledger::{Meter, Micro};

/// A report may state at most this many times the worst case of its call. A true report may exceed the context, because
/// upstreams that run their own tools read each result as additional input.
const FACTOR: i64 = 4;
/// The same factor for a cost in dollars. It is larger, because the hold is priced in another unit and predicts the
/// cost less well.
const COST_FACTOR: i64 = 100;
/// The limits are computed from at least this amount, because a tiny hold does not show which amounts are absurd.
const HOLD_LEAST: Micro = Micro::new(1_000_000);
/// The maximum number of calls of one built-in tool that an answer may report.
pub(crate) const TOOL_CALLS_MAX: u64 = 10_000;

/// The maximum usage that an answer may report before its report counts as malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageLimits {
    tokens: u64,
    /// The maximum charge of a report that states seconds or video tokens.
    charge: Micro,
    /// The maximum charge of a report that states a cost in dollars.
    cost: Micro,
}

impl UsageLimits {
    /// The limits of a call that can use at most `tokens` and has a hold of `hold`.
    pub(crate) fn new(tokens: u64, hold: Micro) -> Self {
        let times = |factor: i64| {
            let hold = hold.max(HOLD_LEAST).get();
            Micro::new(hold.saturating_mul(factor))
        };
        Self {
            tokens: tokens.saturating_mul(FACTOR.unsigned_abs()),
            charge: times(FACTOR),
            cost: times(COST_FACTOR),
        }
    }

    /// Whether a report of `meter`, which costs `charge`, is plausible. The number of pictures is not checked, because
    /// we have counted the pictures that are billed one by one.
    pub(crate) fn allow(&self, meter: &Meter, charge: Micro) -> bool {
        let tokens = meter.input_total().saturating_add(meter.output_total());
        let measured = meter.stt_seconds > 0 || meter.video_seconds > 0 || meter.video_tokens > 0;
        tokens <= self.tokens
            && (!measured || charge <= self.charge)
            && (meter.usd_ticks == 0 || charge <= self.cost)
            && meter.tools.values().all(|calls| *calls <= TOOL_CALLS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn a_report_beyond_what_a_call_can_use_is_not_believed() {
        let limits = UsageLimits::new(1_000, Micro::new(2_000_000));
        let none = Meter::default;
        let tools = |calls| BTreeMap::from([("web_search".to_owned(), calls)]);
        for (meter, charge, is_plausible) in [
            (none(), i64::MAX, true),
            (
                Meter {
                    input: 3_000,
                    output: 1_000,
                    ..none()
                },
                1,
                true,
            ),
            (
                Meter {
                    input: 3_000,
                    output: 1_001,
                    ..none()
                },
                1,
                false,
            ),
            (
                Meter {
                    cached_input: u64::MAX,
                    output: u64::MAX,
                    ..none()
                },
                0,
                false,
            ),
            (
                Meter {
                    audio_output: u64::MAX / 2,
                    ..none()
                },
                0,
                false,
            ),
            (
                Meter {
                    stt_seconds: 9,
                    ..none()
                },
                8_000_000,
                true,
            ),
            (
                Meter {
                    stt_seconds: 9,
                    ..none()
                },
                8_000_001,
                false,
            ),
            (
                Meter {
                    video_tokens: 9,
                    ..none()
                },
                8_000_001,
                false,
            ),
            (
                Meter {
                    video_seconds: 9,
                    ..none()
                },
                8_000_001,
                false,
            ),
            (
                Meter {
                    usd_ticks: 9,
                    ..none()
                },
                200_000_000,
                true,
            ),
            (
                Meter {
                    usd_ticks: 9,
                    ..none()
                },
                200_000_001,
                false,
            ),
            (
                Meter {
                    images: 9,
                    ..none()
                },
                900_000_000,
                true,
            ),
            (
                Meter {
                    tools: tools(10_000),
                    ..none()
                },
                1,
                true,
            ),
            (
                Meter {
                    tools: tools(10_001),
                    ..none()
                },
                1,
                false,
            ),
        ] {
            let allowed = limits.allow(&meter, Micro::new(charge));
            assert_eq!(allowed, is_plausible, "{meter:?} {charge}");
        }
    }

    #[test]
    fn a_hold_of_next_to_nothing_makes_no_report_absurd() {
        let limits = UsageLimits::new(0, Micro::ZERO);
        let ticks = Meter {
            usd_ticks: 1,
            ..Meter::default()
        };
        assert!(limits.allow(&ticks, Micro::new(100_000_000)));
        let most = UsageLimits::new(u64::MAX, Micro::MAX);
        assert!(most.allow(&ticks, Micro::MAX));
    }
}
