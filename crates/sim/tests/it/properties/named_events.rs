//! Properties of Responses and Messages for generated requests.

use crate::client::{messages, responses};
use crate::messages::harness as ms;
use crate::responses::harness as rs;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use sim::Sim;

#[derive(Debug, Clone)]
struct GeneratedRequest {
    question: String,
    tokens_max: u64,
    tools: bool,
    effort: Option<&'static str>,
    summary: Option<&'static str>,
    interleaved: bool,
}

fn any_asked() -> impl Strategy<Value = GeneratedRequest> {
    let question = prop_oneof![
        "[ -~]{0,40}[a-z]",
        "(say exactly: |count to |reply with )?[ -~]{0,30}[a-z]",
        "(Explain. )?What (is|are) the (weather|time)( and the (weather|time))? in [A-Z][a-z]{2,6}\\??",
    ];
    (
        question,
        16_u64..300,
        prop::bool::ANY,
        prop::option::of(prop::sample::select(vec!["low", "medium", "max"])),
        prop::option::of(prop::sample::select(vec!["auto", "detailed"])),
        prop::bool::ANY,
    )
        .prop_map(
            |(question, tokens_max, tools, effort, summary, interleaved)| GeneratedRequest {
                question,
                tokens_max,
                tools,
                effort,
                summary,
                interleaved,
            },
        )
}

impl GeneratedRequest {
    fn model(&self) -> String {
        let interleaved = if self.interleaved { "+interleaved" } else { "" };
        format!("sim-chat+demand-reasoning{interleaved}")
    }

    fn of_responses(&self) -> Value {
        let question = json!([{"role": "user", "content": self.question}]);
        let mut generated = rs::request(
            question,
            json!({"model": self.model(),
            "max_output_tokens": self.tokens_max,
            "reasoning": {"effort": self.effort, "summary": self.summary}}),
        );
        if self.tools {
            generated["tools"] = rs::tools();
        }
        generated
    }

    fn of_messages(&self) -> Value {
        let mut generated = ms::request(
            &self.question,
            json!({"model": self.model(),
            "max_tokens": self.tokens_max}),
        );
        if let Some(effort) = self.effort {
            generated["thinking"] = json!({"type": "adaptive"});
            generated["output_config"] = json!({"effort": effort});
        }
        if self.tools {
            generated["tools"] = ms::weather_tools();
        }
        generated
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Checks a property with a simulator of its own.
fn holds(property: &impl AsyncFn(&Sim, &GeneratedRequest) -> Result<(), TestCaseError>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sim = runtime.block_on(Sim::start("127.0.0.1:0")).unwrap();
    TestRunner::new(Config::with_cases(64))
        .run(&any_asked(), |generated| {
            runtime.block_on(property(&sim, &generated))
        })
        .unwrap();
}

#[test]
fn a_responses_stream_is_its_answer_and_goes_on() {
    holds(&async |sim: &Sim, generated: &GeneratedRequest| {
        let mut request = generated.of_responses();
        let whole = responses(sim, &request).await.json();
        request["stream"] = json!(true);
        let events = responses(sim, &request).await.named_events();
        prop_assert_eq!(
            rs::without_ids(&rs::folded(&events)),
            rs::without_ids(&whole)
        );

        let usage = &whole["usage"];
        let output = number(&usage["output_tokens"]);
        prop_assert!(output <= generated.tokens_max);
        prop_assert!(number(&usage["output_tokens_details"]["reasoning_tokens"]) <= output);
        prop_assert_eq!(
            number(&usage["total_tokens"]),
            number(&usage["input_tokens"]) + output
        );

        // The output can be sent back unchanged.
        let items = whole["output"].as_array().unwrap();
        if whole["status"] == "completed" {
            let input = request["input"].as_array_mut().unwrap();
            input.extend(items.iter().cloned());
            for call in items.iter().filter(|item| item["call_id"].is_string()) {
                let kind = format!("{}_output", call["type"].as_str().unwrap());
                input.push(json!({"type": kind, "call_id": call["call_id"], "output": "ok"}));
            }
            input.push(json!({"role": "user", "content": "Go on."}));
            let answer = responses(sim, &request).await;
            prop_assert!(answer.status == 200, "{}", answer.text());
        }
        Ok(())
    });
}

#[test]
fn a_messages_stream_is_its_answer_and_goes_on() {
    holds(&async |sim: &Sim, generated: &GeneratedRequest| {
        let mut request = generated.of_messages();
        let whole = messages(sim, &request).await.json();
        request["stream"] = json!(true);
        let events = messages(sim, &request).await.named_events();
        prop_assert_eq!(
            ms::without_ids(&ms::folded(&events)),
            ms::without_ids(&whole)
        );

        let usage = &whole["usage"];
        let output = number(&usage["output_tokens"]);
        prop_assert!(output <= generated.tokens_max);
        prop_assert!(number(&usage["output_tokens_details"]["thinking_tokens"]) <= output);

        let blocks = whole["content"].as_array().unwrap();
        let blank = |block: &Value| {
            block["text"]
                .as_str()
                .is_some_and(|text| text.trim().is_empty())
        };
        if !blocks.is_empty() && !blocks.iter().any(blank) {
            let mut next: Vec<Value> = blocks
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"]}))
                .collect();
            next.push(json!({"type": "text", "text": "Go on."}));
            let list = request["messages"].as_array_mut().unwrap();
            list.push(json!({"role": "assistant", "content": blocks}));
            list.push(json!({"role": "user", "content": next}));
            let answer = messages(sim, &request).await;
            prop_assert!(answer.status == 200, "{}", answer.text());
        }
        Ok(())
    });
}
