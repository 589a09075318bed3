//! Properties of the two Google protocols for generated requests, and tests with hostile requests.

use crate::client::{KEY, call, get};
use crate::generate::harness as generate;
use crate::interactions::harness as interactions;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use sim::Sim;

const CASES: u32 = 48;

/// A request, independent of its protocol.
#[derive(Debug, Clone)]
struct GeneratedRequest {
    question: String,
    tokens_max: Option<u64>,
    stop: Option<String>,
    level: Option<&'static str>,
    thoughts: bool,
    tools: bool,
    model: &'static str,
}

fn any_asked() -> impl Strategy<Value = GeneratedRequest> {
    let question = prop_oneof![
        ".{1,60}",
        "(say exactly: |count to |reply with )[ -~]{0,40}",
        "(Explain )?[Ww]hat (is|are) the (weather|time)( and the (weather|time))? in [A-Z][a-z]{2,6}\\??",
    ];
    (
        question,
        prop::option::of(1_u64..40),
        prop::option::of("[a-z ,]{1,2}"),
        prop::option::of(prop::sample::select(vec!["low", "medium", "high"])),
        prop::bool::ANY,
        prop::bool::ANY,
        prop::sample::select(vec![
            "sim-chat",
            "sim-reason",
            "sim-chat+unsigned",
            "sim-image",
        ]),
    )
        .prop_map(
            |(question, tokens_max, stop, level, thoughts, tools, model)| GeneratedRequest {
                question,
                tokens_max,
                stop,
                level,
                thoughts,
                tools,
                model,
            },
        )
}

impl GeneratedRequest {
    fn stops(&self) -> Vec<&str> {
        self.stop.as_deref().into_iter().collect()
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {"city": {"type": "string"},
            "days": {"type": "integer", "minimum": 2}}, "required": ["city", "days"]})
    }

    fn generate(&self) -> Value {
        let declarations = ["get_weather", "get_time"]
            .map(|name| json!({"name": name, "parametersJsonSchema": Self::schema()}));
        json!({
            "contents": [{"parts": [{"text": self.question}]}],
            "tools": if self.tools { json!([{"functionDeclarations": declarations}]) } else { json!([]) },
            "generationConfig": {"maxOutputTokens": self.tokens_max, "stopSequences": self.stops(),
                "thinkingConfig": {"thinkingLevel": self.level, "includeThoughts": self.thoughts}},
        })
    }

    fn interactions(&self) -> Value {
        let functions = ["get_weather", "get_time"]
            .map(|name| json!({"type": "function", "name": name, "parameters": Self::schema()}));
        json!({
            "model": self.model, "input": self.question, "store": false,
            "tools": if self.tools { json!(functions) } else { json!([]) },
            "generation_config": {"max_output_tokens": self.tokens_max,
                "stop_sequences": self.stops(), "thinking_level": self.level,
                "thinking_summaries": if self.thoughts { "auto" } else { "none" }},
        })
    }
}

/// Joins consecutive texts of the same kind. Ids and signatures differ between calls, so the comparison only checks
/// that they exist.
fn joined(parts: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for part in parts {
        let mut part = part.clone();
        if let Some(call) = part.get_mut("functionCall") {
            assert!(call["id"].is_string());
            call["id"] = Value::Null;
        }
        if part.get("thoughtSignature").is_some() {
            part["thoughtSignature"] = json!("signed");
        }
        let (Some(text), Some(last)) = (part["text"].as_str(), all.last_mut()) else {
            all.push(part);
            continue;
        };
        if last["text"].is_string() && last["thought"] == part["thought"] {
            last["text"] = json!(last["text"].as_str().unwrap().to_owned() + text);
        } else if text.is_empty() {
            // The empty text at the end of a stream carries the signature of the part before it.
        } else {
            all.push(part);
            continue;
        }
        if part.get("thoughtSignature").is_some() {
            last["thoughtSignature"] = json!("signed");
        }
    }
    all
}

