//! Reads a request and applies the vendor's checks.

use super::parameters::{self, Streaming};
use super::tools::ToolSettings;
use super::{messages, tools};
use crate::call_context::CallContext;
use crate::catalog;
use crate::model::{Output, Prompt};
use crate::openai::{Member, Refusal};
use serde_json::Value;

const CHOICES_MAX: i64 = 128;
/// The members that the protocol defines. With the script `strict`, a model refuses all others.
const KNOWN: &[&str] = &[
    "audio",
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

#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    pub(super) streaming: Streaming,
    pub(super) choices: usize,
    /// The number of alternatives to report for each token; `None` means no log probabilities.
    pub(super) logprobs: Option<usize>,
    /// Whether the caller asked for audio.
    pub(super) audio: bool,
    /// Whether the request has `functions` instead of `tools`, so that the answer has `function_call`.
    pub(super) legacy: bool,
}

impl Request {
    /// Whether the text of an output is sent as audio.
    pub(super) fn speaks(&self, output: &Output) -> bool {
        self.audio && !output.refused && !output.text.is_empty()
    }
}

pub(super) fn read(request: &Value, context: &CallContext<'_>) -> Result<Request, Refusal> {
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    let body = Member::object(request, "")?;
    if context.script.strict {
        body.refuse_unknown(KNOWN)?;
    }
    parameters::check_sampling(&body, context.name)?;
    let streaming = parameters::streaming(&body)?;
    let messages = messages::read(&body, context.script.strict)?;
    let ToolSettings {
        tools,
        tool_use,
        legacy,
    } = tools::read(&body)?;
    let text_format = tools::read_format(&body)?;
    if context.script.strict {
        parameters::check_json_is_asked_for(&text_format, &messages.all_text)?;
    }
    let prompt = Prompt {
        system: messages.system,
        turns: messages.turns,
        tools,
        tool_use,
        parallel: body.flag("parallel_tool_calls")?.unwrap_or(true) && !legacy,
        text_format,
        effort: parameters::effort(&body, context.name)?,
        tokens_max: parameters::tokens_max(&body, context.name)?,
        stops: parameters::stops(&body)?,
        seed: body.integer("seed", i64::MIN, i64::MAX)?.unwrap_or(0),
        cache_key: body.text("prompt_cache_key")?.is_some(),
    };
    let choices = body.integer("n", 1, CHOICES_MAX)?.unwrap_or(1);
    Ok(Request {
        prompt,
        streaming,
        choices: usize::try_from(choices).unwrap_or(1),
        logprobs: parameters::logprobs(&body)?,
        audio: parameters::audio(&body)?,
        legacy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Script;
    use crate::model::Effort;
    use crate::seed::Seed;
    use serde_json::json;

    fn read_as(name: &str, script: &str, request: &Value) -> Result<Request, Refusal> {
        let mut parsed = Script::default();
        parsed.apply(script).unwrap();
        let context = CallContext {
            name,
            script: &parsed,
            seed: Seed::new(1),
            created: 0,
            true_usage: &std::cell::Cell::new(None),
        };
        read(request, &context)
    }

    /// A valid request, with some members replaced.
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
                Some("audio"),
                Some("missing_required_parameter"),
            ),
            (
                json!({"messages": [{"role": "user", "content": "hi"}], "response_format": {"type": "json_object"}}),
                Some("messages"),
                None,
            ),
        ] {
            let refusal = read_as("m", "strict", &request(&changes)).unwrap_err();
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
}
