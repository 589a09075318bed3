//! Reads `thinking` and `output_config.effort`.

use super::family::Family;
use super::member::Member;
use super::refusal::Refusal;
use crate::model::{Effort, ToolUse};

const BUDGET_MIN: u64 = 1024;
/// Thinking budgets from these sizes on count as medium and high effort.
const BUDGET_MEDIUM: u64 = 4096;
const BUDGET_HIGH: u64 = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thinking {
    pub(super) effort: Effort,
    /// Whether thinking blocks contain their thoughts. Otherwise they contain only a signature.
    pub(super) shown: bool,
    pub(super) mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Off,
    /// Thinking with a budget. The latest message of a running tool loop must begin with its thinking block.
    Budget,
    Adaptive,
}

pub(super) fn read(
    body: &Member<'_>,
    family: Family,
    tokens_max: u64,
) -> Result<Thinking, Refusal> {
    let effort = read_effort(body, family)?;
    let Some(thinking) = body.child("thinking")? else {
        return Ok(Thinking {
            effort: if family.always_thinks() {
                effort.unwrap_or(Effort::Medium)
            } else {
                Effort::None
            },
            shown: false,
            mode: if family.always_thinks() {
                Mode::Adaptive
            } else {
                Mode::Off
            },
        });
    };
    let tag = thinking.tag(&["adaptive", "between_tools", "disabled", "enabled"])?;
    let (effort, mode) = match tag {
        "enabled" => (read_budget(&thinking, family, tokens_max)?, Mode::Budget),
        "adaptive" if !family.takes_adaptive() => {
            return Err(Refusal::invalid(
                "adaptive thinking is not supported on this model",
            ));
        }
        "adaptive" => {
            thinking.refuse_unknown(&["type", "display"])?;
            (effort.unwrap_or(Effort::Medium), Mode::Adaptive)
        }
        _ if family.always_thinks() => {
            return Err(Refusal::invalid(format!(
                "\"thinking.type.{tag}\" is not supported for this model."
            )));
        }
        _ => {
            thinking.refuse_unknown(&["type"])?;
            (Effort::None, Mode::Off)
        }
    };
    Ok(Thinking {
        effort,
        shown: thinking.one_of("display", &["summarized", "omitted"])? != Some("omitted"),
        mode,
    })
}

fn read_budget(thinking: &Member<'_>, family: Family, tokens_max: u64) -> Result<Effort, Refusal> {
    if !family.takes_budget() {
        return Err(Refusal::invalid(
            "\"thinking.type.enabled\" is not supported for this model. Use \
             \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.",
        ));
    }
    thinking.refuse_unknown(&["type", "budget_tokens", "display"])?;
    thinking.required("budget_tokens")?;
    let budget = thinking
        .integer("budget_tokens", BUDGET_MIN)?
        .unwrap_or(BUDGET_MIN);
    if budget >= tokens_max {
        return Err(Refusal::invalid(
            "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our \
             documentation at https://docs.sim-upstream.example/en/docs/extended-thinking#max-tokens",
        ));
    }
    Ok(match budget {
        BUDGET_HIGH.. => Effort::High,
        BUDGET_MEDIUM.. => Effort::Medium,
        _ => Effort::Low,
    })
}

fn read_effort(body: &Member<'_>, family: Family) -> Result<Option<Effort>, Refusal> {
    let Some(config) = body.child("output_config")? else {
        return Ok(None);
    };
    config.refuse_unknown(&["effort", "format"])?;
    let word = config.one_of("effort", &["low", "medium", "high", "xhigh", "max"])?;
    if word.is_some() && !family.takes_effort() {
        return Err(Refusal::invalid(
            "This model does not support the effort parameter.",
        ));
    }
    Ok(word.map(|word| match word {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => Effort::Max,
    }))
}

impl Thinking {
    pub(super) fn is_on(self) -> bool {
        self.mode != Mode::Off
    }

    /// Refuses members that cannot be combined with thinking.
    pub(super) fn check(self, body: &Member<'_>, tool_use: &ToolUse) -> Result<(), Refusal> {
        if !self.is_on() {
            return Ok(());
        }
        if matches!(tool_use, ToolUse::Required | ToolUse::Named(_)) {
            return Err(Refusal::invalid(
                "Thinking may not be enabled when tool_choice forces tool use.",
            ));
        }
        if self.mode != Mode::Budget {
            return Ok(());
        }
        if body
            .share("temperature")?
            .is_some_and(|value| value.to_bits() != 1.0_f64.to_bits())
        {
            return Err(Refusal::invalid(
                "`temperature` may only be set to 1 when thinking is enabled. Please consult our \
                 documentation at https://docs.sim-upstream.example/en/docs/extended-thinking",
            ));
        }
        if body.share("top_p")?.is_some_and(|value| value < 0.95) {
            return Err(Refusal::invalid(
                "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
            ));
        }
        if body.get("top_k").is_some() {
            return Err(Refusal::invalid(
                "`top_k` must be unset when thinking is enabled.",
            ));
        }
        Ok(())
    }
}
