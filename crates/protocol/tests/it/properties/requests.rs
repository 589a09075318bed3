//! Nothing is lost silently: each member of a request reaches the upstream, is listed as dropped, or is refused.
//!
//! `fixtures/properties/members.json` lists the features that a client may ask for. For each dialect it says
//! how a request asks for the feature, where the upstream's request has it, and under which names it may be
//! listed as dropped. The file is written from the protocols, not from our codecs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use protocol::canon::{Dropped, Target};
use protocol::convert::{read_request, write_request};
use protocol::messages::converse;
use protocol::native::{read_head, read_named_head};
use protocol::{Dialect, Failure, Profile, Thinking};
use serde_json::{Value, json};

use super::{MODEL, pairs};

/// The features that a client may ask for, by name, and how each dialect expresses them.
static MEMBERS: LazyLock<BTreeMap<String, BTreeMap<String, Value>>> = LazyLock::new(|| {
    let text = include_str!("../../../fixtures/properties/members.json");
    serde_json::from_str(text).unwrap()
});

/// Members that contradict each other.
const RIVALS: [&[&str]; 5] = [
    &["json_mode", "json_schema"],
    // These features share a member in one dialect.
    &["tool_required", "tool_named", "tools_allowed", "one_call"],
    &["tool_loop", "tool_error", "refusal", "system_inside"],
    &["effort", "summary"],
    // Tools that are not allowed may be left out completely.
    &["strict_tool", "tools_allowed"],
];

/// A plain request of this dialect with two tools.
fn plain(dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let tools = ["f", "g"].map(|name| match dialect {
        Dialect::Chat => {
            json!({"type": "function", "function": {"name": name, "parameters": schema}})
        }
        Dialect::Responses => {
            json!({"type": "function", "name": name, "parameters": schema, "strict": false})
        }
        Dialect::Messages => json!({"name": name, "input_schema": schema}),
        Dialect::Generate => json!({"name": name, "parametersJsonSchema": schema}),
        Dialect::Interactions => json!({"type": "function", "name": name, "parameters": schema}),
    });
    let said = "said-user";
    match dialect {
        Dialect::Chat => json!({
            "model": MODEL, "tools": tools,
            "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}],
        }),
        Dialect::Responses => json!({
            "model": MODEL, "tools": tools,
            "input": [{"role": "user", "content": [{"type": "input_text", "text": said}]}],
        }),
        Dialect::Messages => json!({
            "model": MODEL, "tools": tools, "max_tokens": 9000,
            "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}],
        }),
        Dialect::Generate => json!({
            "tools": [{"functionDeclarations": tools}],
            "contents": [{"role": "user", "parts": [{"text": said}]}],
        }),
        Dialect::Interactions => json!({
            "model": MODEL, "tools": tools,
            "input": [{"type": "user_input", "content": [{"type": "text", "text": said}]}],
        }),
    }
}

/// Puts a value at a place such as `/tools/0/strict`. `-` is the end of a list, `^` its start.
fn put(body: &mut Value, pointer: &str, value: &Value) {
    let mut place = body;
    for name in pointer.split('/').skip(1) {
        place = match (name, place) {
            ("-" | "^", Value::Array(list)) => {
                let at = if name == "-" { list.len() } else { 0 };
                list.insert(at, Value::Null);
                &mut list[at]
            }
            (name, Value::Array(list)) => &mut list[name.parse::<usize>().unwrap()],
            (name, place) => &mut place[name],
        };
    }
    *place = value.clone();
}

/// Adds a feature to a request. Returns `false` if the dialect cannot express it.
fn add_member(how: &Value, body: &mut Value) -> bool {
    match &how["say"] {
        Value::Object(members) => {
            for (pointer, value) in members {
                put(body, pointer, value);
            }
        }
        Value::Array(turns) => {
            for turn in turns {
                put(body, turn[0].as_str().unwrap(), &turn[1]);
            }
        }
        _ => return false,
    }
    true
}

/// Whether the request for the upstream contains the places and texts that `how` requires.
fn found(how: &Value, sent: &Value) -> bool {
    let text = sent.to_string();
    match &how["found"] {
        Value::String(said) => text.contains(said.as_str()),
        Value::Array(all) => all.iter().all(|said| text.contains(said.as_str().unwrap())),
        Value::Object(places) => places.iter().all(|(pointer, expected)| {
            let value = sent.pointer(pointer).unwrap_or(&Value::Null);
            *value == *expected || *expected == "*" && !value.is_null()
        }),
        _ => false,
    }
}

/// The request for an upstream of this dialect, and the dropped members.
pub(super) fn convert(
    from: Dialect,
    to: Dialect,
    body: &Value,
) -> Result<(Value, Vec<String>), Failure> {
    convert_for(from, To::Dialect(to), body)
}

/// The protocol of an upstream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Dialect(Dialect),
    Converse,
}

impl To {
    /// The key in the file of members.
    fn name(self) -> &'static str {
        match self {
            Self::Dialect(dialect) => dialect.as_str(),
            Self::Converse => "converse",
        }
    }
}

