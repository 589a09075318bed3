//! Writes a request of the common form for a Messages upstream.

use super::schema;
use super::sendable::{resumes_without_thought, sendable_turns, signed};
use super::thinking::{Constraints, ThinkingPlan};
use super::tools::UpstreamTools;
use super::write_turns;
use crate::canon::{
    Dropped, Field, Format, Request, Target, accepted_sampling, is_usual_verbosity, label_schema,
    merge_turns,
};
use crate::failure::Failure;
use crate::json::write::{self, Object};
use serde_json::Number;

/// Writes the body for an upstream and reports dropped members.
pub fn write_request(
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    for name in &request.unknown {
        dropped.name(name);
    }
    let merged = merge_turns(
        request,
        |thought| signed(thought, target).is_some(),
        dropped,
    )?;
    let system = merged.system.clone();
    let turns = sendable_turns(merged, request.image_detail, target, dropped)?;
    let tools = UpstreamTools::new(request, &turns, dropped)?;
    let hindrance = Constraints {
        forced: tools.is_forced(),
        resumed: resumes_without_thought(&turns),
    };
    let plan = ThinkingPlan::new(request, target.profile, hindrance, dropped);

    let mut out = Vec::with_capacity(1024);
    write::object(&mut out, |it| {
        it.text("model", target.upstream_model);
        it.number("max_tokens", plan.max_tokens);
        if request.stream {
            it.boolean("stream", true);
        }
        write_turns::write_system(it, &system);
        write_turns::write_messages(it, &turns, target);
        tools.write(it);
        plan.write(it);
        output_config(it, request, &plan, dropped);
        sampling(it, request, target, &plan, dropped);
        stop_sequences(it, &request.stop, dropped);
        user(it, request, dropped);
    });
    leave_out(request, dropped);
    Ok(out)
}

fn output_config(
    it: &mut Object<'_>,
    request: &Request,
    plan: &ThinkingPlan,
    dropped: &mut Dropped,
) {
    let schema = match &request.format {
        None => None,
        // This dialect has no JSON mode without a schema, and the gateway adds no prompt for it.
        Some(Format::Json) => {
            dropped.field(Field::Format);
            None
        }
        Some(Format::Schema {
            name,
            description,
            schema,
            ..
        }) => {
            let (name, description) = (name.as_deref(), description.as_deref());
            Some(label_schema(schema.get(), name, description, dropped))
        }
    };
    if schema.is_none() && plan.effort.is_none() {
        return;
    }
    it.object("output_config", |it| {
        if let Some(effort) = plan.effort {
            it.text("effort", effort.as_str());
        }
        if let Some(schema) = &schema {
            it.object("format", |it| {
                it.text("type", "json_schema").value("schema", |out| {
                    schema::write_subset(schema, out);
                });
            });
        }
    });
}

fn sampling(
    it: &mut Object<'_>,
    request: &Request,
    target: &Target<'_>,
    plan: &ThinkingPlan,
    dropped: &mut Dropped,
) {
    // While a model thinks, upstreams accept the default temperature, no `top_k`, and no `top_p`
    // below 0.95.
    let thinks = plan.is_on();
    let profile = target.profile;
    let given = &request.sampling;
    let temperature = given.temperature.as_ref();
    if let Some(temperature) = accepted_sampling(temperature, Field::Temperature, profile, dropped)
    {
        if thinks && !equals(temperature, 1) {
            dropped.field(Field::Temperature);
        } else if temperature.as_f64().is_some_and(|value| value > 1.0) {
            // Temperatures go up to 1 in this dialect, and up to 2 in others.
            it.number("temperature", 1);
        } else {
            it.number("temperature", temperature);
        }
    }
    if let Some(top_p) = accepted_sampling(given.top_p.as_ref(), Field::TopP, profile, dropped) {
        if thinks && top_p.as_f64().is_some_and(|value| value < 0.95) {
            dropped.field(Field::TopP);
        } else {
            it.number("top_p", top_p);
        }
    }
    if let Some(top_k) = given.top_k {
        if thinks || profile.fixed_sampling == Some(true) {
            dropped.field(Field::TopK);
        } else {
            it.number("top_k", top_k);
        }
    }
    for (penalty, field) in [
        (&given.frequency_penalty, Field::FrequencyPenalty),
        (&given.presence_penalty, Field::PresencePenalty),
    ] {
        if penalty.as_ref().is_some_and(|penalty| !equals(penalty, 0)) {
            dropped.field(field);
        }
    }
    if given.seed.is_some() {
        dropped.field(Field::Seed);
    }
}

/// Whether a number equals this integer, in any notation.
fn equals(number: &Number, whole: u32) -> bool {
    number.as_f64() == Some(f64::from(whole))
}

/// Writes stop sequences. Upstreams refuse those that are only white space.
fn stop_sequences(it: &mut Object<'_>, stop: &[String], dropped: &mut Dropped) {
    let is_usable = |stop: &&String| !stop.trim().is_empty();
    if !stop.iter().all(|stop| is_usable(&stop)) {
        dropped.field(Field::Stop);
    }
    if stop.iter().any(|stop| is_usable(&stop)) {
        it.array("stop_sequences", |it| {
            for stop in stop.iter().filter(is_usable) {
                it.text(stop);
            }
        });
    }
}

/// Writes the end user. This dialect has one member for it, others have two.
fn user(it: &mut Object<'_>, request: &Request, dropped: &mut Dropped) {
    let safety = request.safety_identifier.as_deref();
    let user = request.user.as_deref();
    if safety.is_some() && user.is_some() && safety != user {
        dropped.field(Field::User);
    }
    if let Some(user) = safety.or(user) {
        it.object("metadata", |it| {
            it.text("user_id", user);
        });
    }
}

/// Reports the members that this dialect does not have.
fn leave_out(request: &Request, dropped: &mut Dropped) {
    if request.choices.is_some_and(|choices| choices > 1) {
        dropped.field(Field::Choices);
    }
    if let Some(logprobs) = request.logprobs {
        dropped.logprobs(logprobs);
    }
    if !is_usual_verbosity(request) {
        dropped.field(Field::Verbosity);
    }
    if request.metadata.is_some() {
        dropped.field(Field::Metadata);
    }
    if request.cache_key.is_some() {
        dropped.field(Field::CacheKey);
    }
}
