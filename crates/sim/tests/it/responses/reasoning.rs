//! Tests reasoning in histories of the Responses protocol.

use super::harness::{request, tools};
use crate::client::{responses, start};
use serde_json::{Value, json};

#[tokio::test]
async fn reasoning_is_taken_back_as_it_was_given() {
    let sim = start().await;
    let question = json!({"role": "user", "content": "What is the weather in Paris?"});
    let ask = |items: &[Value]| {
        let mut input = vec![question.clone()];
        input.extend_from_slice(items);
        let changes = json!({"model": "sim-reason", "tools": tools()});
        request(json!(input), changes)
    };
    let first = responses(&sim, &ask(&[])).await.json();
    let items = first["output"].as_array().unwrap().clone();
    let [thought, call] = &items[..] else {
        panic!("reasoning and a call: {items:?}");
    };
    let result =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "18"});
    let with = |item: &Value, member: &str, value: Value| {
        let mut item = item.clone();
        item[member] = value;
        item
    };
    let nameless = with(thought, "id", Value::Null);
    let bare = with(call, "id", Value::Null);
    let sealed = thought["encrypted_content"].as_str().unwrap();
    let altered = with(
        thought,
        "encrypted_content",
        json!(sealed.replacen('+', "-", 1)),
    );
    let empty = with(thought, "encrypted_content", Value::Null);
    let renamed = with(thought, "id", json!("rs_other"));
    for (items, status, part) in [
        (vec![thought, call, &result], 200, ""),
        (vec![&nameless, call, &result], 200, ""),
        (vec![&bare, &result], 200, ""),
        (
            vec![call, &result],
            400,
            "without its required 'reasoning' item",
        ),
        (vec![&altered, call, &result], 400, "could not be decrypted"),
        (vec![&renamed, call, &result], 400, "did not match"),
        (vec![&empty, call, &result], 404, "not persisted"),
        (
            vec![&bare, &result, thought],
            400,
            "required following item",
        ),
        (vec![thought, call], 400, "No tool output found"),
        (vec![&result], 400, "No tool call found"),
    ] {
        let items: Vec<_> = items.into_iter().cloned().collect();
        let answer = responses(&sim, &ask(&items)).await;
        let text = answer.text();
        assert!(
            answer.status == status && text.contains(part),
            "{part}: {text}"
        );
    }
    let mut demanding = ask(&[bare, result]);
    demanding["model"] = json!("sim-reason+demand-reasoning");
    assert_eq!(responses(&sim, &demanding).await.status, 400);
    let mut other = ask(&items);
    other["model"] = json!("sim-reason-2");
    assert_eq!(
        responses(&sim, &other).await.json()["error"]["code"],
        "invalid_encrypted_content"
    );
}

#[tokio::test]
async fn encrypted_reasoning_comes_when_asked_for_or_nothing_is_stored() {
    let sim = start().await;
    for (changes, expected) in [
        (json!({"store": true}), false),
        (json!({"store": null}), false),
        (json!({"store": false}), true),
        (
            json!({"store": true, "include": ["reasoning.encrypted_content"]}),
            true,
        ),
    ] {
        let mut asked = request("Hi", changes);
        asked["model"] = json!("sim-reason");
        let response = responses(&sim, &asked).await.json();
        let given = response["output"][0]["encrypted_content"].is_string();
        assert_eq!(given, expected, "{asked}");
        assert_eq!(response["store"], asked["store"].as_bool().unwrap_or(true));
    }
}

#[tokio::test]
async fn interleaved_reasoning_stands_before_its_calls() {
    let sim = start().await;
    let question = json!({"role": "user", "content": "Weather and time in Paris"});
    let changes = json!({"model": "sim-reason+interleaved+demand-reasoning", "tools": tools()});
    let ask = |items: Vec<Value>| request(json!(items), changes.clone());
    let first = responses(&sim, &ask(vec![question.clone()])).await.json();
    let items = first["output"].as_array().unwrap();
    let kinds: Vec<_> = items.iter().map(|item| &item["type"]).collect();
    assert_eq!(
        kinds,
        ["reasoning", "function_call", "reasoning", "function_call"]
    );
    let result = |call: &Value| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "18"});
    let results = [result(&items[1]), result(&items[3])];
    for (order, status) in [
        (vec![0, 1, 2, 3], 200),
        (vec![0, 1, 3], 400),
        (vec![2, 1, 3], 400),
    ] {
        let mut input = vec![question.clone()];
        input.extend(order.iter().map(|at: &usize| items[*at].clone()));
        input.extend(results.clone());
        assert_eq!(
            responses(&sim, &ask(input)).await.status,
            status,
            "{order:?}"
        );
    }
}
