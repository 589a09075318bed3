//! Upstreams that answer with a whole JSON document although a stream was requested (`docs/decisions/056`).

use serde_json::{Value, json};

use crate::harness::{
    CANNED_MODEL, CannedUpstream, Connection, GatewayBuilder, Request, SteppedUpstream, Streaming,
    ask, eventually, expected_cost, with,
};

fn completion(texts: &[&str], usage: &Value) -> String {
    let choices = texts.iter().enumerate().map(|(index, text)| {
        json!({ "index": index, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" })
    });
    json!({ "id": "x", "object": "chat.completion", "created": 7, "model": "up", "choices": choices.collect::<Value>(), "usage": usage }).to_string()
}

#[tokio::test]
async fn each_choice_of_a_whole_answer_is_streamed_and_charged() {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 700 });
    let canned = CannedUpstream::json(&completion(&["first", "second"], &usage)).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let body = with(
        ask("hello"),
        &json!({ "model": CANNED_MODEL, "n": 2, "stream": true }),
    );
    let (events, _) = gateway.stream(&key, &body).await.rest().await;
    assert!(events.last().unwrap().is_done());
    let deltas = events.iter().filter(|event| !event.is_done());
    let said: Vec<_> = deltas
        .map(|event| event.json()["choices"][0].clone())
        .filter(|choice| choice["delta"]["content"].is_string())
        .map(|choice| (choice["index"].clone(), choice["delta"]["content"].clone()))
        .collect();
    assert_eq!(
        said,
        [(json!(0), json!("first")), (json!(1), json!("second"))]
    );
    assert_eq!(gateway.usage(&key).await, expected_cost(&usage));
    gateway.verify().await;
}

/// S1 limits how much is read after the caller has left. A whole answer is an exception, because it has its usage at
/// its end.
#[tokio::test]
async fn a_large_whole_answer_is_heard_out_after_its_caller_has_left() {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 700 });
    let answer = completion(&[&"word ".repeat(200_000)], &usage);
    let (begin, rest) = answer.split_at(1000);
    let source = SteppedUpstream::start(vec![begin.to_owned(), rest.to_owned()]).await;
    let entries = format!(
        "[[channel]]
        name = \"stepped\"
        preset = \"sim\"
        base_url = \"http://{}/v1\"
        [[model]]
        id = \"{CANNED_MODEL}\"
        kind = \"text\"
        routes = [{{ channel = \"stepped\", model = \"up\" }}]
        price = {{ input = \"1.25\", cached_input = \"0.125\", output = \"10\" }}
        profile = {{ context_tokens = 400000, max_output_tokens = 128000 }}",
        source.address
    );
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "stream_keep_alive_ms = 50")
        .setting("timeouts", "client_gone_drain_ms = 60000")
        .entries(&entries)
        .funded()
        .await;
    let body = with(
        ask("hello"),
        &json!({ "model": CANNED_MODEL, "stream": true }),
    );
    let mut connection = Connection::open(gateway.address()).await;
    connection
        .send(&Request::chat(&body).bearer(&key.secret))
        .await;
    source.step();
    // The answer is not complete yet, so the caller gets only keep-alives.
    let head = connection.head().await.expect("an answer");
    assert_eq!(head.status, 200);
    Streaming::new(head, connection).leave();
    source.step();
    eventually("the settlement", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    assert_eq!(gateway.usage(&key).await, expected_cost(&usage));
    gateway.verify().await;
}
