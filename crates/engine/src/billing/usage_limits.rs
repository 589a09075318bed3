//! Decides which usage reports are plausible.
//!
//! A report beyond what a model can do counts as malformed (N6): the call is billed by our own count, and the report is
//! logged as an error. Otherwise one absurd report could make a wallet's sums so large that no later charge fits.

use ledger::{Meter, Micro, PriceCard, PriceKey};
use protocol::{Tool, ToolCalls, Tools};

/// A report of tokens may state at most this many times the worst case of its call, and once more for each call of a
/// built-in tool: the model reads its context again with each result, and the report adds these inputs up.
const TOKENS_FACTOR: u64 = 4;
/// The maximum number of tool calls that explain tokens. The number of calls is itself a part of the report.
const READINGS_MAX: u64 = 100;
/// A report of seconds or of video tokens may cost at most this many times the hold, which covers the most that the
/// request allows.
const MEASURED_FACTOR: i64 = 2;
/// The same factor for a cost in dollars. It is larger, because the hold is priced in another unit and predicts the
/// cost less well.
const COST_FACTOR: i64 = 4;
/// A report of a film or of a cost in dollars is always plausible up to this charge, because a multiple of a tiny hold
/// does not show which reports are absurd.
const ALWAYS_PLAUSIBLE: Micro = Micro::new(1_000_000);
/// The maximum number of calls of one built-in tool that an answer may report.
pub(crate) const TOOL_CALLS_MAX: u64 = 10_000;

/// The maximum usage that an answer may report before its report counts as malformed.
///
/// The part of a charge beyond the hold is exposure (`docs/decisions/023`). It never exceeds the debt limit. So a
/// wallet without other open calls that covers the hold also covers the exposure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageLimits {
    /// The most tokens that the model can use if it reads its context once.
    tokens: u64,
    /// The maximum charge of a report that states seconds of audio.
    audio: Micro,
    /// The maximum charge of a report that states seconds or tokens of a film.
    film: Micro,
    /// The maximum charge of a report that states a cost in dollars.
    cost: Micro,
    /// The tools whose calls explain tokens.
    tools: Tools,
}

impl UsageLimits {
    /// The limits of a call that can use at most `tokens` and has a hold of `hold`.
    pub(crate) fn new(tokens: u64, hold: Micro, debt_limit: Micro) -> Self {
        let bounded = |most: i64| {
            let beyond = most.saturating_sub(hold.get()).min(debt_limit.get()).max(0);
            Micro::new(hold.get().saturating_add(beyond))
        };
        let times = |factor: i64| hold.get().saturating_mul(factor);
        Self {
            tokens,
            audio: bounded(times(MEASURED_FACTOR)),
            film: bounded(times(MEASURED_FACTOR).max(ALWAYS_PLAUSIBLE.get())),
            cost: bounded(times(COST_FACTOR).max(ALWAYS_PLAUSIBLE.get())),
            tools: Tools::default(),
        }
    }

    /// These limits for an answer that may have used the tools in `offered` and `seen`. A report alone does not show
    /// that other tools were used.
    #[must_use]
    pub(crate) fn with_tools(mut self, offered: &ToolCalls, seen: &ToolCalls) -> Self {
        for (tool, _) in offered.iter().chain(seen.iter()) {
            self.tools.add(tool);
        }
        self
    }

    pub(crate) fn audio_max(&self) -> Micro {
        self.audio
    }

    pub(crate) fn cost_max(&self) -> Micro {
        self.cost
    }

    /// The most that a report of a film may cost at these prices.
    pub(crate) fn film_max(&self, price: &PriceCard) -> Micro {
        match price.unit_price(PriceKey::Usd) {
            Some(_) => self.film.max(self.cost),
            None => self.film,
        }
    }

    /// Whether a report of `meter`, which costs `charge`, is plausible. The number of pictures is not checked, because
    /// we have counted the pictures that are billed one by one.
    pub(crate) fn allow(&self, meter: &Meter, charge: Micro) -> bool {
        let tokens = meter.input_total().saturating_add(meter.output_total());
        let readings = TOKENS_FACTOR + self.readings(meter);
        let is_film = meter.video_seconds > 0 || meter.video_tokens > 0;
        tokens <= self.tokens.saturating_mul(readings)
            && (meter.stt_seconds == 0 || charge <= self.audio)
            && (!is_film || charge <= self.film)
            && (meter.usd_ticks == 0 || charge <= self.cost)
            && meter.tools.values().all(|calls| *calls <= TOOL_CALLS_MAX)
    }