fn convert_for(from: Dialect, to: To, body: &Value) -> Result<(Value, Vec<String>), Failure> {
    let body = body.to_string();
    match from {
        Dialect::Generate => read_named_head(&body.clone().into(), MODEL, false),
        _ => read_head(from, &body.clone().into()),
    }?;
    let mut dropped = Dropped::new(from);
    if (from, to) == (Dialect::Messages, To::Converse) {
        let sent = converse::rewrite_request(body.as_bytes(), &[], &mut dropped)?;
        return Ok((
            serde_json::from_slice(&sent).unwrap(),
            dropped.names().to_vec(),
        ));
    }
    let request = read_request(from, body.as_bytes(), false)?;
    let profile = Profile {
        reasoning: Some(true),
        thinking: Some(match to {
            To::Dialect(Dialect::Messages) | To::Converse => Thinking::Adaptive,
            To::Dialect(_) => Thinking::Level,
        }),
        max_output_tokens: Some(20_000),
        ..Profile::default()
    };
    let target = Target {
        upstream_model: "up-2026",
        public_model: MODEL,
        profile: &profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    };
    let sent = match to {
        To::Dialect(to) => write_request(to, &request, &target, &mut dropped)?,
        To::Converse => converse::write_request(&request, &target, &mut dropped)?,
    };
    let sent = serde_json::from_slice(&sent).unwrap();
    Ok((sent, dropped.names().to_vec()))
}

/// Whether two names match. `[*]` matches any index, because indexes depend on other members.
fn is_name(known: &str, listed: &str) -> bool {
    let mut rest = listed;
    for (at, piece) in known.split('*').enumerate() {
        if at > 0 {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        match rest.strip_prefix(piece) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// The errors in converting these members from a dialect for an upstream.
fn conversion_errors(from: Dialect, to: To, wishes: &[&str]) -> Vec<String> {
    let how = |wish: &str, dialect: To| MEMBERS[wish].get(dialect.name());
    let by = To::Dialect(from);
    let mut body = plain(from);
    let said: Vec<&str> = wishes
        .iter()
        .copied()
        .filter(|wish| how(wish, by).is_some_and(|how| add_member(how, &mut body)))
        .collect();
    let to_name = to.name();
    let (sent, dropped) = match convert_for(from, to, &body) {
        Ok(converted) => converted,
        Err(failure) => return vec![format!("{from} to {to_name}: {failure} for {body}")],
    };
    let mut wrongs = Vec::new();
    let mut wrong = |what: &str| {
        wrongs.push(format!(
            "{from} to {to_name}: {what}; dropped {dropped:?}; sent {sent}"
        ));
    };
    if !sent.to_string().contains("said-user") {
        wrong("the user's text is lost");
    }
    let mut tellable = Vec::new();
    for wish in said {
        let names = how(wish, by).unwrap()["names"].as_array().unwrap();
        let names: Vec<_> = names.iter().map(|name| name.as_str().unwrap()).collect();
        let carried = how(wish, to).is_some_and(|how| found(how, &sent));
        let is_listed = |name: &&str| dropped.iter().any(|listed| is_name(name, listed));
        let listed = names.iter().filter(|name| is_listed(name)).count();
        if !carried && (names.is_empty() || listed < names.len()) {
            wrong(&format!("`{wish}` is lost"));
        }
        if carried && listed > 0 {
            wrong(&format!("`{wish}` is carried and listed"));
        }
        tellable.extend(names);
    }
    // The list may name only members of the request. Clients would ignore other names.
    for name in &dropped {
        if !tellable.iter().any(|known| is_name(known, name)) {
            wrong(&format!("`{name}` is listed and was not sent"));
        }
    }
    wrongs
}

/// All pairs of different protocols.
fn conversions() -> impl Iterator<Item = (Dialect, To)> {
    let dialects = pairs().filter(|(from, to)| from != to);
    let dialects = dialects.map(|(from, to)| (from, To::Dialect(to)));
    dialects.chain(Dialect::ALL.map(|from| (from, To::Converse)))
}

/// Whether this feature is ever sent to this upstream. The gateway fetches images for Converse, so Converse
/// gets no image URLs.
fn is_sendable(to: To, wish: &str) -> bool {
    to != To::Converse || !["image_url", "image_detail"].contains(&wish)
}

#[test]
fn each_member_is_carried_or_listed() {
    let mut all = Vec::new();
    for (from, to) in conversions() {
        for wish in MEMBERS.keys().filter(|wish| is_sendable(to, wish)) {
            all.extend(conversion_errors(from, to, &[wish]));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

fn any_wishes() -> impl Strategy<Value = Vec<&'static str>> {
    let names: Vec<&'static str> = MEMBERS.keys().map(String::as_str).collect();
    let count = names.len();
    prop::sample::subsequence(names, 0..=count)
        .prop_shuffle()
        .prop_map(|mut wishes| {
            for rivals in RIVALS {
                let mut first = true;
                wishes.retain(|wish| !rivals.contains(wish) || std::mem::take(&mut first));
            }
            // Positions in the first turn are only right if nothing else is added to it.
            if wishes.contains(&"new_kind_of_part") {
                wishes.retain(|wish| {
                    !["image_url", "image_data", "image_detail", "document"].contains(wish)
                });
            }
            if wishes
                .iter()
                .any(|wish| wish.starts_with("new_") || *wish == "cache_marks")
            {
                wishes.retain(|wish| *wish != "system");
            }
            // A feature that is inserted at the start would move those that were inserted before.
            wishes.sort_by_key(|wish| *wish == "system");
            wishes
        })
}

/// Runs fewer cases than usual, because each case runs through all pairs.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.div_ceil(5),
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn members_together_are_carried_or_listed(wishes in any_wishes()) {
        for (from, to) in conversions() {
            let sendable = wishes.iter().copied().filter(|wish| is_sendable(to, wish));
            let wrongs = conversion_errors(from, to, &sendable.collect::<Vec<_>>());
            prop_assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
        }
    }
}
