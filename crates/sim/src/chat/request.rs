//! Reads a request and refuses what the vendor would refuse.

use super::tools::Tooling;
use super::{messages, tools};
use crate::ask::Ask;
use crate::mind::{Effort, Prompt, Shape};
use crate::models;
use crate::openai::{Member, Refusal, type_name};
use serde_json::Value;

const CHOICES_MAX: i64 = 128;
const STOPS_MAX: usize = 4;
const METADATA_MAX: usize = 16;
/// The members of the protocol; strict models refuse others.
const KNOWN: &[&str] = &[
    "audio",
    "deferred",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    pub(super) streaming: Streaming,
    pub(super) choices: usize,
    /// How many alternatives of each token are told; `None`: no log probabilities at all.
    pub(super) logprobs: Option<usize>,
    /// The tools came as `functions`: the call goes back as `function_call`.
    pub(super) legacy: bool,
}

/// Whether and how the answer is streamed.
#[derive(Debug)]
pub(super) struct Streaming {
    pub(super) wanted: bool,
    pub(super) include_usage: bool,
    /// Chunks carry a string that hides their length.
    pub(super) obfuscation: bool,
}

/// Takes the body apart.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) => Err(Refusal::invalid(
            "We could not parse the JSON body of your request. (HINT: This likely means you \
             aren't using your HTTP library correctly. The API expects a JSON payload, but what \
             was sent was not valid JSON.)",
        )),
    }
}

/// The model that a call names, its script included.
pub(crate) fn model_of(request: &Value) -> Result<&str, Refusal> {
    match request.get("model") {
        Some(Value::String(model)) if !model.is_empty() => Ok(model),
        None | Some(Value::Null | Value::String(_)) => {
            Err(Refusal::invalid("you must provide a model parameter"))
        }
        Some(other) => Err(Refusal::invalid(format!(
            "Invalid type for 'model': expected a string, but got {} instead.",
            type_name(other)
        ))
        .param("model")
        .code("invalid_type")),
    }
}

pub(super) fn read(request: &Value, ask: &Ask<'_>) -> Result<Request, Refusal> {
    if !models::exists(ask.name) {
        return Err(Refusal::no_such_model(ask.name));
    }
    let body = Member::object(request, "")?;
    if ask.script.strict {
        body.only(KNOWN)?;
    }
    check_sampling(&body, ask.name)?;
    let streaming = streaming(&body)?;
    let messages = messages::read(&body, ask.script.strict)?;
    let Tooling {
        tools,
        tool_use,
        legacy,
    } = tools::read(&body)?;
    let shape = tools::read_format(&body)?;
    check_json_is_asked_for(&shape, &messages.all_text)?;
    let prompt = Prompt {
        system: messages.system,
        turns: messages.turns,
        tools,
        tool_use,
        parallel: body.flag("parallel_tool_calls")?.unwrap_or(true) && !legacy,
        shape,
        effort: effort(&body, ask.name)?,
        tokens_max: tokens_max(&body, ask.name)?,
        stops: stops(&body)?,
        seed: body.integer("seed", i64::MIN, i64::MAX)?.unwrap_or(0),
        cache_key: body.text("prompt_cache_key")?.is_some(),
    };
    let choices = body.integer("n", 1, CHOICES_MAX)?.unwrap_or(1);
    Ok(Request {
        prompt,
        streaming,
        choices: usize::try_from(choices).unwrap_or(1),
        logprobs: logprobs(&body)?,
        legacy,
    })
}

fn streaming(body: &Member<'_>) -> Result<Streaming, Refusal> {
    let wanted = body.flag("stream")?.unwrap_or(false);
    let options = body.child("stream_options")?;
    if options.is_some() && !wanted {
        return Err(Refusal::invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        )
        .param("stream_options"));
    }
    let option = |name: &str| match &options {
        Some(options) => options.flag(name),
        None => Ok(None),
    };
    Ok(Streaming {
        wanted,
        include_usage: option("include_usage")?.unwrap_or(false),
        obfuscation: option("include_obfuscation")?.unwrap_or(true),
    })
}

