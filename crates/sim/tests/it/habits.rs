//! Tests habits of real upstreams: correct answers in a form that the documentation does not show.

use crate::client::{Answer, chat, post, responses, start};
use serde_json::{Value, json};
use sim::Sim;

async fn respond(sim: &Sim, habits: &str) -> Answer {
    let model = format!("sim-reason+{habits}");
    let request = json!({"model": model, "input": "Count to 3", "stream": true,
        "reasoning": {"summary": "auto"}});
    responses(sim, &request).await
}

/// The data of each event, with or without a name.
fn data(answer: &Answer) -> Vec<Value> {
    let lines = answer.text().lines();
    lines
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|data| data["type"].as_str())
        .collect()
}

#[tokio::test]
async fn members_are_left_out_wherever_they_stand() {
    let sim = start().await;
    let names = ["sequence_number", "output_index", "content_index"];
    let plain = respond(&sim, "").await;
    let bare = respond(&sim, &format!("without={}", names.join(","))).await;
    for name in names {
        assert!(plain.text().contains(name), "{name}");
        assert!(!bare.text().contains(name), "{name}");
    }
    assert!(bare.text().contains("item_id"));
    assert_eq!(types(&data(&bare)), types(&data(&plain)));

    let request = json!({"contents": [{"parts": [{"text": "Count to 3"}]}]}).to_string();
    for method in ["generateContent", "streamGenerateContent?alt=sse"] {
        let path = format!("/v1beta/models/sim-chat+without=modelVersion:{method}");
        let answer = post(&sim, &path, &request).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("modelVersion"), "{method}");
        assert!(answer.text().contains("usageMetadata"), "{method}");
    }
}

#[tokio::test]
async fn event_lines_are_left_out() {
    let sim = start().await;
    let plain = respond(&sim, "").await;
    let bare = respond(&sim, "no-event-lines").await;
    assert!(!bare.text().contains("event:"));
    assert_eq!(types(&data(&bare)), types(&data(&plain)));
}

#[tokio::test]
async fn done_events_come_together_before_the_last_event() {
    let sim = start().await;
    let events = data(&respond(&sim, "late-done").await);
    let types = types(&events);
    let is_done = |name: &&str| name.rsplit('.').next() == Some("done");
    let first = types.iter().position(is_done).unwrap();
    let (last, done) = types[first..].split_last().unwrap();
    assert_eq!(*last, "response.completed");
    assert!(done.len() > 2 && done.iter().all(is_done));
    let numbers = events.iter().map(|data| data["sequence_number"].as_u64());
    assert!(numbers.eq((0..events.len()).map(|number| Some(number as u64))));
}

#[tokio::test]
async fn the_last_event_of_an_interaction_is_flat() {
    let sim = start().await;
    let request = json!({"model": "sim-chat+flat-end", "input": "Count to 3", "stream": true});
    let answer = post(&sim, "/v1beta/interactions", &request.to_string()).await;
    let events = data(&answer);
    let last = events.last().unwrap();
    assert_eq!(last["event_type"], "interaction.completed");
    assert_eq!(last["status"], "completed");
    assert!(last["usage"].is_object() && last["interaction"].is_null());
}

#[tokio::test]
async fn usage_comes_with_a_cost_and_an_empty_choice() {
    let sim = start().await;
    let request = json!({"model": "sim-chat+usage=costed", "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "Count to 3"}]});
    let chunks = chat(&sim, &request).await.chunk_values();
    let last = chunks.last().unwrap();
    assert!(last["usage"]["cost"].is_f64());
    assert_eq!(last["choices"][0]["delta"]["content"], "");
    assert!(last["choices"][0]["finish_reason"].is_null());
}

#[tokio::test]
async fn refusals_come_in_the_words_of_each_vendor() {
    let sim = start().await;
    let no_such_model = sim::no_such_model_vendors().map(|vendor| ("no-such-model", vendor));
    let overflow = sim::context_overflow_vendors().map(|vendor| ("context-overflow", vendor));
    for (part, vendor) in no_such_model.chain(overflow) {
        for stream in [false, true] {
            let request = json!({"model": format!("sim-chat+{part}={vendor}"), "stream": stream,
                "messages": [{"role": "user", "content": "Hello"}]});
            let answer = chat(&sim, &request).await;
            assert!([400, 404].contains(&answer.status), "{part} {vendor}");
            assert!(answer.json().is_object(), "{part} {vendor}");
            assert!(!answer.text().contains("{model}"), "{part} {vendor}");
        }
    }
}
