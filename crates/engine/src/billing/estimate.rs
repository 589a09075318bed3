//! Estimates the usage of a call before it is sent. The hold is based on this estimate.

use ledger::{Meter, Micro, PriceCard, PriceError, PriceKey, Reservation, TextBound};
use protocol::count::InputCount;
use protocol::images::PriceGrade;
use protocol::native::{Head, LongCache};
use protocol::{Profile, Tool, ToolCalls, Tools};

use crate::billing::metering::{Metering, PictureMetering};
use crate::billing::usage_limits::UsageLimits;
use crate::catalog::Model;

/// The bounds of one call, and how it is metered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Estimate {
    /// The usage that the first hold covers.
    pub(crate) reserved: Meter,
    /// The part of `reserved` that is held only because media may fill the model's context. It does not count against
    /// the tokens per minute. Otherwise a limit below the size of the context would refuse every such request.
    pub(crate) context_fill: u64,
    /// The maximum usage of the call, if it may be more than the hold covers.
    pub(crate) worst: Option<WorstCase>,
    /// The maximum number of tokens that the model can use for this call. A report far above it counts as implausible.
    pub(crate) tokens_possible: u64,
    /// The maximum number of output tokens of the call. No hold needs to cover more.
    pub(crate) output_bound: u64,
    /// The calls of built-in tools that the hold covers, if they have a price.
    pub(crate) tools: ToolCalls,
    pub(crate) metering: Metering,
}

impl Estimate {
    /// Estimates a text call: its counted input, and at first `reserve_tokens` of output.
    ///
    /// In the worst case every byte of the input is a token, and the output is the longest that the model can produce:
    /// an upstream may ignore the caller's limit, unless it is known to respect it.
    pub(crate) fn text(
        head: &Head,
        profile: &Profile,
        keeps_output_limit: bool,
        reserve_tokens: u64,
    ) -> Self {
        let input_tokens = held_input(&head.input, profile);
        let choices = u64::from(head.choices.max(1));
        let output_possible = most_output(profile).map(|most| most.saturating_mul(choices));
        let bound = TextBound {
            input_tokens,
            // The caller's limit may be higher than what the model can produce.
            output_tokens_max: [head.output_tokens_max, most_output(profile)]
                .into_iter()
                .flatten()
                .min(),
            choices: head.choices,
        };
        let output_bound = ledger::bound_meter(&bound, 0).output;
        let worst = WorstCase {
            image_input: 0,
            // Each summary may read the whole context. The answer then reads less.
            input: most_input(&head.input, profile).saturating_mul(1 + u64::from(head.compacts)),
            output: match output_possible {
                Some(possible) if !keeps_output_limit => possible,
                _ => output_bound,
            },
        };
        let mut reserved = ledger::bound_meter(&bound, reserve_tokens);
        if head.long_cache != LongCache::No {
            // The whole input may be written to the cache, which has the highest price.
            reserved.cache_write_1h = std::mem::take(&mut reserved.input);
        }
        Self {
            reserved,
            tokens_possible: possible_input(worst.input, profile)
                .saturating_add(output_possible.unwrap_or(output_bound)),
            worst: Some(worst),
            output_bound,
            tools: one_of_each(head.tools),
            context_fill: input_tokens.saturating_sub(head.input.tokens),
            metering: Metering::Tokens {
                input_tokens,
                long_cache: head.long_cache,
            },
        }
    }

    /// Estimates a call that is billed by its input only.
    pub(crate) fn input_only(input: &InputCount, profile: &Profile) -> Self {
        let input_tokens = held_input(input, profile);
        let most = input.tokens_max.unwrap_or(input_tokens).max(input_tokens);
        Self {
            reserved: Meter {
                input: input_tokens,
                ..Meter::default()
            },
            context_fill: input_tokens.saturating_sub(input.tokens),
            // The request may contain many inputs, and each of them may fill the context.
            worst: Some(WorstCase {
                image_input: 0,
                input: most,
                output: 0,
            }),
            tokens_possible: possible_input(most, profile),
            metering: Metering::Tokens {
                input_tokens,
                long_cache: LongCache::No,
            },
            ..Self::default()
        }
    }

