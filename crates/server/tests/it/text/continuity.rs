//! Reasoning across turns without state: an upstream that requires its earlier reasoning gets it back through every
//! client dialect, although the gateway stores nothing.

use serde_json::Value;

use crate::harness::{
    AnswerContent, Conversation, Dialect, GatewayBuilder, Key, TestGateway, model_via, pairs,
};

/// A model that reasons by itself, and refuses tool results that come without its earlier reasoning.
const DEMANDING: &str = "sim-reason+demand-reasoning";
const NAME: &str = "sim-reason";
/// The value with which a gateway could replace a lost signature.
const BYPASS: &str = "skip_thought_signature_validator";

#[tokio::test]
async fn three_turns_with_tools_work_through_every_pair() {
    let (gateway, key) = GatewayBuilder::default().paired(DEMANDING).await;
    for (caller, upstream) in pairs() {
        for stream in [false, true] {
            three_turns(&gateway, &key, (caller, upstream), stream).await;
        }
    }
    gateway.verify().await;
}

/// The model calls a tool, then a second one, then answers.
async fn three_turns(gateway: &TestGateway, key: &Key, pair: (Dialect, Dialect), stream: bool) {
    let (caller, upstream) = pair;
    let what = format!("{caller:?} by {upstream:?}, streamed: {stream}");
    let prompt = "First look_up, then write_down what was found.";
    let mut talk = Conversation::begin(caller, prompt, &["look_up", "write_down"]);
    for (tool, result) in [("look_up", "found 42"), ("write_down", "written 42")] {
        let said = turn(gateway, key, pair, &mut talk, stream).await;
        let AnswerContent::Calls(calls) = said else {
            panic!("{what}: no call of {tool} but {said:?}");
        };
        assert_eq!(calls.len(), 1, "{what}: {calls:?}");
        assert_eq!(calls[0].1, tool, "{what}");
        talk.add_tool_results(&calls, result);
    }
    let said = turn(gateway, key, pair, &mut talk, stream).await;
    assert!(
        matches!(&said, AnswerContent::Text(text) if text.contains("42")),
        "{what}: {said:?}"
    );
    let calls = gateway.sim.calls_of(NAME);
    let bodies = calls.iter().map(|call| String::from_utf8_lossy(&call.body));
    let bodies: Vec<_> = bodies.collect();
    assert_eq!(bodies.len(), 3, "{what}");
    for body in &bodies {
        assert!(
            !body.contains(BYPASS),
            "{what}: a signature was lost: {body}"
        );
    }
    if upstream != Dialect::Chat {
        let member = match upstream {
            Dialect::Responses => "encrypted_content\":\"",
            Dialect::Messages | Dialect::Interactions => "signature\":\"",
            Dialect::Generate | Dialect::Chat => "thoughtSignature\":\"",
        };
        let counts: Vec<_> = bodies
            .iter()
            .map(|body| body.matches(member).count())
            .collect();
        assert_eq!(counts, [0, 1, 2], "{what}: what came back in each turn");
    }
    gateway.sim.forget_calls();
}

async fn turn(
    gateway: &TestGateway,
    key: &Key,
    (caller, upstream): (Dialect, Dialect),
    talk: &mut Conversation,
    stream: bool,
) -> AnswerContent {
    let body: Value = talk.body();
    let request = caller.call(&key.secret, &model_via(upstream), body.clone(), stream);
    let answer = gateway.send(&request).await;
    assert_eq!(
        answer.status(),
        200,
        "{caller:?} by {upstream:?}, streamed: {stream}: {} to {body}",
        answer.text()
    );
    talk.add_answer(&answer, stream)
}
