//! What a call may use, as it is held before the call is made.

use ledger::{Ask, Bound, Meter, Micro, PriceCard, PriceError};
use protocol::native::Head;
use protocol::{Profile, Tool, ToolCalls, Tools};

use crate::catalog::Model;
use crate::gauge::Gauge;

/// The bounds of one call, and what it is measured by.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    /// What is held for at first.
    pub(crate) reserved: Meter,
    /// What the call may use at most, where that is more than is held for.
    pub(crate) worst: Option<WorstCase>,
    /// Tokens that the model can use for such a call: no report is believed that is far beyond.
    pub(crate) tokens_possible: u64,
    /// Output tokens beyond which none can come, so that no hold needs to cover more.
    pub(crate) output_bound: u64,
    /// Calls of built-in tools that are held for, where they have a price.
    pub(crate) tools: ToolCalls,
    pub(crate) gauge: Gauge,
}

impl Estimate {
    /// A text call: its input as counted, and output up to `reserve_tokens` at first.
    ///
    /// At worst the input has a token for each byte of the body, and the output is the longest that
    /// the model can put out: an upstream may ignore the caller's limit, unless it is known to keep it.
    pub(crate) fn text(head: &Head, body_bytes: usize, model: &Model, reserve_tokens: u64) -> Self {
        let profile = &model.profile;
        let choices = u64::from(head.choices.max(1));
        let output_possible = most_output(profile).map(|most| most.saturating_mul(choices));
        let bound = Bound {
            input_tokens: head.input_tokens,
            // A caller may ask for more than the model can give, never get it.
            output_tokens_max: [head.output_tokens_max, most_output(profile)]
                .into_iter()
                .flatten()
                .min(),
            choices: head.choices,
        };
        let output_bound = ledger::bound_meter(&bound, 0).output;
        let worst = WorstCase {
            input_tokens: most_input(head.input_tokens, body_bytes, profile),
            output_tokens: match output_possible {
                Some(possible) if !model.keeps_output_limit => possible,
                _ => output_bound,
            },
        };
        Self {
            reserved: ledger::bound_meter(&bound, reserve_tokens),
            tokens_possible: possible_input(worst.input_tokens, profile)
                .saturating_add(output_possible.unwrap_or(output_bound)),
            worst: Some(worst),
            output_bound,
            tools: one_of_each(head.tools),
            gauge: Gauge::Tokens {
                input_tokens: head.input_tokens,
            },
        }
    }

    /// A call for vectors: its input as counted, and no output.
    pub(crate) fn embeddings(input_tokens: u64, body_bytes: usize, profile: &Profile) -> Self {
        // A request holds many inputs, each of which may fill the context.
        let most = input_tokens.max(tokens_of(body_bytes));
        Self {
            reserved: Meter {
                input: input_tokens,
                ..Meter::default()
            },
            worst: Some(WorstCase {
                input_tokens: most,
                output_tokens: 0,
            }),
            tokens_possible: possible_input(most, profile),
            gauge: Gauge::Tokens { input_tokens },
            ..Self::default()
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

    /// What the call may cost at most beyond `hold`. Tools count in neither: how often a model
    /// uses what it is offered, nobody knows.
    fn exposure(&self, price: &PriceCard, hold: Micro) -> Result<Micro, PriceError> {
        let Some(worst) = &self.worst else {
            return Ok(Micro::ZERO);
        };
        let most = Meter {
            input: worst.input_tokens.max(self.reserved.input),
            output: worst.output_tokens.max(self.reserved.output),
            ..Meter::default()
        };
        let most = ledger::hold_of(price, &most)?;
        Ok(most.checked_sub(hold).unwrap_or_default().max(Micro::ZERO))
    }

    /// What the ledger is asked for.
    pub(crate) fn ask(&self, price: &PriceCard) -> Result<Ask, PriceError> {
        let tokens = self.reserved.input_total();
        let without_tools = ledger::hold_of(price, &self.reserved)?;
        let hold = if self.tools.is_empty() {
            without_tools
        } else {
            let mut reserved = self.reserved.clone();
            reserve_tools(&mut reserved, price, &self.tools);
            ledger::hold_of(price, &reserved)?
        };
        Ok(Ask {
            hold,
            exposure: self.exposure(price, without_tools)?,
            tokens: tokens.saturating_add(self.reserved.output_total()),
            counts: true,
        })
    }
}

/// The most that a call may use of what it is billed by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorstCase {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// The most input tokens of a request: one for each byte, within the model's context.
fn most_input(counted: u64, body_bytes: usize, profile: &Profile) -> u64 {
    let most = tokens_of(body_bytes);
    let most = profile
        .context_tokens
        .map_or(most, |context| most.min(context));
    most.max(counted)
}

/// The most input tokens that a model can be made to read.
fn possible_input(most: u64, profile: &Profile) -> u64 {
    most.max(profile.context_tokens.unwrap_or(0))
}

/// No tokenizer makes more tokens of a text than it has bytes.
fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
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
