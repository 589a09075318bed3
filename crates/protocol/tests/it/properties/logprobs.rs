//! Log probabilities between the dialects that have them: none is lost, and none is sent twice.

use proptest::prelude::*;
use protocol::Dialect;
use protocol::canon::{Block, Delta, Event, Likelihood, ResponseBuilder, Stop, Token};
use protocol::convert::convert_answer;
use serde_json::{Value, json};

use super::streams::relay;
use super::{MODEL, context, upstream_answer, upstream_stream};

const DIALECTS: [Dialect; 3] = [Dialect::Chat, Dialect::Responses, Dialect::Generate];

/// A token that each of these dialects can express.
fn any_likelihood() -> impl Strategy<Value = Likelihood> {
    ("[a-zé界\" ]{1,5}", 0_u32..99_999).prop_map(|(token, number)| Likelihood {
        token,
        bytes: None,
        logprob: format!("-{}.{:04}", number / 10_000, number % 10_000)
            .parse()
            .unwrap(),
    })
}

fn any_token() -> impl Strategy<Value = Token> {
    let top = prop::collection::vec(any_likelihood(), 0..3);
    (any_likelihood(), top).prop_map(|(chosen, top)| Token { chosen, top })
}

fn any_piece() -> impl Strategy<Value = Vec<Event>> {
    let tokens = prop::collection::vec(any_token(), 0..3);
    (tokens, "[a-z ]{1,9}").prop_map(|(tokens, text)| {
        let logprobs = (!tokens.is_empty()).then_some(Delta::Logprobs(tokens));
        let deltas = logprobs.into_iter().chain([Delta::Text(text)]);
        deltas.map(Event::Delta).collect()
    })
}

/// Pieces of a text with their tokens, and a call between two texts.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let text = || prop::collection::vec(any_piece(), 1..4);
    (text(), prop::option::of(text())).prop_map(|(before, behind)| {
        let mut events = vec![Event::Start, Event::BlockStart(Block::Text)];
        events.extend(before.into_iter().flatten());
        events.push(Event::BlockStop);
        let is_called = behind.is_some();
        if let Some(behind) = behind {
            let (id, name) = ("call_1".to_owned(), "f".to_owned());
            events.push(Event::BlockStart(Block::ToolCall { id, name }));
            events.push(Event::Delta(Delta::Arguments("{}".to_owned())));
            events.extend([Event::BlockStop, Event::BlockStart(Block::Text)]);
            events.extend(behind.into_iter().flatten());
            events.push(Event::BlockStop);
        }
        events.push(Event::Finish(if is_called {
            Stop::ToolCalls
        } else {
            Stop::End
        }));
        events
    })
}

fn as_json(likelihood: &Likelihood) -> Value {
    json!([likelihood.token, likelihood.logprob])
}

fn expected(events: &[Event]) -> Vec<Value> {
    let tokens = events.iter().flat_map(|event| match event {
        Event::Delta(Delta::Logprobs(tokens)) => tokens.as_slice(),
        _ => &[],
    });
    let shown = tokens.map(|token| {
        let top: Vec<_> = token.top.iter().map(as_json).collect();
        json!([as_json(&token.chosen), top])
    });
    shown.collect()
}

/// The log probabilities in an answer or a chunk.
fn heard(dialect: Dialect, answer: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let openai = |token: &Value| {
        let one = |it: &Value| json!([it["token"], it["logprob"]]);
        let top: Vec<_> = list(&token["top_logprobs"]).iter().map(one).collect();
        json!([one(token), top])
    };
    match dialect {
        Dialect::Chat => {
            let content = list(&answer["choices"][0]["logprobs"]["content"]);
            content.iter().map(openai).collect()
        }
        Dialect::Responses => {
            let parts = list(&answer["output"]);
            let parts = parts.iter().flat_map(|item| list(&item["content"]));
            parts
                .flat_map(|part| list(&part["logprobs"]))
                .map(|it| openai(&it))
                .collect()
        }
        _ => {
            let result = &answer["candidates"][0]["logprobsResult"];
            let one = |it: &Value| json!([it["token"], it["logProbability"]]);
            let tops = list(&result["topCandidates"]);
            let chosen = list(&result["chosenCandidates"]);
            let pairs = chosen.iter().zip(tops.iter());
            let shown = pairs.map(|(chosen, top)| {
                let top: Vec<_> = list(&top["candidates"]).iter().map(one).collect();
                json!([one(chosen), top])
            });
            shown.collect()
        }
    }
}

fn heard_in_stream(dialect: Dialect, stream: &str) -> Vec<Value> {
    let frames = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let frames = frames.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let mut pieces = Vec::new();
    for frame in frames {
        match frame["type"].as_str() {
            Some("response.output_text.delta") => {
                let part = json!({ "output": [{ "content": [frame] }] });
                pieces.extend(heard(dialect, &part));
            }
            // The last event repeats the log probabilities of the pieces.
            Some("response.completed") => {
                assert_eq!(heard(dialect, &frame["response"]), pieces, "{stream}");
            }
            Some(_) => {}
            None => pieces.extend(heard(dialect, &frame)),
        }
    }
    pieces
}

proptest! {
    #[test]
    fn tokens_cross_in_streams_and_whole(events in any_events(), sizes in prop::collection::vec(1_usize..200, 1..4)) {
        let expected = expected(&events);
        let mut builder = ResponseBuilder::default();
        let response = events.iter().cloned().find_map(|event| builder.push(event)).unwrap().unwrap();
        for (from, to) in DIALECTS.into_iter().flat_map(|from| DIALECTS.map(|to| (from, to))) {
            let stream = relay(from, to, &upstream_stream(from, &events), &sizes);
            prop_assert_eq!(&stream.result, &Ok(()));
            prop_assert_eq!(heard_in_stream(to, &stream.text), expected.clone(), "{} to {}: {}", from, to, stream.text);

            let whole = upstream_answer(from, &response);
            let answer = convert_answer(from, to, &whole, &context(to, "ours", MODEL)).unwrap();
            let answer: Value = serde_json::from_slice(&answer.pieces.into_bytes()).unwrap();
            prop_assert_eq!(heard(to, &answer), expected.clone(), "{} to {}: {}", from, to, answer);
        }
    }
}