#[test]
fn a_folded_generate_stream_is_the_whole_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sim = runtime.block_on(Sim::start("127.0.0.1:0")).unwrap();
    let property = |generated: GeneratedRequest| {
        let request = generated.generate();
        let whole = runtime.block_on(generate::generate(&sim, generated.model, &request));
        prop_assert_eq!(whole.status, 200, "{}", whole.text());
        let whole = whole.json();
        let stream = runtime.block_on(generate::stream(&sim, generated.model, &request));
        let events = generate::events(&stream);
        let mut parts = Vec::new();
        let mut finishes = Vec::new();
        for event in &events {
            let candidate = &event["candidates"][0];
            let event_parts = candidate["content"]["parts"].as_array().unwrap();
            prop_assert!(
                !event_parts.is_empty(),
                "clients forget turns with an empty event"
            );
            parts.extend(event_parts.iter().cloned());
            finishes.extend(candidate.get("finishReason").cloned());
        }
        let candidate = &whole["candidates"][0];
        prop_assert_eq!(&finishes, &vec![candidate["finishReason"].clone()]);
        prop_assert_eq!(
            &events.last().unwrap()["usageMetadata"],
            &whole["usageMetadata"]
        );
        let whole_parts = candidate["content"]["parts"].as_array();
        let expected = joined(whole_parts.map_or(&[], Vec::as_slice));
        let mut folded = joined(&parts);
        // If an answer has only thoughts or nothing, the stream has one more empty text.
        folded.retain(|part| part["text"] != "");
        let bare = expected.iter().all(|part| part["thought"] == true);
        if bare && let Some(last) = folded.last_mut() {
            last.as_object_mut().unwrap().remove("thoughtSignature");
        }
        prop_assert_eq!(&folded, &expected);

        let usage = &whole["usageMetadata"];
        let figure = |name: &str| usage[name].as_u64().unwrap_or(0);
        let output = figure("candidatesTokenCount") + figure("thoughtsTokenCount");
        prop_assert_eq!(
            figure("totalTokenCount"),
            figure("promptTokenCount") + output
        );
        if let (Some(max), false) = (generated.tokens_max, generated.model == "sim-image") {
            prop_assert!(output <= max);
        }
        Ok(())
    };
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    runner.run(&any_asked(), property).unwrap();
}

/// Hides the values of ids and signatures. They differ between calls, so the comparison only checks that they exist.
fn blinded(steps: &[Value]) -> Vec<Value> {
    let mut steps = steps.to_vec();
    for step in &mut steps {
        for name in ["id", "signature"] {
            if step.get(name).is_some() {
                step[name] = json!("there");
            }
        }
    }
    steps
}

#[test]
fn a_folded_interactions_stream_is_the_whole_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sim = runtime.block_on(Sim::start("127.0.0.1:0")).unwrap();
    let property = |generated: GeneratedRequest| {
        let request = generated.interactions();
        let whole = runtime.block_on(interactions::interact(&sim, &request));
        prop_assert_eq!(whole.status, 200, "{}", whole.text());
        let whole = whole.json();
        let stream = runtime.block_on(interactions::stream(&sim, &request));
        let (steps, completed) = interactions::folded(&interactions::events(&stream));
        prop_assert_eq!(&completed["usage"], &whole["usage"]);
        prop_assert_eq!(&completed["status"], &whole["status"]);
        let whole_steps = whole["steps"].as_array().unwrap();
        prop_assert_eq!(blinded(&steps), blinded(whole_steps));
        let pending = whole_steps
            .iter()
            .any(|step| step["type"] == "function_call");
        if whole["status"] != "incomplete" {
            prop_assert_eq!(whole["status"] == "requires_action", pending);
        }
        let figure = |name: &str| whole["usage"][name].as_u64().unwrap();
        prop_assert_eq!(
            figure("total_tokens"),
            figure("total_input_tokens")
                + figure("total_output_tokens")
                + figure("total_thought_tokens")
        );
        Ok(())
    };
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    runner.run(&any_asked(), property).unwrap();
}

