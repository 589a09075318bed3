//! Properties of streams without members that their upstream could have sent: indexes, numbers and names.

use proptest::prelude::*;
use protocol::Dialect;
use protocol::canon::Event;
use serde_json::Value;

use super::streams::{any_answer, relay};
use super::upstream_stream;
use crate::grammar::{self, ClientAnswer};

/// The members that an upstream leaves out, and the events that it sends late.
#[derive(Debug, Clone)]
pub(super) struct Gaps {
    /// Where the name of an event is: in the `event:` line, in the data, or in both.
    pub(super) names: Names,
    /// Members that no event has.
    pub(super) dropped: Vec<&'static str>,
    /// If set, the members in `dropped` are present after all, with this value of another type.
    pub(super) wrong: Option<Value>,
    /// If set, the events that end an item come at the end of the stream, in an order that this
    /// number decides.
    pub(super) late: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Names {
    Both,
    Data,
    Events,
}

/// The members that an upstream of this dialect may leave out.
fn droppable(dialect: Dialect) -> Vec<&'static str> {
    match dialect {
        Dialect::Responses => vec![
            "sequence_number",
            "output_index",
            "item_id",
            "content_index",
            "summary_index",
            "logprobs",
        ],
        Dialect::Chat | Dialect::Messages | Dialect::Generate | Dialect::Interactions => {
            vec!["index"]
        }
    }
}

fn any_gaps(dialect: Dialect) -> impl Strategy<Value = Gaps> {
    let members = droppable(dialect);
    let names = prop::sample::select(vec![Names::Both, Names::Data, Names::Events]);
    let dropped = prop::sample::subsequence(members.clone(), 0..=members.len());
    (names, dropped, prop::option::of(any::<u64>())).prop_map(move |(names, dropped, late)| {
        let names = match dialect {
            Dialect::Chat | Dialect::Generate => Names::Both,
            _ => names,
        };
        // A late end without an index and an id cannot be assigned to an item.
        let nameless = ["output_index", "item_id"];
        let nameless = nameless.iter().all(|name| dropped.contains(name));
        let late = late.filter(|_| !nameless);
        Gaps {
            names,
            dropped,
            wrong: None,
            late,
        }
    })
}

/// Whether an event ends an item.
fn is_end(kind: &str) -> bool {
    let responses = kind.strip_prefix("response.");
    let is_done = responses.is_some_and(|rest| rest.rsplit('.').next() == Some("done"));
    is_done || kind == "content_block_stop" || kind == "step.stop"
}

/// Whether an event ends all items.
fn is_last(kind: &str) -> bool {
    let last = ["response.completed", "response.incomplete"];
    last.contains(&kind) || kind == "message_delta" || kind == "interaction.completed"
}

fn drop_members(value: &mut Value, dropped: &[&str], wrong: Option<&Value>) {
    match value {
        Value::Object(members) => {
            if let Some(wrong) = wrong {
                let found = members.iter_mut();
                for (_, value) in found.filter(|(name, _)| dropped.contains(&name.as_str())) {
                    *value = wrong.clone();
                }
            } else {
                members.retain(|name, _| !dropped.contains(&name.as_str()));
            }
            for value in members.values_mut() {
                drop_members(value, dropped, wrong);
            }
        }
        Value::Array(items) => {
            for item in items {
                drop_members(item, dropped, wrong);
            }
        }
        _ => {}
    }
}

pub(super) fn with_gaps(stream: &[u8], gaps: &Gaps) -> String {
    let stream = std::str::from_utf8(stream).unwrap();
    let (mut frames, mut ends) = (Vec::new(), Vec::new());
    for (number, frame) in (1_u64..).zip(stream.split_terminator("\n\n")) {
        let (name, data) = frame.split_once("data: ").unwrap();
        let Ok(mut value) = serde_json::from_str::<Value>(data) else {
            frames.push(format!("{frame}\n\n"));
            continue;
        };
        let kind = value.get("type").or_else(|| value.get("event_type"));
        let kind = kind.and_then(Value::as_str).unwrap_or_default().to_owned();
        drop_members(&mut value, &gaps.dropped, gaps.wrong.as_ref());
        if let (Names::Events, Value::Object(members)) = (gaps.names, &mut value) {
            members.retain(|name, _| name != "type" && name != "event_type");
        }
        let name = if gaps.names == Names::Data { "" } else { name };
        let frame = format!("{name}data: {value}\n\n");
        match gaps.late {
            Some(seed) if is_end(&kind) => {
                let place = seed.wrapping_mul(number).rotate_left(17);
                ends.push((place, frame));
            }
            _ => {
                if is_last(&kind) {
                    ends.sort_by_key(|(place, _)| *place);
                    frames.extend(ends.drain(..).map(|(_, frame)| frame));
                }
                frames.push(frame);
            }
        }
    }
    assert!(ends.is_empty(), "{stream}");
    frames.concat()
}

