//! Nothing is lost silently: each member of a request is carried to the upstream, or listed as
//! dropped, or refused.
//!
//! `fixtures/laws/members.json` says, for each thing a caller may ask for, how it is said in each
//! dialect, by what names it may be told as dropped there, and where it is found in a request of
//! the dialect if it was carried. It is written from the protocols, not from our codecs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use protocol::canon::{Dropped, Target};
use protocol::convert::{read_request, write_request};
use protocol::native::{read_head, read_named_head};
use protocol::{Dialect, Failure, Profile, Thinking};
use serde_json::{Value, json};

use super::{MODEL, pairs};

/// What a caller may ask for, by name, and by dialect how.
static MEMBERS: LazyLock<BTreeMap<String, BTreeMap<String, Value>>> = LazyLock::new(|| {
    let text = include_str!("../../../fixtures/laws/members.json");
    serde_json::from_str(text).unwrap()
});

/// Members that contradict each other.
const RIVALS: [&[&str]; 5] = [
    &["json_mode", "json_schema"],
    // In one dialect these share a member.
    &["tool_required", "tool_named", "tools_allowed", "one_call"],
    &["tool_loop", "tool_error", "refusal", "system_inside"],
    &["effort", "summary"],
    // Tools that are not allowed may be left out with all they have.
    &["strict_tool", "tools_allowed"],
];

/// A plain request of this dialect, with two tools.
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

/// Puts a value to a place such as `/tools/0/strict`; `-` is the end of a list, `^` its start.
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

/// Says something; `false` where the dialect cannot.
fn say(how: &Value, body: &mut Value) -> bool {
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

/// Whether a request holds what it should hold if something was carried.
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

/// What the upstream is sent, and what is dropped.
pub(super) fn convert(
    from: Dialect,
    to: Dialect,
    body: &Value,
) -> Result<(Value, Vec<String>), Failure> {
    let body = body.to_string();
    match from {
        Dialect::Generate => read_named_head(&body.clone().into(), MODEL, false),
        _ => read_head(from, &body.clone().into()),
    }?;
    let request = read_request(from, body.as_bytes(), false)?;
    let profile = Profile {
        reasoning: Some(true),
        thinking: Some(match to {
            Dialect::Messages => Thinking::Adaptive,
            _ => Thinking::Level,
        }),
        max_output_tokens: Some(20_000),
        ..Profile::default()
    };
    let target = Target {
        upstream_model: "up-2026",
        public_model: MODEL,
        profile: &profile,
        output_limit: protocol::OutputLimit::default(),
    };
    let mut dropped = Dropped::new(from);
    let sent = write_request(to, &request, &target, &mut dropped)?;
    let sent = serde_json::from_slice(&sent).unwrap();
    Ok((sent, dropped.names().to_vec()))
}

/// Whether this is the name; `[*]` in it is any index, which depends on what else was said.
fn is_name(known: &str, told: &str) -> bool {
    let mut rest = told;
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

/// What is wrong with the way these members go from one dialect to another.
fn wrongs(from: Dialect, to: Dialect, wishes: &[&str]) -> Vec<String> {
    let how = |wish: &str, dialect: Dialect| MEMBERS[wish].get(dialect.as_str());
    let mut body = plain(from);
    let said: Vec<&str> = wishes
        .iter()
        .copied()
        .filter(|wish| how(wish, from).is_some_and(|how| say(how, &mut body)))
        .collect();
    let (sent, dropped) = match convert(from, to, &body) {
        Ok(converted) => converted,
        Err(failure) => return vec![format!("{from} to {to}: {failure} for {body}")],
    };
    let mut wrongs = Vec::new();
    let mut wrong = |what: &str| {
        wrongs.push(format!(
            "{from} to {to}: {what}; dropped {dropped:?}; sent {sent}"
        ));
    };
    if !sent.to_string().contains("said-user") {
        wrong("the user's text is lost");
    }
    let mut tellable = Vec::new();
    for wish in said {
        let names = how(wish, from).unwrap()["names"].as_array().unwrap();
        let names: Vec<_> = names.iter().map(|name| name.as_str().unwrap()).collect();
        let carried = how(wish, to).is_some_and(|how| found(how, &sent));
        let is_told = |name: &&str| dropped.iter().any(|told| is_name(name, told));
        let told = names.iter().filter(|name| is_told(name)).count();
        if !carried && (names.is_empty() || told < names.len()) {
            wrong(&format!("`{wish}` is lost"));
        }
        if carried && told > 0 {
            wrong(&format!("`{wish}` is carried and told"));
        }
        tellable.extend(names);
    }
    // Nothing is told that was not said: a list that cries wolf is not read.
    for name in &dropped {
        if !tellable.iter().any(|known| is_name(known, name)) {
            wrong(&format!("`{name}` is told and was not said"));
        }
    }
    wrongs
}

#[test]
fn each_member_is_carried_or_listed() {
    let mut all = Vec::new();
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        for wish in MEMBERS.keys() {
            all.extend(wrongs(from, to, &[wish]));
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
            // Places in the first turn are counted with nothing else in it.
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
            // What is put before all else would move what is put after it.
            wishes.sort_by_key(|wish| *wish == "system");
            wishes
        })
}

/// Each case goes through all pairs.
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
        for (from, to) in pairs().filter(|(from, to)| from != to) {
            let wrongs = wrongs(from, to, &wishes);
            prop_assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
        }
    }
}