#[tokio::test]
async fn odd_json_is_refused() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let head = format!("x-goog-api-key: {KEY}\r\n");
    let deep = format!("{{\"contents\":{}", "[".repeat(100_000));
    for (path, bodies) in [
        (
            "/v1beta/models/m:generateContent",
            vec![
                "\u{ff}",
                "[]",
                "{}",
                "null",
                r#"{"contents":{}}"#,
                r#"{"contents":[null]}"#,
                r#"{"contents":[{"parts":[null]}]}"#,
                r#"{"contents":[{"parts":[{"text":7}]}]}"#,
                r#"{"contents":[{"parts":[{"functionCall":null}]}]}"#,
                r#"{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}"#,
                r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":[]}}]}]}"#,
                r#"{"contents":[{"parts":[{"text":"x"}]}],"tools":[null]}"#,
                r#"{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":[]}"#,
                r#"{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"topK":1e999}}"#,
                r#"{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":99999999999999999999}}"#,
                &deep,
            ],
        ),
        (
            "/v1/interactions",
            vec![
                "[]",
                "{}",
                r#"{"model":"m"}"#,
                r#"{"model":7,"input":"x"}"#,
                r#"{"model":"m","input":7}"#,
                r#"{"model":"m","input":[null]}"#,
                r#"{"model":"m","input":[[]]}"#,
                r#"{"model":"m","input":{"type":"thought","signature":1}}"#,
                r#"{"model":"m","input":[{"type":"function_call","id":1}]}"#,
                r#"{"model":"m","input":"x","tools":{}}"#,
                r#"{"model":"m","input":"x","response_format":7}"#,
                r#"{"model":"+++","input":"x"}"#,
            ],
        ),
    ] {
        for body in bodies {
            let answer = call(&sim, "POST", path, &head, body.as_bytes()).await;
            let shown: String = body.chars().take(80).collect();
            assert!((400..500).contains(&answer.status), "{path} {shown}");
            assert!(answer.json()["error"]["message"].is_string(), "{shown}");
        }
    }
    assert_eq!(get(&sim, "/v1/models").await.status, 200);
}

#[tokio::test]
async fn strange_texts_and_faults_of_text_pass() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for text in ["\u{2028}\u{85}", "\u{0}", "<a href='x'>&=</a>", "🦀 – 世界"] {
        let exact = format!("say exactly: x{text}y");
        let generated = json!({"contents": [{"parts": [{"text": exact}]}]});
        let answer = generate::stream(&sim, "sim-chat", &generated).await;
        assert!(!answer.text().contains(['\u{2028}', '\u{85}', '<', '\'']));
        let streamed: String = generate::events(&answer)
            .iter()
            .filter_map(|event| event["candidates"][0]["content"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(streamed, format!("x{text}y"));
        let generated = json!({"model": "sim-chat", "input": exact});
        let (steps, _) = interactions::folded(&interactions::events(
            &interactions::stream(&sim, &generated).await,
        ));
        assert_eq!(steps[1]["content"][0]["text"], format!("x{text}y"));
    }
    let generated = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    for streamed in [false, true] {
        let broken = "sim-chat+invalid-utf8";
        let huge = "sim-chat+huge-event=300000";
        let (broken, huge) = if streamed {
            (
                generate::stream(&sim, broken, &generated).await,
                generate::stream(&sim, huge, &generated).await,
            )
        } else {
            (
                generate::generate(&sim, broken, &generated).await,
                generate::generate(&sim, huge, &generated).await,
            )
        };
        assert!(std::str::from_utf8(&broken.body).is_err());
        assert!(huge.body.len() > 300_000);
        let generated = |faults: &str| json!({"model": format!("sim-chat+{faults}"), "input": "hi", "stream": streamed});
        let broken = interactions::interact(&sim, &generated("invalid-utf8")).await;
        assert!(std::str::from_utf8(&broken.body).is_err());
        let huge = interactions::interact(&sim, &generated("huge-event=300000")).await;
        assert!(huge.body.len() > 300_000);
    }
}