fn heard(from: Dialect, to: Dialect, stream: &str) -> Result<ClientAnswer, String> {
    let relayed = relay(from, to, stream.as_bytes(), &[]);
    relayed
        .result
        .map_err(|broken| format!("{broken}\n{stream}"))?;
    grammar::read_stream(to, &relayed.text)
}

/// The answer without its signatures. A signature that arrives after the next call has started is too late for the id
/// of that call.
fn without_signatures(mut heard: ClientAnswer) -> ClientAnswer {
    heard.opaque.clear();
    for call in &mut heard.calls {
        if let Some((id, _)) = call.id.split_once("_gw1_") {
            call.id = id.to_owned();
        }
    }
    heard
}

fn any_case() -> impl Strategy<Value = (Dialect, Dialect, Vec<Event>, Gaps)> {
    let pairs: Vec<_> = super::pairs().filter(|(from, to)| from != to).collect();
    prop::sample::select(pairs).prop_flat_map(|(from, to)| {
        (any_answer(from), any_gaps(from)).prop_map(move |(events, gaps)| (from, to, events, gaps))
    })
}

proptest! {
    #[test]
    fn gaps_change_no_converted_answer((from, to, events, gaps) in any_case()) {
        let stream = upstream_stream(from, &events);
        let mut complete = heard(from, to, std::str::from_utf8(&stream).unwrap()).unwrap();
        let stream = with_gaps(&stream, &gaps);
        let mut found = heard(from, to, &stream);
        if gaps.late.is_some() {
            found = found.map(without_signatures);
            complete = without_signatures(complete);
        }
        prop_assert_eq!(found.as_ref(), Ok(&complete), "{} to {}\n{}", from, to, stream);
    }
}

/// A stream from a real server.
#[test]
fn a_stream_of_llama_cpp_is_two_calls() {
    let stream = include_str!("../../../fixtures/upstreams/llamacpp-responses-two-calls.sse");
    for to in Dialect::ALL {
        let heard = heard(Dialect::Responses, to, stream).unwrap();
        assert_eq!(heard.text, "Let me look.", "{to}");
        let cities: Vec<_> = heard
            .calls
            .iter()
            .map(|call| &call.arguments["city"])
            .collect();
        assert_eq!(cities, ["Paris", "Rome"], "{to}");
        assert_eq!(heard.usage, Some((477, 10)), "{to}");
    }
}

/// The members of the interaction are in the last event itself, and usage may be missing.
#[test]
fn a_flat_end_of_an_interaction_is_understood() {
    let begin = concat!(
        "data: {\"event_type\":\"step.start\",\"index\":0,\"step\":{\"type\":\"model_output\"}}\n\n",
        "data: {\"event_type\":\"step.delta\",\"index\":0,\"delta\":{\"type\":\"text\",\"text\":\"Hello you\"}}\n\n",
    );
    let usage = r#","usage":{"total_input_tokens":9,"total_output_tokens":5}"#;
    for (rest, expected) in [
        (usage, Some((9, 5))),
        // The client sees the counts that it is charged for: the input from admission, and the output
        // by our count.
        ("", Some((40, 3))),
        (r#","status":"completed","id":"v1_x""#, Some((40, 3))),
    ] {
        let end = format!("data: {{\"event_type\":\"interaction.completed\"{rest}}}\n\n");
        for to in Dialect::ALL {
            let heard = heard(Dialect::Interactions, to, &(begin.to_owned() + &end)).unwrap();
            assert_eq!(heard.text, "Hello you", "{to}");
            assert_eq!(heard.usage, expected, "{to}");
        }
    }
    let failed = r#"data: {"event_type":"interaction.completed","status":"failed"}"#;
    let stream = format!("{begin}{failed}\n\n");
    let relayed = relay(Dialect::Interactions, Dialect::Chat, stream.as_bytes(), &[]);
    assert!(relayed.result.is_err());
}
