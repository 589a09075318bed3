//! Models in the notation of Converse: how the members of a request are converted, and streams that break. The tests of
//! `bedrock.rs` cover these models too.

use serde_json::{Value, json};

use super::bedrock::{CHANNELS, builder, channel, model};
use crate::harness::{Dialect, Key, TestGateway, ask, cost, with};

async fn gateway(name: &str) -> (TestGateway, Key) {
    let (id, settings) = CHANNELS[4];
    let builder = builder().entries(&channel(id, settings));
    builder.entries(&model(id, &[(id, name)])).funded().await
}

/// The last body that the upstream received.
fn sent(gateway: &TestGateway) -> Value {
    let calls = gateway.sim.calls();
    serde_json::from_slice(&calls.last().unwrap().body).unwrap()
}

#[tokio::test]
async fn members_arrive_under_their_names_and_others_are_reported() {
    let (gateway, key) = gateway("sim-chat").await;
    let body = with(
        ask("say exactly: plain words"),
        &json!({
            "model": "maker/converse", "temperature": 0.5, "max_tokens": 77, "stop": ["END"],
            "user": "somebody", "parallel_tool_calls": false, "seed": 1,
            "tools": [{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }],
        }),
    );
    let answer = gateway.chat(&key, &body).await;
    let dropped = answer.header("x-dropped-params").unwrap_or_default();
    let mut dropped: Vec<_> = dropped.split(',').collect();
    dropped.sort_unstable();
    assert_eq!(dropped, ["parallel_tool_calls", "seed", "user"]);
    answer.ok();
    let body = sent(&gateway);
    assert_eq!(
        body["inferenceConfig"],
        json!({ "maxTokens": 77, "temperature": 0.5, "stopSequences": ["END"] })
    );
    assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["name"], "look");
    for name in ["model", "stream", "metadata", "max_tokens"] {
        assert!(body.get(name).is_none(), "{name} in {body}");
    }
}

/// Cache marks and betas, which only Messages and Converse have, are kept for callers of Messages.
#[tokio::test]
async fn messages_keep_their_cache_marks_and_betas() {
    let (gateway, key) = gateway("sim-chat").await;
    let mark = json!({ "type": "ephemeral" });
    for stream in [false, true] {
        let body = json!({
            "max_tokens": 99, "service_tier": "auto",
            "system": [{ "type": "text", "text": "Be brief.", "cache_control": mark }],
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "say exactly: plain words", "cache_control": mark },
            ] }],
        });
        let request = Dialect::Messages
            .call(&key.secret, "maker/converse", body, stream)
            .header("anthropic-beta", "one-2026-01-01,two-2026-01-01");
        let answer = gateway.send(&request).await;
        assert_eq!(answer.header("x-dropped-params"), Some("service_tier"));
        assert!(answer.ok().text().contains("plain"));
        let body = sent(&gateway);
        let point = json!({ "cachePoint": { "type": "default" } });
        assert_eq!(body["system"], json!([{ "text": "Be brief." }, point]));
        assert_eq!(body["messages"][0]["content"][1], point);
        let betas = json!(["one-2026-01-01", "two-2026-01-01"]);
        assert_eq!(
            body["additionalModelRequestFields"]["anthropic_beta"],
            betas
        );
        let calls = gateway.sim.calls();
        let headers = &calls.last().unwrap().headers;
        assert!(
            !headers.contains_key("anthropic-beta") && !headers.contains_key("anthropic-version")
        );
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_stream_that_breaks_in_the_middle_is_an_error_and_billed_as_far_as_it_came() {
    let (gateway, key) = gateway("sim-chat").await;
    for (faults, code) in [
        ("error-event=2", "upstream_overloaded"),
        ("garbage-event=2", "upstream_error"),
        ("cut=content", "upstream_error"),
        ("truncate=content", "upstream_error"),
    ] {
        for caller in Dialect::ALL {
            let before = gateway.usage(&key).await;
            gateway.sim.forget_calls();
            gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
            let body = caller.ask("say exactly: some words that are cut in the middle of it all");
            let request = caller.call(&key.secret, "maker/converse", body, true);
            let answer = gateway.send(&request).await;
            let what = format!("{caller:?} {faults}: {}", answer.text());
            assert_eq!(answer.status(), 200, "{what}");
            assert!(!answer.text().contains("middle of it all"), "{what}");
            let last = answer
                .text()
                .lines()
                .rfind(|line| line.starts_with("data: "));
            assert!(last.is_some_and(|line| line.contains(code)), "{what}");
            let spent = gateway.usage(&key).await - before;
            assert!(spent > 0, "{what}");
            let used = gateway.sim.calls().last().unwrap().true_usage;
            if let Some(used) = used {
                let whole = cost(used.fresh_input + 64, used.cache_read, used.output + 64);
                assert!(spent <= whole, "{what}: {spent} of {whole}");
            }
        }
    }
    gateway.verify().await;
}

#[tokio::test]
async fn an_exception_at_the_start_of_a_stream_is_answered_by_another_route() {
    let (id, settings) = CHANNELS[4];
    let (other, other_settings) = CHANNELS[1];
    let routes = [(id, "sim-chat"), (other, "sim-other")];
    let builder = builder()
        .entries(&channel(id, settings))
        .entries(&channel(other, other_settings))
        .entries(&model("both", &routes));
    let (gateway, key) = builder.funded().await;
    for caller in Dialect::ALL {
        gateway.sim.forget_calls();
        gateway
            .sim
            .queue_faults("sim-chat", "error-event=0", 1)
            .unwrap();
        let body = caller.ask("say exactly: plain words");
        let request = caller.call(&key.secret, "maker/both", body, true);
        let answer = gateway.send(&request).await;
        let what = format!("{caller:?}: {}", answer.text());
        assert_eq!(answer.status(), 200, "{what}");
        assert!(answer.text().contains("plain"), "{what}");
        assert_eq!(gateway.sim.calls_of("sim-other").len(), 1, "{what}");
    }
    gateway.verify().await;
}