/// Members that the simulator does not act upon still have to be what they should be.
fn check_sampling(body: &Member<'_>, name: &str) -> Result<(), Refusal> {
    let temperature = body.decimal("temperature", 0, 2)?;
    let top_p = body.decimal("top_p", 0, 1)?;
    body.decimal("frequency_penalty", -2, 2)?;
    body.decimal("presence_penalty", -2, 2)?;
    body.one_of("verbosity", &["low", "medium", "high"])?;
    body.child("logit_bias")?;
    body.text("user")?;
    body.flag("store")?;
    body.one_of(
        "service_tier",
        &["auto", "default", "flex", "scale", "priority", "fast"],
    )?;
    if let Some(metadata) = body.child("metadata")?
        && metadata.names().count() > METADATA_MAX
    {
        return Err(Refusal::invalid(format!(
            "Invalid 'metadata': too many properties. Expected an object with at most \
             {METADATA_MAX} properties."
        ))
        .param("metadata")
        .code("object_above_max_properties"));
    }
    if let Some(modalities) = body.list("modalities")?
        && modalities.iter().any(|modality| modality == "audio")
    {
        return Err(
            Refusal::invalid("This model does not support audio output.")
                .param("modalities")
                .code("invalid_value"),
        );
    }
    if models::reasons(name) {
        for (member, value) in [("temperature", temperature), ("top_p", top_p)] {
            // Reasoning models take the default and nothing else.
            if value.is_some_and(|value| value.to_bits() != 1.0_f64.to_bits()) {
                return Err(Refusal::invalid(format!(
                    "Unsupported value: '{member}' does not support this value with this model. \
                     Only the default (1) value is supported."
                ))
                .param(member)
                .code("unsupported_value"));
            }
        }
    }
    Ok(())
}

fn effort(body: &Member<'_>, name: &str) -> Result<Effort, Refusal> {
    let word = body.one_of(
        "reasoning_effort",
        &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    )?;
    Ok(match word {
        Some("minimal") => Effort::Minimal,
        Some("low") => Effort::Low,
        Some("medium") => Effort::Medium,
        Some("high") => Effort::High,
        Some("xhigh" | "max") => Effort::Max,
        None if models::reasons(name) => Effort::Medium,
        _ => Effort::None,
    })
}

fn tokens_max(body: &Member<'_>, name: &str) -> Result<Option<u64>, Refusal> {
    let old = body.integer("max_tokens", 1, i64::MAX)?;
    let new = body.integer("max_completion_tokens", 1, i64::MAX)?;
    if old.is_some() && models::reasons(name) {
        return Err(Refusal::invalid(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        )
        .param("max_tokens")
        .code("unsupported_parameter"));
    }
    if old.is_some() && new.is_some() {
        return Err(Refusal::invalid(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        )
        .param("max_tokens")
        .code("invalid_parameter_combination"));
    }
    Ok(new.or(old).and_then(|max| u64::try_from(max).ok()))
}

fn stops(body: &Member<'_>) -> Result<Vec<String>, Refusal> {
    let list = match body.get("stop") {
        None => return Ok(Vec::new()),
        Some(Value::String(stop)) => return Ok(vec![stop.clone()]),
        Some(_) => body.list("stop")?.unwrap_or_default(),
    };
    if list.len() > STOPS_MAX {
        return Err(Refusal::invalid(format!(
            "Invalid 'stop': array too long. Expected an array with maximum length {STOPS_MAX}, \
             but got an array with length {} instead.",
            list.len()
        ))
        .param("stop")
        .code("array_above_max_length"));
    }
    list.iter()
        .enumerate()
        .map(|(index, stop)| match stop {
            Value::String(stop) => Ok(stop.clone()),
            other => Err(Refusal::invalid(format!(
                "Invalid type for 'stop[{index}]': expected a string, but got {} instead.",
                type_name(other)
            ))
            .param("stop")
            .code("invalid_type")),
        })
        .collect()
}

fn logprobs(body: &Member<'_>) -> Result<Option<usize>, Refusal> {
    let wanted = body.flag("logprobs")?.unwrap_or(false);
    let top = body.integer("top_logprobs", 0, 20)?;
    match (wanted, top) {
        (false, Some(_)) => Err(Refusal::invalid(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
        )
        .param("top_logprobs")),
        (false, None) => Ok(None),
        (true, top) => Ok(Some(usize::try_from(top.unwrap_or(0)).unwrap_or(0))),
    }
}

