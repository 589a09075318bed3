//! What a call may use, as it is held before the call is made.

use ledger::{Ask, Bound, Meter, PriceCard, PriceError};
use protocol::count::InputCount;
use protocol::images::Grade;
use protocol::native::Head;
use protocol::{Profile, Tool, ToolCalls, Tools};

use crate::catalog::Model;
use crate::gauge::{Gauge, PictureGauge};

/// The bounds of one call, and what it is measured by.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    /// What is held for at first.
    pub(crate) reserved: Meter,
    /// The part of `reserved` that is held only because media may fill the model's context. It is
    /// not taken from the tokens per minute, which would refuse such a request for ever.
    pub(crate) context_fill: u64,
    /// Output tokens beyond which none can come, so that no hold needs to cover more.
    pub(crate) output_bound: u64,
    /// Calls of built-in tools that are held for, where they have a price.
    pub(crate) tools: ToolCalls,
    pub(crate) gauge: Gauge,
}

impl Estimate {
    /// A text call: its input as counted, and output up to `reserve_tokens` at first.
    pub(crate) fn text(head: &Head, profile: &Profile, reserve_tokens: u64) -> Self {
        let input_tokens = held_input(&head.input, profile);
        let bound = Bound {
            input_tokens,
            // A caller may ask for more than the model can give, never get it.
            output_tokens_max: [head.output_tokens_max, most_output(profile)]
                .into_iter()
                .flatten()
                .min(),
            choices: head.choices,
        };
        Self {
            reserved: ledger::bound_meter(&bound, reserve_tokens),
            output_bound: ledger::bound_meter(&bound, 0).output,
            tools: one_of_each(head.tools),
            context_fill: input_tokens.saturating_sub(head.input.tokens),
            gauge: Gauge::Tokens { input_tokens },
        }
    }

    /// A call that costs its input alone.
    pub(crate) fn input_only(input: &InputCount, profile: &Profile) -> Self {
        let input_tokens = held_input(input, profile);
        Self {
            reserved: Meter {
                input: input_tokens,
                ..Meter::default()
            },
            context_fill: input_tokens.saturating_sub(input.tokens),
            gauge: Gauge::Tokens { input_tokens },
            ..Self::default()
        }
    }

    /// The same call of a model that makes pictures beside text: each choice may hold one.
    pub(crate) fn with_pictures(self, asked: Grade, choices: u32, model: &Model) -> Self {
        let profile = &model.profile;
        let gauge = PictureGauge {
            prompt_tokens: self.reserved.input,
            source_tokens: 0,
            image_tokens_max: profile
                .image_tokens_max
                .or(most_output(profile))
                .unwrap_or(0),
            asked,
            held: u64::from(choices),
            has_text: true,
        };
        Self {
            reserved: gauge.bound(&self.reserved, &model.price),
            gauge: Gauge::Pictures(Box::new(gauge)),
            ..self
        }
    }

    /// A call that uses `meter` at most, measured by `gauge`.
    pub(crate) fn voice(meter: Meter, gauge: impl FnOnce(Box<Meter>) -> Gauge) -> Self {
        Self {
            reserved: meter.clone(),
            gauge: gauge(Box::new(meter)),
            ..Self::default()
        }
    }

    /// What the ledger is asked for.
    pub(crate) fn ask(&self, price: &PriceCard) -> Result<Ask, PriceError> {
        let tokens = self.reserved.input_total();
        let tokens = tokens.saturating_sub(self.context_fill);
        let hold = if self.tools.is_empty() {
            ledger::hold_of(price, &self.reserved)?
        } else {
            let mut reserved = self.reserved.clone();
            reserve_tools(&mut reserved, price, &self.tools);
            ledger::hold_of(price, &reserved)?
        };
        Ok(Ask {
            hold,
            tokens: tokens.saturating_add(self.reserved.output_total()),
            counts: true,
        })
    }
}

/// The context of a model whose profile does not tell it.
const CONTEXT_TOKENS_UNKNOWN: u64 = 1_000_000;

/// The input that is held for: as counted, or the model's whole context where media of unknown
/// length may fill it. A call without a usage report is charged for the same.
fn held_input(input: &InputCount, profile: &Profile) -> u64 {
    if !input.fills_context {
        return input.tokens;
    }
    let context = profile.context_tokens.unwrap_or(CONTEXT_TOKENS_UNKNOWN);
    input.tokens.max(context)
}

/// One call of each tool: how often a model uses what it is offered, nobody knows.
fn one_of_each(offered: Tools) -> ToolCalls {
    let mut calls = ToolCalls::default();
    offered.iter().for_each(|tool| calls.add(tool, 1));
    calls
}

/// Adds the tools that have a price to what is held for.
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

/// The most a model can put out; its whole context where nothing closer is known.
fn most_output(profile: &Profile) -> Option<u64> {
    profile.max_output_tokens.or(profile.context_tokens)
}