    /// Extends the estimate for a model that makes pictures in addition to text: each choice may contain one.
    pub(crate) fn with_pictures(
        self,
        requested_grade: PriceGrade,
        choices: u32,
        model: &Model,
    ) -> Self {
        let profile = &model.profile;
        let metering = PictureMetering {
            prompt_tokens: self.reserved.input_total(),
            source_tokens: 0,
            image_tokens_max: profile
                .image_tokens_max
                .or(most_output(profile))
                .unwrap_or(0),
            requested_grade,
            images_held: u64::from(choices),
            has_text: true,
        };
        Self {
            reserved: metering.bound(&self.reserved, &model.price),
            tokens_possible: self.tokens_possible.saturating_add(metering.tokens_max()),
            metering: Metering::Pictures(Box::new(metering)),
            ..self
        }
    }

    /// Estimates a call that makes only pictures. Its prompt has at most `prompt_tokens_max` tokens.
    pub(crate) fn pictures(
        metering: PictureMetering,
        prompt_tokens_max: u64,
        offered: Tools,
        model: &Model,
    ) -> Self {
        let prompt = metering.prompt();
        let context = possible_input(prompt.input_total(), &model.profile);
        Self {
            reserved: metering.bound(&prompt, &model.price),
            worst: Some(WorstCase {
                image_input: metering.source_tokens.saturating_mul(SOURCE_FIDELITY_MAX),
                input: prompt_tokens_max,
                output: 0,
            }),
            tokens_possible: context
                .max(prompt_tokens_max)
                .saturating_add(metering.tokens_max()),
            tools: one_of_each(offered),
            metering: Metering::Pictures(Box::new(metering)),
            ..Self::default()
        }
    }

    /// Estimates a call that uses at most `meter`.
    pub(crate) fn voice(meter: Meter, metering: impl FnOnce(Box<Meter>) -> Metering) -> Self {
        Self {
            reserved: meter.clone(),
            metering: metering(Box::new(meter)),
            ..Self::default()
        }
    }

    /// Estimates a transcript of at most `seconds_max` seconds. If the answer reports no duration, the call is billed
    /// for `seconds_billed` seconds.
    pub(crate) fn transcript(seconds_max: u64, seconds_billed: u64) -> Self {
        let heard = |stt_seconds| Meter {
            stt_seconds,
            ..Meter::default()
        };
        Self {
            reserved: heard(seconds_max),
            ..Self::voice(heard(seconds_billed), Metering::Transcript)
        }
    }

    /// The maximum that a plausible report of seconds or of a cost in dollars may charge beyond `hold`.
    fn measured_exposure(&self, price: &PriceCard, hold: Micro, debt_limit: Micro) -> Micro {
        let limits = UsageLimits::new(0, hold, debt_limit);
        let most = match self.metering {
            Metering::Transcript(_) => limits.audio_max(),
            Metering::Pictures(_) if price.unit_price(PriceKey::Usd).is_some() => limits.cost_max(),
            Metering::Pictures(_)
            | Metering::Tokens { .. }
            | Metering::Speech(_)
            | Metering::Session(_) => hold,
        };
        most.checked_sub(hold).unwrap_or_default()
    }

    /// The maximum that the call may cost beyond `hold`. Neither amount includes tools, because nobody knows in advance
    /// how many times a model uses them.
    fn exposure(&self, price: &PriceCard, hold: Micro) -> Result<Micro, PriceError> {
        let Some(worst) = &self.worst else {
            return Ok(Micro::ZERO);
        };
        let mut most = self.reserved.clone();
        // If the request asks for the one-hour cache, the whole input may be written to it.
        let input = match most.cache_write_1h {
            0 => &mut most.input,
            _ => &mut most.cache_write_1h,
        };
        let image_price = price.unit_price(PriceKey::ImageInput);
        if image_price.or(price.unit_price(PriceKey::Input)).is_some() {
            most.image_input = most.image_input.max(worst.image_input);
        }
        // Text may have no price if pictures are billed one by one.
        if price.unit_price(PriceKey::Input).is_some() {
            *input = (*input).max(worst.input);
        }
        if price.unit_price(PriceKey::Output).is_some() {
            most.output = most.output.max(worst.output);
        }
        let most = ledger::hold_of(price, &most)?;
        Ok(most.checked_sub(hold).unwrap_or_default().max(Micro::ZERO))
    }

