//! Tests thinking blocks in histories of the Messages protocol.

use super::harness::{continued, request, weather_tools};
use crate::client::{messages, start};
use serde_json::{Value, json};

fn result(call: &Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": call["id"], "content": "18 degrees"})
}

#[tokio::test]
async fn a_thinking_tool_loop_goes_on_only_with_its_thoughts() {
    let sim = start().await;
    let question = "What is the weather in Paris?";
    for (mode, script) in [
        (json!({"type": "enabled", "budget_tokens": 1024}), ""),
        (json!({"type": "adaptive"}), "+demand-reasoning"),
        (
            json!({"type": "adaptive", "display": "omitted"}),
            "+demand-reasoning",
        ),
        (json!({"type": "adaptive"}), "+demand-reasoning+redacted"),
    ] {
        let model = format!("sim-chat{script}");
        let changes = json!({"model": model, "thinking": mode, "tools": weather_tools()});
        let first = messages(&sim, &request(question, changes.clone()))
            .await
            .json();
        assert_eq!(first["stop_reason"], "tool_use", "{first}");
        let [thought, call] = &first["content"].as_array().unwrap()[..] else {
            panic!("a thought and a call: {first}");
        };
        let go_on = |blocks: Vec<Value>| {
            let mut asked = request(question, changes.clone());
            asked["messages"] = continued(question, &json!(blocks), &[result(call)]);
            asked
        };
        let whole = go_on(vec![thought.clone(), call.clone()]);
        let answer = messages(&sim, &whole).await.json();
        let text = answer["content"][1]["text"].as_str();
        assert_eq!(text, Some("The get_weather result is 18 degrees."));

        let lost = messages(&sim, &go_on(vec![call.clone()])).await;
        assert_eq!(lost.status, 400, "{mode}{script}");
        let opaque = ["signature", "data"]
            .into_iter()
            .find(|name| thought[*name].is_string());
        let mut altered = thought.clone();
        let sealed = altered[opaque.unwrap()].as_str().unwrap();
        altered[opaque.unwrap()] = json!(sealed.replacen('/', "_", 1));
        let refused = messages(&sim, &go_on(vec![altered, call.clone()])).await;
        assert_eq!(refused.status, 400, "{mode}{script}");

        // A valid thought of another turn does not replace the thought before the call.
        let other = request("What is the weather in Rome?", changes.clone());
        let other = messages(&sim, &other).await.json();
        let strange = go_on(vec![other["content"][0].clone(), call.clone()]);
        let refusal = messages(&sim, &strange).await;
        assert!(refusal.status == 400 && refusal.text().contains("cannot be modified"));

        // A thought is refused if another model created it.
        let mut elsewhere = whole;
        elsewhere["model"] = json!("sim-mini");
        let refusal = messages(&sim, &elsewhere).await;
        assert!(
            refusal.status == 400 && refusal.text().contains("Invalid `"),
            "{}",
            refusal.text()
        );
    }
}

#[tokio::test]
async fn interleaved_thoughts_must_come_back_in_their_order() {
    let sim = start().await;
    let question = "Weather and time in Paris";
    let changes = json!({"model": "sim-chat+interleaved", "thinking": {"type": "adaptive"},
        "tools": weather_tools()});
    let mut asked = request(question, changes);
    let first = messages(&sim, &asked).await.json();
    let blocks = first["content"].as_array().unwrap();
    let kinds: Vec<_> = blocks.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "tool_use", "thinking", "tool_use"]);
    let results = [result(&blocks[1]), result(&blocks[3])];
    for (order, status) in [
        ([0, 1, 2, 3], 200),
        ([2, 1, 0, 3], 400),
        ([0, 1, 3, 2], 400),
    ] {
        let content = json!(order.map(|at: usize| blocks[at].clone()));
        asked["messages"] = continued(question, &content, &results);
        assert_eq!(messages(&sim, &asked).await.status, status, "{order:?}");
    }
}

#[tokio::test]
async fn thoughts_are_asked_for_only_while_thinking() {
    let sim = start().await;
    let question = "What is the weather in Paris?";
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}});
    let mut asked = request(question, json!({"tools": weather_tools()}));
    asked["messages"] = continued(question, &json!([call]), &[result(&call)]);
    for (thinking, status) in [
        (Value::Null, 200),
        (json!({"type": "disabled"}), 200),
        (json!({"type": "adaptive"}), 200),
        (json!({"type": "enabled", "budget_tokens": 1024}), 400),
    ] {
        asked["thinking"] = thinking;
        let answer = messages(&sim, &asked).await;
        assert_eq!(answer.status, status, "{}", asked["thinking"]);
    }
    assert!(
        messages(&sim, &asked).await.json()["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("messages.1.content.0.type: Expected `thinking`")
    );
}
