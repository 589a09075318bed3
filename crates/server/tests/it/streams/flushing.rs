//! S6: each upstream event is flushed on arrival, through every pair of dialects.

use serde_json::{Value, json};

use crate::harness::{
    Connection, Dialect, GatewayBuilder, SteppedUpstream, Streaming, model_via, pairs,
};

const WORDS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// The upstream sends each word only after the caller has seen the previous one. If the gateway held an event back, the
/// test would time out.
#[tokio::test]
async fn no_event_waits_for_the_next() {
    for (caller, upstream) in pairs() {
        let source = SteppedUpstream::start(stream(upstream)).await;
        let address = source.address.to_string();
        let builder = GatewayBuilder::default().upstream(upstream, &address, "any");
        let (gateway, key) = builder.funded().await;
        let mut connection = Connection::open(gateway.address()).await;
        let request = caller.call(&key.secret, &model_via(upstream), caller.ask("go"), true);
        connection.send(&request).await;
        // Send the opening events and the first word.
        source.step();
        source.step();
        let head = connection.head().await.expect("an answer");
        assert_eq!(head.status, 200, "{caller:?} by {upstream:?}");
        let mut answer = Streaming::new(head, connection);
        for word in WORDS {
            loop {
                let event = answer.next().await;
                let event = event
                    .unwrap_or_else(|| panic!("{caller:?} by {upstream:?} ended before {word}"));
                if event.data.contains(word) {
                    break;
                }
            }
            // Send the next word, or the closing events.
            source.step();
        }
        answer.rest().await;
    }
}

/// A stream of the dialect: the opening, one piece for each word, and the closing.
fn stream(dialect: Dialect) -> Vec<String> {
    let mut pieces = vec![opening(dialect)];
    pieces.extend(WORDS.map(|word| written(dialect, &[word_event(dialect, word)])));
    pieces.push(closing(dialect));
    pieces
}

fn opening(dialect: Dialect) -> String {
    let events = match dialect {
        Dialect::Chat => vec![chat(
            &json!({ "role": "assistant", "content": "" }),
            &Value::Null,
        )],
        Dialect::Responses => vec![
            json!({ "type": "response.created", "sequence_number": 0, "response": response("in_progress", &json!([])) }),
            json!({ "type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
                "item": { "type": "message", "id": "msg_1", "status": "in_progress", "role": "assistant", "content": [] } }),
            json!({ "type": "response.content_part.added", "sequence_number": 2, "output_index": 0, "item_id": "msg_1",
                "content_index": 0, "part": { "type": "output_text", "text": "", "annotations": [], "logprobs": [] } }),
        ],
        Dialect::Messages => vec![
            json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
                "model": "any", "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        ],
        // The first chunk of Generate Content already has content.
        Dialect::Generate => vec![],
        Dialect::Interactions => vec![
            json!({ "event_type": "interaction.created",
                "interaction": { "id": "", "object": "interaction", "model": "any", "status": "in_progress" } }),
            json!({ "event_type": "step.start", "index": 0, "step": { "type": "model_output" } }),
        ],
    };
    written(dialect, &events)
}

fn word_event(dialect: Dialect, word: &str) -> Value {
    match dialect {
        Dialect::Chat => chat(&json!({ "content": word }), &Value::Null),
        Dialect::Responses => {
            json!({ "type": "response.output_text.delta", "sequence_number": 3, "output_index": 0,
            "item_id": "msg_1", "content_index": 0, "delta": word, "logprobs": [] })
        }
        Dialect::Messages => json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": word } }),
        Dialect::Generate => candidate(word, &json!({})),
        Dialect::Interactions => json!({ "event_type": "step.delta", "index": 0,
            "delta": { "type": "text", "text": word } }),
    }
}

fn closing(dialect: Dialect) -> String {
    let said = WORDS.concat();
    match dialect {
        Dialect::Chat => {
            let mut last = chat(&json!({}), &"stop".into());
            last["usage"] =
                json!({ "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 });
            written(dialect, &[last]) + "data: [DONE]\n\n"
        }
        Dialect::Responses => {
            let part =
                json!({ "type": "output_text", "text": said, "annotations": [], "logprobs": [] });
            let item = json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part] });
            written(
                dialect,
                &[
                    json!({ "type": "response.output_text.done", "sequence_number": 4, "output_index": 0,
                        "item_id": "msg_1", "content_index": 0, "text": said, "logprobs": [] }),
                    json!({ "type": "response.content_part.done", "sequence_number": 5, "output_index": 0,
                        "item_id": "msg_1", "content_index": 0, "part": part }),
                    json!({ "type": "response.output_item.done", "sequence_number": 6, "output_index": 0, "item": item }),
                    json!({ "type": "response.completed", "sequence_number": 7, "response": response("completed", &json!([item])) }),
                ],
            )
        }
        Dialect::Messages => written(
            dialect,
            &[
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                    "usage": { "output_tokens": 4 } }),
                json!({ "type": "message_stop" }),
            ],
        ),
        Dialect::Generate => {
            let usage =
                json!({ "promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7 });
            written(
                dialect,
                &[candidate("", &json!({ "usageMetadata": usage }))],
            )
        }
        Dialect::Interactions => {
            let usage =
                json!({ "total_input_tokens": 3, "total_output_tokens": 4, "total_tokens": 7 });
            written(
                dialect,
                &[
                    json!({ "event_type": "step.stop", "index": 0 }),
                    json!({ "event_type": "interaction.completed", "interaction": { "id": "",
                        "object": "interaction", "model": "any", "status": "completed", "usage": usage } }),
                ],
            ) + "event: done\ndata: [DONE]\n\n"
        }
    }
}

fn chat(delta: &Value, finish: &Value) -> Value {
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "any",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn response(status: &str, output: &Value) -> Value {
    json!({ "id": "resp_1", "object": "response", "created_at": 1, "model": "any", "status": status,
        "output": output, "usage": { "input_tokens": 3, "output_tokens": 4, "total_tokens": 7 } })
}

fn candidate(text: &str, more: &Value) -> Value {
    let mut candidate =
        json!({ "content": { "role": "model", "parts": [{ "text": text }] }, "index": 0 });
    if more.get("usageMetadata").is_some() {
        candidate["finishReason"] = "STOP".into();
    }
    crate::harness::with(
        json!({ "candidates": [candidate], "modelVersion": "any", "responseId": "r" }),
        more,
    )
}

/// Events in the framing of the dialect.
fn written(dialect: Dialect, events: &[Value]) -> String {
    let framed = |event: &Value| {
        let name = event.get("type").or_else(|| event.get("event_type"));
        match (dialect, name.and_then(Value::as_str)) {
            (Dialect::Chat | Dialect::Generate, _) | (_, None) => format!("data: {event}\n\n"),
            (_, Some(name)) => format!("event: {name}\ndata: {event}\n\n"),
        }
    };
    events.iter().map(framed).collect()
}