    /// The tokens that count against the limits per minute.
    pub(crate) fn tokens(&self) -> u64 {
        let input = self.reserved.input_total();
        let input = input.saturating_sub(self.context_fill);
        input.saturating_add(self.reserved.output_total())
    }

    /// The reservation to request from the ledger.
    pub(crate) fn reservation(
        &self,
        price: &PriceCard,
        debt_limit: Micro,
    ) -> Result<Reservation, PriceError> {
        let without_tools = ledger::hold_of(price, &self.reserved)?;
        let hold = if self.tools.is_empty() {
            without_tools
        } else {
            let mut reserved = self.reserved.clone();
            reserve_tools(&mut reserved, price, &self.tools);
            ledger::hold_of(price, &reserved)?
        };
        Ok(Reservation {
            hold,
            exposure: self
                .exposure(price, without_tools)?
                .max(self.measured_exposure(price, hold, debt_limit)),
            tokens: self.tokens(),
            counts_in_flight: true,
        })
    }
}

/// The maximum number of tokens that a call may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorstCase {
    pub(crate) input: u64,
    /// The tokens of the source pictures of a picture.
    pub(crate) image_input: u64,
    pub(crate) output: u64,
}

/// A source picture at the highest fidelity takes up to this many times its usual tokens (16,384 instead of 1,600).
const SOURCE_FIDELITY_MAX: u64 = 11;
/// The context of a model whose profile does not state it.
const CONTEXT_TOKENS_UNKNOWN: u64 = 1_000_000;

/// The input that the hold covers: the counted tokens, or the model's whole context if media of unknown length may fill
/// it. A call without a usage report is charged for the same input.
fn held_input(input: &InputCount, profile: &Profile) -> u64 {
    if !input.fills_context {
        return input.tokens;
    }
    input.tokens.max(context_of(profile))
}

fn context_of(profile: &Profile) -> u64 {
    profile.context_tokens.unwrap_or(CONTEXT_TOKENS_UNKNOWN)
}

/// The maximum number of input tokens of a text call. The request is one input, so the context limits it.
fn most_input(input: &InputCount, profile: &Profile) -> u64 {
    match (input.tokens_max, profile.context_tokens) {
        (Some(most), Some(context)) => most.min(context),
        (Some(most), None) => most,
        (None, _) => context_of(profile),
    }
}

/// The maximum number of input tokens that a model can read for a request: `most`, or its whole context if that is
/// larger.
fn possible_input(most: u64, profile: &Profile) -> u64 {
    most.max(profile.context_tokens.unwrap_or(0))
}

/// One call of each tool, because nobody knows in advance how many times a model uses them.
fn one_of_each(offered: Tools) -> ToolCalls {
    let mut calls = ToolCalls::default();
    offered.iter().for_each(|tool| calls.add(tool, 1));
    calls
}

/// Adds the tools that have a price to `meter`.
pub(crate) fn reserve_tools(meter: &mut Meter, price: &PriceCard, tools: &ToolCalls) {
    if price.prices_tools() {
        let priced = |(tool, _): &(Tool, u32)| price.prices_tool(tool.as_str());
        let named = tools
            .iter()
            .filter(priced)
            .map(|(tool, calls)| (tool.as_str().to_owned(), u64::from(calls)));
        meter.tools.extend(named);
    }
}

