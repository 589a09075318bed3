//! Tests refusals and faults of Interactions.

use super::harness::{asking, events, folded, interact, stream, tools, user};
use crate::client::{Answer, Ended, call, start, with};
use serde_json::json;
use sim::Sim;

#[tokio::test]
async fn wrong_requests_are_refused() {
    let sim = start().await;
    let call = json!({"type": "function_call", "id": "a", "name": "f", "arguments": {}});
    let skip = json!({"type": "thought", "signature": "skip_thought_signature_validator"});
    let result = |id: &str| json!({"type": "function_result", "call_id": id, "result": "x"});
    for (members, status, code) in [
        (json!({"model": null}), 400, "invalid_request"),
        (json!({"model": "missing-x"}), 404, "model_not_found"),
        (json!({"input": null}), 400, "invalid_request"),
        (json!({"input": ""}), 400, "invalid_request"),
        (json!({"input": []}), 400, "invalid_request"),
        (json!({"input": [{"type": "poem"}]}), 400, "invalid_request"),
        (
            json!({"input": [{"role": "user", "content": "x"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [{"type": "image"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), skip, call]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), skip, call, user("y")]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), skip, call, result("b")]}),
            400,
            "invalid_request",
        ),
        (
            json!({"input": [user("x"), result("a")]}),
            400,
            "invalid_request",
        ),
        (json!({"tool_choice": "auto"}), 400, "parameter_unknown"),
        (json!({"max_output_tokens": 5}), 400, "parameter_unknown"),
        (
            json!({"generation_config": {"top_k": 5}}),
            400,
            "parameter_unknown",
        ),
        (
            json!({"system_instruction": {"parts": []}}),
            400,
            "invalid_request",
        ),
        (json!({"previous_interaction_id": "v1_x"}), 404, "not_found"),
        (json!({"background": true}), 400, "invalid_request"),
        (
            json!({"tools": [{"type": "custom"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a b"}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"generation_config": {"tool_choice": "any"}}),
            400,
            "invalid_request",
        ),
        (json!({"model": "sim-chat+nonsense"}), 400, "sim_bad_script"),
    ] {
        let answer = interact(&sim, &with(asking("sim-chat", "hi"), members.clone())).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &json!(code)),
            "{members}"
        );
        assert!(answer.json()["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn keys_paths_and_bodies_are_checked() {
    let sim = start().await;
    let unread = call_raw(&sim, "/v1/interactions", "x-goog-api-key: k\r\n", b"[").await;
    assert_eq!(unread.status, 400);
    for (head, status, code) in [
        ("", 403, "authentication"),
        ("x-goog-api-key: sim-bad-key\r\n", 400, "authentication"),
        (
            "authorization: Bearer sim-poor-key\r\n",
            429,
            "quota_exceeded",
        ),
    ] {
        let body = asking("sim-chat", "hi").to_string();
        let answer = call_raw(&sim, "/v1/interactions", head, body.as_bytes()).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &json!(code))
        );
    }
    let lost = call_raw(
        &sim,
        "/v1beta/interactions/v1_x/cancel",
        "x-goog-api-key: k\r\n",
        b"",
    )
    .await;
    assert_eq!(
        (lost.status, &lost.json()["error"]["code"]),
        (404, &json!("not_found"))
    );
}

async fn call_raw(sim: &Sim, path: &str, head: &str, body: &[u8]) -> Answer {
    call(sim, "POST", path, head, body).await
}

#[tokio::test]
async fn scripts_bend_answers_and_streams() {
    let sim = start().await;
    let faulty = |faults: &str| asking(&format!("sim-chat+{faults}"), "Count to 20");
    let answer = interact(&sim, &faulty("status=429:retry-after=7")).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(answer.json()["error"]["code"], "rate_limit_exceeded");
    let answer = interact(&sim, &faulty("error-in-200")).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (200, &json!("api_error"))
    );
    let shown = events(&stream(&sim, &faulty("error-in-200")).await);
    assert_eq!(shown[0]["error"]["code"], "api_error");
    assert_eq!(interact(&sim, &faulty("empty-object")).await.text(), "{}");
    assert_eq!(
        stream(&sim, &faulty("empty-object")).await.text(),
        "data: {}\n\nevent: done\ndata: [DONE]\n\n"
    );
    assert_eq!(
        stream(&sim, &faulty("wrong-type=swapped")).await.json()["object"],
        "interaction"
    );
    assert!(events(&interact(&sim, &faulty("wrong-type=swapped")).await).len() > 10);

    let answer = stream(&sim, &faulty("error-event=3")).await;
    let shown = events(&answer);
    assert_eq!(shown.last().unwrap()["event_type"], "error");
    assert!(!answer.text().contains("[DONE]"));
    let shown = events(&stream(&sim, &faulty("garbage-event=2")).await);
    assert_eq!(shown.iter().filter(|event| event.is_string()).count(), 1);
    let answer = stream(&sim, &faulty("no-done")).await;
    assert!(answer.text().contains("interaction.completed") && !answer.text().contains("[DONE]"));
    let answer = stream(&sim, &faulty("no-finish")).await;
    assert!(!answer.text().contains("interaction.completed") && !answer.text().contains("[DONE]"));
    assert_eq!(answer.ended, Ended::Whole);

    let whole = interact(&sim, &faulty("finish=cancelled")).await.json();
    assert_eq!(whole["status"], "cancelled");
    let whole = interact(&sim, &faulty("blocked")).await.json();
    assert_eq!(
        (&whole["status"], &whole["errors"][0]["code"]),
        (&json!("failed"), &json!("safety"))
    );
    let whole = interact(&sim, &faulty("content-filter")).await.json();
    assert_eq!(whole["status"], "incomplete");
    assert!(whole["steps"][1]["error"]["message"].is_string());
    for (faults, total) in [
        ("usage=zero", json!(0)),
        ("usage=negative", json!(-5)),
        ("usage=string", json!("49")),
        ("tool-use=7", json!(56)),
    ] {
        let whole = interact(&sim, &faulty(faults)).await.json();
        assert_eq!(whole["usage"]["total_tokens"], total, "{faults}");
        let (_, completed) = folded(&events(&stream(&sim, &faulty(faults)).await));
        assert_eq!(completed["usage"]["total_tokens"], total, "{faults}");
    }
    assert!(
        !stream(&sim, &faulty("no-usage"))
            .await
            .text()
            .contains("total_tokens")
    );
    let shown = events(&stream(&sim, &faulty("usage=running")).await);
    let running = shown
        .iter()
        .filter(|event| event["metadata"]["total_usage"].is_object());
    assert!(running.count() > 10);
    let answer = stream(&sim, &faulty("cut=100")).await;
    assert_eq!((answer.body.len(), answer.ended), (100, Ended::Closed));

    let early = with(
        asking(
            "sim-chat+early-content",
            "Explain, then get the weather in Paris",
        ),
        json!({"tools": tools()}),
    );
    let shown = events(&stream(&sim, &early).await);
    let starts: Vec<_> = shown
        .iter()
        .filter(|event| event["event_type"] == "step.start")
        .map(|event| &event["step"])
        .collect();
    assert_eq!(starts[1]["content"][0]["text"], "Let");
    assert_eq!(starts[2]["arguments"], json!({"city": "Paris"}));
    let (steps, _) = folded(&shown);
    assert_eq!(
        steps[1]["content"][0]["text"],
        "Let me look that up for you."
    );
}