/// JSON mode without a word of it in the prompt is a known way to an endless answer.
fn check_json_is_asked_for(shape: &Shape, all_text: &str) -> Result<(), Refusal> {
    if *shape == Shape::Json && !all_text.to_ascii_lowercase().contains("json") {
        return Err(Refusal::invalid(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of \
             type 'json_object'.",
        )
        .param("messages"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Script;
    use crate::seed::Seed;
    use serde_json::json;

    fn read_as(name: &str, script: &str, request: &Value) -> Result<Request, Refusal> {
        let mut parsed = Script::default();
        parsed.apply(script).unwrap();
        let ask = Ask {
            name,
            script: &parsed,
            seed: Seed::new(1),
            created: 0,
        };
        read(request, &ask)
    }

    /// A valid request with other members laid over it.
    fn request(changes: &Value) -> Value {
        let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "json?"}]});
        let (Value::Object(request_map), Value::Object(changes)) = (&mut request, changes) else {
            panic!("both are objects");
        };
        request_map.extend(changes.clone());
        request
    }

    #[test]
    fn what_the_vendor_refuses_is_refused() {
        for (changes, param, code) in [
            (
                json!({"temperature": 2.1}),
                Some("temperature"),
                Some("decimal_above_max_value"),
            ),
            (
                json!({"temperature": "hot"}),
                Some("temperature"),
                Some("invalid_type"),
            ),
            (
                json!({"top_p": -0.1}),
                Some("top_p"),
                Some("decimal_below_min_value"),
            ),
            (
                json!({"presence_penalty": 3}),
                Some("presence_penalty"),
                Some("decimal_above_max_value"),
            ),
            (json!({"n": 0}), Some("n"), Some("integer_below_min_value")),
            (
                json!({"n": 129}),
                Some("n"),
                Some("integer_above_max_value"),
            ),
            (
                json!({"max_tokens": 0}),
                Some("max_tokens"),
                Some("integer_below_min_value"),
            ),
            (
                json!({"max_tokens": 1, "max_completion_tokens": 1}),
                Some("max_tokens"),
                Some("invalid_parameter_combination"),
            ),
            (
                json!({"stop": ["a", "b", "c", "d", "e"]}),
                Some("stop"),
                Some("array_above_max_length"),
            ),
            (json!({"stop": [1]}), Some("stop"), Some("invalid_type")),
            (
                json!({"stream": "yes"}),
                Some("stream"),
                Some("invalid_type"),
            ),
            (json!({"stream_options": {}}), Some("stream_options"), None),
            (json!({"top_logprobs": 2}), Some("top_logprobs"), None),
            (
                json!({"logprobs": true, "top_logprobs": 21}),
                Some("top_logprobs"),
                Some("integer_above_max_value"),
            ),
            (
                json!({"reasoning_effort": "huge"}),
                Some("reasoning_effort"),
                Some("invalid_value"),
            ),
            (
                json!({"service_tier": "gold"}),
                Some("service_tier"),
                Some("invalid_value"),
            ),
            (
                json!({"modalities": ["text", "audio"]}),
                Some("modalities"),
                Some("invalid_value"),
            ),
            (
                json!({"messages": [{"role": "user", "content": "hi"}], "response_format": {"type": "json_object"}}),
                Some("messages"),
                None,
            ),
        ] {
            let refusal = read_as("m", "", &request(&changes)).unwrap_err();
            assert_eq!(refusal.status, 400);
            assert_eq!(
                (refusal.param.as_deref(), refusal.code),
                (param, code),
                "{changes}"
            );
        }
    }

    #[test]
    fn null_means_absent() {
        let nulls: serde_json::Map<_, _> = KNOWN
            .iter()
            .filter(|name| !["model", "messages"].contains(name))
            .map(|name| ((*name).to_owned(), Value::Null))
            .collect();
        assert!(read_as("m", "strict", &request(&Value::Object(nulls))).is_ok());
    }

    #[test]
    fn members_are_read() {
        let read = read_as(
            "m",
            "",
            &request(&json!({
                "stream": true, "stream_options": {"include_usage": true, "include_obfuscation": false},
                "n": 3, "stop": "END", "max_completion_tokens": 9, "seed": 5,
                "logprobs": true, "top_logprobs": 2, "reasoning_effort": "high", "unknown": 1
            })),
        )
        .unwrap();
        let streaming = &read.streaming;
        assert!(streaming.wanted && streaming.include_usage && !streaming.obfuscation);
        assert_eq!((read.choices, read.logprobs), (3, Some(2)));
        assert_eq!(read.prompt.stops, ["END"]);
        assert_eq!(read.prompt.tokens_max, Some(9));
        assert_eq!(read.prompt.effort, Effort::High);
    }

    #[test]
    fn models_differ() {
        let unknown = request(&json!({"colour": "red"}));
        assert!(read_as("m", "", &unknown).is_ok());
        let refusal = read_as("m", "strict", &unknown).unwrap_err();
        assert_eq!(refusal.code, Some("unknown_parameter"));
        let missing = read_as("missing-1", "", &request(&json!({}))).unwrap_err();
        assert_eq!(missing.status, 404);
        for changes in [json!({"max_tokens": 5}), json!({"temperature": 0.5})] {
            assert!(
                read_as("sim-reason", "", &request(&changes)).is_err(),
                "{changes}"
            );
        }
        assert!(read_as("sim-reason", "", &request(&json!({"temperature": 1}))).is_ok());
    }

    #[test]
    fn a_body_must_be_an_object_that_names_a_model() {
        for body in ["", "{", "[]", "null", "\u{ff}", "{\"model\":1"] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
        for request in [
            json!({}),
            json!({"model": null}),
            json!({"model": 7}),
            json!({"model": ""}),
        ] {
            assert!(model_of(&request).is_err(), "{request}");
        }
    }
}