    /// How many times the model may have read its context again with the results of tools.
    fn readings(&self, meter: &Meter) -> u64 {
        if meter.tools.is_empty() {
            return 0;
        }
        let calls = |tool: Tool| meter.tools.get(tool.as_str()).copied().unwrap_or(0);
        let readings = self.tools.iter().map(calls);
        readings.fold(0, u64::saturating_add).min(READINGS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn a_report_beyond_what_a_call_can_use_is_not_believed() {
        let called = |tool| {
            let mut calls = ToolCalls::default();
            calls.add(tool, 1);
            calls
        };
        let (offered, seen) = (called(Tool::WebSearch), called(Tool::WebFetch));
        let limits = UsageLimits::new(1_000, Micro::new(2_000_000), Micro::MAX);
        let limits = limits.with_tools(&offered, &seen);
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
            // An agent with nine searches has read its context up to ten times.
            (
                Meter {
                    input: 13_000,
                    tools: tools(9),
                    ..none()
                },
                1,
                true,
            ),
            (
                Meter {
                    input: 13_001,
                    tools: tools(9),
                    ..none()
                },
                1,
                false,
            ),
            // Any number of searches explains a hundred readings at most.
            (
                Meter {
                    input: 104_000,
                    tools: tools(10_000),
                    ..none()
                },
                1,
                true,
            ),
            (
                Meter {
                    input: 104_001,
                    tools: tools(10_000),
                    ..none()
                },
                1,
                false,
            ),
            // A tool that was not offered explains nothing, unless the answer shows its calls.
            (
                Meter {
                    input: 4_001,
                    tools: BTreeMap::from([("code_execution".to_owned(), 9)]),
                    ..none()
                },
                1,
                false,
            ),
            (
                Meter {
                    input: 4_001,
                    tools: BTreeMap::from([("web_fetch".to_owned(), 1)]),
                    ..none()
                },
                1,
                true,
            ),
            (
                Meter {
                    input: u64::MAX,
                    tools: tools(u64::MAX),
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
                4_000_000,
                true,
            ),
            (
                Meter {
                    stt_seconds: 9,
                    ..none()
                },
                4_000_001,
                false,
            ),
            (
                Meter {
                    video_tokens: 9,
                    ..none()
                },
                4_000_001,
                false,
            ),
            (
                Meter {
                    video_seconds: 9,
                    ..none()
                },
                4_000_001,
                false,
            ),
            (
                Meter {
                    usd_ticks: 9,
                    ..none()
                },
                8_000_000,
                true,
            ),
            (
                Meter {
                    usd_ticks: 9,
                    ..none()
                },
                8_000_001,
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
        let limits = UsageLimits::new(0, Micro::ZERO, Micro::MAX);
        let ticks = Meter {
            usd_ticks: 1,
            ..Meter::default()
        };
        let film = Meter {
            video_tokens: 1,
            ..Meter::default()
        };
        for meter in [&ticks, &film] {
            assert!(limits.allow(meter, ALWAYS_PLAUSIBLE));
            assert!(!limits.allow(meter, Micro::new(ALWAYS_PLAUSIBLE.get() + 1)));
        }
        let most = UsageLimits::new(u64::MAX, Micro::MAX, Micro::MAX);
        assert!(most.allow(&ticks, Micro::MAX));
    }

    #[test]
    fn a_report_costs_at_most_the_debt_limit_beyond_its_hold() {
        let by_second = r#"{"video_second":"1"}"#;
        let by_cost = r#"{"video_second":"1","usd":"1"}"#;
        for (price, hold, debt_limit, most) in [
            (by_second, 2_000_000, 10_000_000, 4_000_000),
            (by_second, 500, 10_000_000, 1_000_000),
            (by_second, 500, 300, 800),
            (by_second, 500, 0, 500),
            (by_cost, 2_000_000, 10_000_000, 8_000_000),
            (by_cost, 2_000_000, 1_000_000, 3_000_000),
            (by_cost, 100, 10_000_000, 1_000_000),
            (by_cost, 100, 50, 150),
        ] {
            let limits = UsageLimits::new(0, Micro::new(hold), Micro::new(debt_limit));
            let price: PriceCard = serde_json::from_str(price).unwrap();
            let found = limits.film_max(&price);
            assert_eq!(found, Micro::new(most), "{hold} {debt_limit}");
        }
    }
}
