//! K5, K6 for all pairs of dialects: nothing that an upstream says about itself reaches the caller.
//!
//! The simulated upstream puts its mark into everything it sends: the model's name, all ids, its headers, and error
//! texts that name hosts, accounts, keys and requests.

use serde_json::Value;

use super::leaks::ALLOWED_HEADERS;
use crate::harness::{
    Answer, Connection, Dialect, GatewayBuilder, TestGateway, UPSTREAM_KEY, model_via, pairs, with,
};

/// The upstreams' name for their model.
const HIDDEN: &str = "sim-reason-hidden77";
const FAULTS: [&str; 22] = [
    "",
    "status=400",
    "status=404",
    "status=413",
    "status=422",
    "status=429",
    "status=500",
    "status=503",
    "error-in-200",
    "error-event=0",
    "error-event=2",
    "failure-event=1",
    "garbage-event=2",
    "cut=content",
    "truncate=content",
    "no-done",
    "no-finish",
    "garbage",
    "wrong-type",
    "refuse",
    "content-filter",
    "blocked",
];
/// Refused credentials. They come last, because a 401 disables the channel for a while, and all other calls must reach
/// the upstream.
const LAST: [&str; 2] = ["status=403", "status=401"];

#[tokio::test]
async fn no_pair_gives_its_upstream_away() {
    let (gateway, key) = GatewayBuilder::default().paired(HIDDEN).await;
    for faults in FAULTS.into_iter().chain(LAST) {
        for (caller, upstream) in pairs() {
            for (prompt, tools) in [("say exactly: plain words", false), ("look_up a", true)] {
                for stream in [false, true] {
                    let calls = gateway.upstream_calls();
                    gateway.sim.queue_faults(HIDDEN, faults, 1).unwrap();
                    let mut body = caller.ask(prompt);
                    if tools {
                        body = with(body, &caller.tools(&["look_up"]));
                    }
                    let request = caller.call(&key.secret, &model_via(upstream), body, stream);
                    let answer = gateway.send(&request).await;
                    let what = format!("{caller:?} by {upstream:?} {faults} {prompt} {stream}");
                    assert_clean(&gateway, &what, (caller, upstream), &answer);
                    if faults.is_empty() {
                        assert_eq!(answer.status(), 200, "{what}: {}", answer.text());
                    }
                    if faults != "status=401" {
                        assert!(gateway.upstream_calls() > calls, "{what}");
                    }
                }
            }
        }
    }
    gateway.verify().await;
}

#[track_caller]
fn assert_clean(
    gateway: &TestGateway,
    what: &str,
    (caller, upstream): (Dialect, Dialect),
    answer: &Answer,
) {
    for (name, value) in &answer.head.headers {
        assert!(
            ALLOWED_HEADERS.contains(&name.as_str()),
            "{what}: {name}: {value}"
        );
        assert!(!is_signed(value), "{what}: {name}: {value}");
    }
    let mut text = String::from_utf8_lossy(&answer.body).into_owned();
    // The explanation of a refusal is content, which native routes pass on unchanged.
    if caller == upstream {
        text = text.replace("usage policy of sim-upstream.com", "");
    }
    // The colon before the port is included, because the digits alone may occur in a time or an id by chance.
    let port = format!(":{}", gateway.sim.address().port());
    for sign in [
        UPSTREAM_KEY,
        "hidden77",
        "upstream.example",
        "upstream.com",
        "org-sim",
        "proj_",
        "wrkspc_",
        "req_sim",
        "-SIM",
        "chatcmpl-",
        "127.0.0.1",
        "localhost",
        "http:",
        "https:",
        "simulat",
        port.as_str(),
    ] {
        assert!(!text.contains(sign), "{what}: {sign} in {text}");
    }
    let mut seen = Seen::default();
    for document in documents(&text) {
        seen.walk("", &document);
    }
    for (path, value) in seen.signed {
        let member = path.rsplit('.').next().unwrap_or_default();
        // The caller sends the id of a tool call back with its result, and the upstream must recognise it.
        let is_call = value.starts_with("call_") || value.starts_with("toolu_");
        // On native routes, items keep their ids and a few members keep their content.
        let is_native = caller == upstream
            && (matches!(
                member,
                "system_fingerprint" | "inference_geo" | "explanation"
            ) || (member == "id" || member == "item_id") && !path.ends_with("response.id"));
        assert!(is_call || is_native, "{what}: {path} = {value}");
    }
}

/// The JSON documents of an answer, streamed or not.
fn documents(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(whole) => vec![whole],
        Err(_) => text
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
            .collect(),
    }
}

/// Strings with the upstream's mark, and the paths of their members.
#[derive(Debug, Default)]
struct Seen {
    signed: Vec<(String, String)>,
}

impl Seen {
    fn walk(&mut self, path: &str, value: &Value) {
        match value {
            Value::String(text) if is_signed(text) => {
                self.signed.push((path.to_owned(), text.clone()));
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(path, item)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.walk(&format!("{path}.{name}"), value);
                }
            }
            _ => {}
        }
    }
}

/// Whether a text contains the upstream's mark. Random letters may contain the mark by chance. So this ignores
/// encrypted reasoning, and our own ids, which have a part of 22 random letters.
fn is_signed(text: &str) -> bool {
    let is_sealed = text.len() > 100 && !text.contains(' ');
    let is_ours = text.split('_').any(|part| part.len() == 22);
    text.to_lowercase().contains("sim") && !is_sealed && !is_ours
}

/// Checks that direct answers of the upstream contain its mark. Otherwise the test above would prove nothing.
#[tokio::test]
async fn the_upstream_signs_what_it_sends() {
    let (gateway, _) = GatewayBuilder::default().paired(HIDDEN).await;
    for dialect in Dialect::ALL {
        for (fault, upstream_identifiers) in [("", 1), ("+status=400", 1)] {
            let model = format!("{HIDDEN}{fault}");
            let request = dialect.call("any", &model, dialect.ask("look"), false);
            let mut upstream = Connection::open(gateway.sim.address()).await;
            upstream.send(&request).await;
            let answer = upstream.answer().await;
            assert!(
                answer.text().matches(HIDDEN).count() >= upstream_identifiers,
                "{dialect:?}"
            );
        }
    }
}
