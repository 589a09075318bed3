//! Writes the whole answer of a call that is not streamed.

use super::annotation::Annotation;
use super::audio::Clip;
use super::logprobs::{self, Logprobs};
use super::request::Request;
use super::usage::{TokenCounts, Usage};
use crate::call_context::CallContext;
use crate::model::{Call, Finish, Output, respond};
use crate::openai::Refusal;
use crate::reply::Reply;
use crate::seed::Seed;
use http::StatusCode;
use serde::Serialize;

const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Estimates of the bytes that one byte of text adds to the answer: for each reported log probability, and for audio.
const LOGPROB_WEIGHT: usize = 16;
const AUDIO_WEIGHT: usize = 16;

/// The members that are the same in every chunk and in the whole answer.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) fingerprint: String,
}

impl Identity {
    pub(super) fn of(context: &CallContext<'_>, seed: &mut Seed) -> Self {
        let mut of_model = Seed::of(&[context.name.as_bytes()]);
        Self {
            id: format!("chatcmpl-Sim{}", seed.letters(26)),
            created: context.created,
            model: context.reported_model(),
            fingerprint: format!("fp_sim{:010x}", of_model.next() & 0xff_ffff_ffff),
        }
    }
}

/// The outputs of all choices. Their total size is limited.
pub(super) fn outputs(
    request: &Request,
    context: &CallContext<'_>,
) -> Result<Vec<Output>, Refusal> {
    let logprobs = request.logprobs.map_or(0, |alternatives| 1 + alternatives);
    let audio = usize::from(request.audio);
    let weight = 1 + LOGPROB_WEIGHT * logprobs + AUDIO_WEIGHT * audio;
    let mut outputs = Vec::new();
    let mut bytes = 0_usize;
    for choice in 0..request.choices {
        let output = respond(&request.prompt, context.script, choice);
        bytes = bytes.saturating_add(output.text.as_str().len().saturating_mul(weight));
        if bytes > ANSWER_BYTES_MAX {
            return Err(Refusal::invalid("The answer would be too long."));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

pub(super) fn call_id(seed: &mut Seed) -> String {
    format!("call_Sim{}", seed.letters(21))
}

pub(super) fn finish_word(finish: Finish, legacy: bool) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Filter => "content_filter",
        Finish::Calls if legacy => "function_call",
        Finish::Calls => "tool_calls",
    }
}

pub(super) fn whole(request: &Request, context: &CallContext<'_>) -> Result<Reply, Refusal> {
    let mut seed = context.seed.clone();
    let identity = Identity::of(context, &mut seed);
    let outputs = outputs(request, context)?;
    let counts = TokenCounts::of(request, &outputs, context.script);
    context.true_usage.set(Some(counts.true_usage()));
    let completion = Completion {
        id: &identity.id,
        object: "chat.completion",
        created: identity.created,
        model: &identity.model,
        choices: outputs
            .iter()
            .enumerate()
            .map(|(index, output)| Choice {
                index,
                message: message(output, request, identity.created, &mut seed),
                logprobs: request.logprobs.map(|alternatives| {
                    logprobs::of(output.text.as_str(), alternatives, output.refused)
                }),
                finish_reason: finish_word(output.finish, request.legacy),
            })
            .collect(),
        usage: counts.reported(context.script.usage),
        service_tier: "default",
        system_fingerprint: &identity.fingerprint,
    };
    // Strings, numbers and checked raw values always serialize.
    Ok(Reply::json(
        StatusCode::OK,
        serde_json::to_vec(&completion).unwrap_or_default(),
    ))
}

#[derive(Serialize)]
struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    service_tier: &'static str,
    system_fingerprint: &'a str,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    message: Message<'a>,
    logprobs: Option<Logprobs>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning_content: &'a str,
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Clip<'a>>,
    annotations: Vec<Annotation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Function<'a>>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Function<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<Custom<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    input: &'a str,
}

fn message<'a>(
    output: &'a Output,
    request: &Request,
    created: u64,
    seed: &mut Seed,
) -> Message<'a> {
    let text = output.text.as_str();
    let speaks = request.speaks(output);
    let silent = output.refused || speaks || (text.is_empty() && !output.calls.is_empty());
    let mut message = Message {
        role: "assistant",
        content: (!silent).then_some(text),
        reasoning_content: output.reasoning.as_str(),
        refusal: output.refused.then_some(text),
        audio: speaks.then(|| Clip::of(text, created, seed)),
        annotations: Annotation::of(output).into_iter().collect(),
        tool_calls: Vec::new(),
        function_call: None,
    };
    if request.legacy {
        message.function_call = output.calls.first().map(function);
    } else {
        message.tool_calls = output
            .calls
            .iter()
            .map(|call| tool_call(call, seed))
            .collect();
    }
    message
}

fn tool_call<'a>(call: &'a Call, seed: &mut Seed) -> ToolCall<'a> {
    let custom = call.custom.then(|| Custom {
        name: &call.name,
        input: call.arguments.as_str(),
    });
    ToolCall {
        id: call_id(seed),
        r#type: if call.custom { "custom" } else { "function" },
        function: (!call.custom).then(|| function(call)),
        custom,
    }
}

fn function(call: &Call) -> Function<'_> {
    Function {
        name: &call.name,
        arguments: call.arguments.as_str(),
    }
}
