//! Writes `generationConfig`.

use super::schema::write_schema;
use crate::canon::{
    Dropped, Effort, Field, Format, Reasoning, Request, accepted_sampling, is_zero, label_schema,
};
use crate::json::write::Object;
use crate::profile::{Profile, Thinking};

/// The maximum number of stop sequences that upstreams accept.
pub(in crate::generate) const STOP_MAX: usize = 5;
/// Some models refuse budgets above this.
const BUDGET_TOKENS_MAX: u64 = 24_576;
/// The thinking levels that every model with levels supports.
const COMMON_LEVELS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

/// Writes the members of `generationConfig`, and reports settings for which it has no member.
pub(in crate::generate) fn write_config(
    config: &mut Object<'_>,
    request: &Request,
    detail: Option<&str>,
    profile: &Profile,
    dropped: &mut Dropped,
) {
    if let Some(limit) = request.output_tokens_max {
        config.number("maxOutputTokens", limit);
    }
    write_sampling(config, request, profile, dropped);
    if !request.stop.is_empty() {
        config.array("stopSequences", |list| {
            for stop in request.stop.iter().take(STOP_MAX) {
                list.text(stop);
            }
        });
    }
    if let Some(format) = &request.format {
        config.text("responseMimeType", "application/json");
        if let Format::Schema {
            name,
            description,
            schema,
            ..
        } = format
        {
            let (name, description) = (name.as_deref(), description.as_deref());
            let schema = label_schema(schema.get(), name, description, dropped);
            config.value("responseJsonSchema", |out| write_schema(out, &schema));
        }
    }
    if let Some(logprobs) = request.logprobs {
        config.boolean("responseLogprobs", true);
        if let Some(top) = logprobs.alternatives() {
            config.number("logprobs", top);
        }
    }
    if let Some(detail) = detail {
        config.text("mediaResolution", detail);
    }
    if let Some(reasoning) = &request.reasoning {
        write_thinking(config, reasoning, profile, dropped);
    }
}

fn write_sampling(
    config: &mut Object<'_>,
    request: &Request,
    profile: &Profile,
    dropped: &mut Dropped,
) {
    let sampling = &request.sampling;
    let rates = [
        ("temperature", &sampling.temperature, Field::Temperature),
        ("topP", &sampling.top_p, Field::TopP),
    ];
    for (name, value, field) in rates {
        if let Some(value) = accepted_sampling(value.as_ref(), field, profile, dropped) {
            config.number(name, value);
        }
    }
    match sampling.top_k {
        Some(_) if profile.fixed_sampling == Some(true) => dropped.field(Field::TopK),
        Some(top_k) => {
            config.number("topK", top_k);
        }
        None => {}
    }
    let penalties = [
        ("frequencyPenalty", &sampling.frequency_penalty),
        ("presencePenalty", &sampling.presence_penalty),
    ];
    for (name, value) in penalties {
        // Some models refuse even a penalty of zero.
        if let Some(value) = value.as_ref().filter(|value| !is_zero(value)) {
            config.number(name, value);
        }
    }
    if let Some(seed) = sampling.seed {
        config.number("seed", seed);
    }
}

fn write_thinking(
    config: &mut Object<'_>,
    reasoning: &Reasoning,
    profile: &Profile,
    dropped: &mut Dropped,
) {
    let Reasoning {
        effort,
        budget_tokens,
        show,
        ..
    } = reasoning.clone();
    let off = effort == Some(Effort::None) || budget_tokens == Some(0);
    if profile.thinking == Some(Thinking::None) || profile.reasoning == Some(false) {
        if off {
            dropped.shown_reasoning(reasoning);
        } else {
            dropped.reasoning(reasoning);
        }
        return;
    }
    let by_budget = match profile.thinking {
        Some(Thinking::Budget) => true,
        Some(_) => false,
        None => effort.is_none(),
    };
    let effort_budget = effort.map(Effort::budget_tokens);
    let budget = budget_tokens.or(effort_budget).filter(|_| by_budget);
    let budget = budget.map(|budget| budget.min(BUDGET_TOKENS_MAX));
    let effort = effort.or(budget_tokens.map(Effort::of_budget));
    let level = effort.filter(|_| !by_budget);
    let level = level.map(|effort| profile.nearest_effort(effort, &COMMON_LEVELS));
    let show = show && !off;
    if budget.is_none() && level.is_none() && !show {
        return;
    }
    config.object("thinkingConfig", |thinking| {
        if let Some(budget) = budget {
            thinking.number("thinkingBudget", budget);
        }
        if let Some(level) = level {
            thinking.text("thinkingLevel", level_name(level));
        }
        if show {
            thinking.boolean("includeThoughts", true);
        }
    });
}

fn level_name(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::XHigh | Effort::Max => "HIGH",
    }
}