/// The maximum output of a model: as stated in its profile, otherwise its whole context.
fn most_output(profile: &Profile) -> Option<u64> {
    profile.max_output_tokens.or(profile.context_tokens)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use protocol::Dialect;
    use protocol::native::read_head;
    use serde_json::{Value, json};

    use super::*;

    const CARD: &str = r#"{"input":"1","output":"10"}"#;
    const LONG: &str = r#"{"input":"1","output":"10","long_context":{"above_tokens":800,"input":"2","output":"30"}}"#;

    fn reservation_for(
        card: &str,
        profile: &Value,
        more: &Value,
        keeps_output_limit: bool,
    ) -> Reservation {
        let mut body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": "hello" }] });
        let members = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        let body = Bytes::from(body.to_string());
        let head = read_head(Dialect::Chat, &body).unwrap();
        let profile: Profile = serde_json::from_value(profile.clone()).unwrap();
        let estimate = Estimate::text(&head, &profile, keeps_output_limit, 20);
        estimate
            .reservation(&serde_json::from_str(card).unwrap(), Micro::ZERO)
            .unwrap()
    }

    #[test]
    fn hold_and_exposure_are_the_most_that_a_call_may_cost() {
        let small = json!({ "context_tokens": 1_000, "max_output_tokens": 100 });
        let (five, three) = (
            json!({ "max_tokens": 5 }),
            json!({ "max_tokens": 5, "n": 3 }),
        );
        for (card, more, keeps_output_limit, most) in [
            // The prompt is limited by the context, and the output by the model's maximum.
            (CARD, &json!({}), false, 1_000 + 1_000),
            (CARD, &five, false, 1_000 + 1_000),
            (CARD, &three, false, 1_000 + 3_000),
            // The upstream is known to respect the limit.
            (CARD, &five, true, 1_000 + 50),
            (CARD, &three, true, 1_000 + 150),
            (CARD, &json!({}), true, 1_000 + 1_000),
            (CARD, &json!({ "max_tokens": 500 }), true, 1_000 + 1_000),
            (LONG, &five, true, 2_000 + 150),
        ] {
            let ask = reservation_for(card, &small, more, keeps_output_limit);
            let sum = ask.hold.checked_add(ask.exposure);
            assert_eq!(
                sum,
                Some(Micro::new(most)),
                "{card} {more} {keeps_output_limit}"
            );
            assert!(ask.hold < Micro::new(500), "{ask:?}");
        }
    }

    #[test]
    fn a_conversation_that_may_be_shortened_is_read_twice_at_most() {
        let profile = json!({ "context_tokens": 1_000, "max_output_tokens": 100 });
        let profile: Profile = serde_json::from_value(profile).unwrap();
        let most = |more: &Value| {
            let mut body = json!({ "model": "m", "max_tokens": 5,
                "messages": [{ "role": "user", "content": "hello" }] });
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let head = read_head(Dialect::Messages, &Bytes::from(body.to_string())).unwrap();
            let estimate = Estimate::text(&head, &profile, true, 20);
            let ask = estimate.reservation(&serde_json::from_str(CARD).unwrap(), Micro::ZERO);
            let ask = ask.unwrap();
            ask.hold.get() + ask.exposure.get()
        };
        let edits = json!({ "context_management": { "edits": [{ "type": "compact_20260112" }] } });
        assert_eq!(most(&json!({})), 1_000 + 50);
        assert_eq!(most(&json!({ "context_management": null })), 1_000 + 50);
        assert_eq!(most(&edits), 2_000 + 50);
    }

    #[test]
    fn the_context_bounds_the_output_of_a_model_that_says_nothing_closer() {
        let profile = json!({ "context_tokens": 2_000 });
        let ask = reservation_for(CARD, &profile, &json!({ "max_tokens": 5 }), false);
        // The worst case is one token per byte, some tokens that the upstream adds, and 2,000 tokens of output.
        let most = ask.hold.get() + ask.exposure.get();
        assert!((20_000 + 1_024..20_000 + 1_200).contains(&most), "{most}");
    }

    #[test]
    fn tools_are_held_for_and_lower_no_exposure() {
        let profile = json!({ "context_tokens": 1_000, "max_output_tokens": 100 });
        let tools = json!({ "tools": [{ "type": "web_search" }], "max_tokens": 5 });
        let card = r#"{"input":"1","output":"10","tools":{"web_search":"0.01"}}"#;
        let (bare, priced) = (
            reservation_for(CARD, &profile, &tools, false),
            reservation_for(card, &profile, &tools, false),
        );
        assert_eq!(priced.hold.get(), bare.hold.get() + 10_000);
        assert_eq!(priced.exposure, bare.exposure);
    }
}
