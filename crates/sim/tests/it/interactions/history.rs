//! Tests histories of Interactions: thoughts, calls and results.

use super::harness::{asking, events, folded, interact, stream, tools, user};
use crate::client::{PIXEL, start, with};
use serde_json::{Value, json};

#[tokio::test]
async fn thoughts_calls_and_results_go_round() {
    let sim = start().await;
    let request = json!({"model": "sim-reason", "store": false, "tools": tools(),
        "generation_config": {"thinking_summaries": "auto", "thinking_level": "low"}});
    for streamed in [false, true] {
        let mut steps = vec![user("Explain: first the weather, then the time in Rome")];
        let mut names = Vec::new();
        for _ in 0..2 {
            let asked = with(request.clone(), json!({"input": steps}));
            let (answered, status) = if streamed {
                let (answered, completed) = folded(&events(&stream(&sim, &asked).await));
                (answered, completed["status"].clone())
            } else {
                let body = interact(&sim, &asked).await.json();
                let answered = body["steps"].as_array().unwrap().clone();
                (answered, body["status"].clone())
            };
            assert_eq!(status, "requires_action");
            let kinds: Vec<_> = answered
                .iter()
                .map(|step| step["type"].as_str().unwrap())
                .collect();
            assert_eq!(kinds, ["thought", "model_output", "function_call"]);
            assert!(answered[0]["summary"][0]["text"].as_str().unwrap().len() > 10);
            assert_eq!(answered[2]["arguments"], json!({"city": "Rome"}));
            names.push(answered[2]["name"].as_str().unwrap().to_owned());
            let id = answered[2]["id"].clone();
            steps.extend(answered);
            steps.push(json!({"type": "function_result", "call_id": id,
                "result": [{"type": "text", "text": "fine"}]}));
        }
        assert_eq!(names, ["get_weather", "get_time"]);
        let body = interact(&sim, &with(request.clone(), json!({"input": steps})))
            .await
            .json();
        assert_eq!(body["status"], "completed");
        assert!(body["usage"]["total_thought_tokens"].as_u64().unwrap() > 5);
        // The thought of the first step is still required.
        steps.remove(1);
        let answer = interact(&sim, &with(request.clone(), json!({"input": steps}))).await;
        assert_eq!(answer.status, 400);
    }
}

#[tokio::test]
async fn parallel_calls_share_one_thought() {
    let sim = start().await;
    let request = with(
        asking("sim-chat", "What are the weather and the time in Paris?"),
        json!({"tools": tools()}),
    );
    let body = interact(&sim, &request).await.json();
    let answered = body["steps"].as_array().unwrap();
    let kinds: Vec<_> = answered.iter().map(|step| &step["type"]).collect();
    assert_eq!(kinds, ["thought", "function_call", "function_call"]);
    let result = |call: &Value, result: Value| json!({"type": "function_result", "call_id": call["id"], "name": call["name"], "result": result});
    let mut steps = vec![user("What are the weather and the time in Paris?")];
    steps.extend(answered.iter().cloned());
    steps.push(result(
        &answered[1],
        json!([{"type": "text", "text": "see"},
        {"type": "image", "data": PIXEL, "mime_type": "image/png"}]),
    ));
    let mut failed = result(&answered[2], json!("no clock"));
    failed["is_error"] = json!(true);
    steps.push(failed);
    let next = with(request, json!({"input": steps}));
    let body = interact(&sim, &next).await.json();
    let text = body["steps"][1]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "The get_weather result is see. I received one 1x1 PNG image of 70 bytes. \
         The get_time call failed: no clock."
    );
}

#[tokio::test]
async fn signed_thoughts_must_come_back_unaltered() {
    let sim = start().await;
    let request = with(
        asking("sim-chat", "The weather in Paris"),
        json!({"tools": tools()}),
    );
    let body = interact(&sim, &request).await.json();
    let (thought, made) = (&body["steps"][0], &body["steps"][1]);
    let signature = thought["signature"].as_str().unwrap();
    let altered = signature.replacen("++", "+A", 1);
    let result = json!({"type": "function_result", "call_id": made["id"], "result": {"ok": true}});
    let invalid = "Request contains an invalid argument.";
    for (model, signature, status, part) in [
        ("sim-chat", json!(signature), 200, "{\\\"ok\\\":true}"),
        (
            "sim-chat",
            json!("skip_thought_signature_validator"),
            200,
            "ok",
        ),
        (
            "sim-chat",
            json!("context_engineering_is_the_way_to_go"),
            200,
            "ok",
        ),
        ("sim-chat", json!(""), 400, invalid),
        ("sim-chat", Value::Null, 400, invalid),
        (
            "sim-chat",
            json!(altered),
            400,
            "Corrupted thought signature.",
        ),
        (
            "sim-mini",
            json!(signature),
            400,
            "Corrupted thought signature.",
        ),
        ("sim-chat+unsigned", Value::Null, 200, "ok"),
    ] {
        let thought = json!({"type": "thought", "signature": signature});
        let next = json!({"model": model, "tools": tools(),
            "input": [user("The weather in Paris"), thought, made, result]});
        let answer = interact(&sim, &next).await;
        assert_eq!(answer.status, status, "{model} {signature}");
        assert!(answer.text().contains(part), "{}", answer.text());
        // In a stream, an error that the model detects is sent as an event, but the HTTP status is that of the error,
        // not 200.
        let streamed = stream(&sim, &next).await;
        assert_eq!(streamed.status, status, "{model} {signature}");
        if status == 400 {
            assert_eq!(
                streamed.header("content-type"),
                Some("text/event-stream; charset=utf-8")
            );
            assert_eq!(events(&streamed)[0]["error"]["message"], part);
        }
    }
    // Calls of earlier turns do not need thoughts.
    let next = json!({"model": "sim-chat", "input": [user("a"), made, result, user("b")]});
    assert_eq!(interact(&sim, &next).await.status, 200);
}
