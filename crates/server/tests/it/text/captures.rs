//! Replays requests that real client libraries have sent.
//!
//! `tests/fixtures/captures.jsonl` has one recorded request per line. Credentials are replaced with `KEY`, header names
//! are in lower case, and the body comes last, with its original bytes.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sim::Call;

use crate::harness::{
    Answer, BodyEnd, Dialect, GatewayBuilder, Key, Request, TestGateway, UPSTREAM_KEY,
};

/// The configured models. Nearly all recorded requests name one of them; the others are refused.
const MODELS: [&str; 8] = [
    "anthropic/claude-x",
    "bytedance/seed-x",
    "google/gemini-image",
    "google/gemini-x",
    "openai/gpt-5",
    "openai/gpt-audio",
    "openai/gpt-x",
    "xai/grok-4",
];
/// The upstream's name for all models, which occurs in no recorded request.
const UPSTREAM_NAME: &str = "sim-hidden-name";
/// The headers that an upstream of the caller's dialect may receive.
const UPSTREAM_HEADERS: [&str; 9] = [
    "accept-encoding",
    "host",
    "user-agent",
    "authorization",
    "accept",
    "content-type",
    "content-length",
    "anthropic-version",
    "anthropic-beta",
];

#[derive(Debug, Deserialize)]
struct Capture<'c> {
    sdk: String,
    name: String,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    #[serde(borrow)]
    body: Option<&'c RawValue>,
}

impl Capture<'_> {
    fn all() -> Vec<Self> {
        include_str!("../../fixtures/captures.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn dialect(&self) -> Dialect {
        Dialect::of_path(&self.target)
    }

    fn is_stream(&self) -> bool {
        let stream = |body: &RawValue| {
            let body: Value = serde_json::from_str(body.get()).unwrap();
            body["stream"] == true
        };
        self.target.contains(":stream") || self.body.is_some_and(stream)
    }

    /// Whether this is a token-count request. The gateway writes such a request anew, with only the members that the
    /// count depends on.
    fn is_count(&self) -> bool {
        ["/count_tokens", "/input_tokens", ":countTokens"]
            .iter()
            .any(|end| self.target.ends_with(end))
    }

    fn body(&self) -> &str {
        self.body.map_or("", RawValue::get)
    }

    fn request(&self, key: &Key) -> Request {
        let mut request = Request::new(&self.method, &self.target);
        for (name, value) in &self.headers {
            request = request.header(name, &value.replace("KEY", &key.secret));
        }
        if self.body.is_some() {
            request = request.body(self.body());
        }
        request
    }
}

/// A gateway with all these models. Their only upstream uses one dialect.
async fn gateway(upstream: Dialect) -> (TestGateway, Key) {
    let mut entries = format!(
        "[[channel]]
        name = \"only\"
        preset = \"sim\"
        base_url = \"http://SIM/v1\"
        credential = {{ file = \"upstream-key\" }}
        protocols = [\"{}\"]\n",
        upstream.name()
    );
    for id in MODELS {
        let _ = writeln!(
            entries,
            "[[model]]
            id = \"{id}\"
            kind = \"text\"
            routes = [{{ channel = \"only\", model = \"{UPSTREAM_NAME}\" }}]
            price = {{ input = \"1\", output = \"2\" }}
            profile = {{ max_output_tokens = 128000, vision = true, tools = true }}"
        );
    }
    GatewayBuilder::default().entries(&entries).funded().await
}

#[tokio::test]
async fn an_upstream_of_the_callers_dialect_receives_the_very_bytes() {
    for dialect in Dialect::ALL {
        let (gateway, key) = gateway(dialect).await;
        let captures = Capture::all();
        let own = captures
            .iter()
            .filter(|it| it.dialect() == dialect && !it.is_count());
        let mut compared = 0;
        for capture in own {
            gateway.sim.forget_calls();
            gateway.send(&capture.request(&key)).await;
            for call in gateway.sim.calls() {
                assert_untouched(capture, &call);
                compared += 1;
            }
        }
        assert!(compared > 15, "{dialect:?}: {compared} requests arrived");
    }
}

/// Asserts that the upstream received the recorded bytes, except for the documented edits.
#[track_caller]
fn assert_untouched(capture: &Capture<'_>, call: &Call) {
    let what = format!("{} {}", capture.sdk, capture.name);
    let received = std::str::from_utf8(&call.body).unwrap();
    assert_eq!(undone(capture, received), capture.body(), "{what}");
    for (name, value) in &call.headers {
        let name = name.as_str();
        assert!(UPSTREAM_HEADERS.contains(&name), "{what}: {name}");
        match name {
            "authorization" => {
                assert_eq!(*value, format!("Bearer {UPSTREAM_KEY}").as_str(), "{what}");
            }
            "anthropic-version" => assert_eq!(value, "2023-06-01", "{what}"),
            "user-agent" => assert!(value.as_bytes().starts_with(b"tollgate"), "{what}"),
            _ => {}
        }
    }
    let sent = |name: &str| {
        let found = capture.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    };
    let beta = call.headers.get("anthropic-beta");
    assert_eq!(
        beta.map(|value| value.to_str().unwrap()),
        sent("anthropic-beta"),
        "{what}"
    );
    let end = if capture.is_stream() { "?alt=sse" } else { "" };
    if capture.dialect() == Dialect::Generate {
        let query = call.query.as_deref().map(|query| format!("?{query}"));
        assert_eq!(query.as_deref().unwrap_or_default(), end, "{what}");
        assert!(call.path.contains(UPSTREAM_NAME), "{what}: {}", call.path);
    }
}

/// The received body with our edits undone. Each edit must occur exactly once.
#[track_caller]
fn undone(capture: &Capture<'_>, received: &str) -> String {
    let once = |text: &str, from: &str, to: &str| {
        let count = text.matches(from).count();
        assert_eq!(count, 1, "{}: {from} in {text}", capture.name);
        text.replace(from, to)
    };
    let sent: Value = serde_json::from_str(capture.body()).unwrap();
    let mut text = received.to_owned();
    if capture.dialect() != Dialect::Generate {
        let public = serde_json::to_string(&sent["model"]).unwrap();
        text = once(&text, &format!("\"{UPSTREAM_NAME}\""), &public);
    }
    match capture.dialect() {
        Dialect::Responses | Dialect::Interactions => match sent.get("store") {
            None => once(&text, "\"store\":false,", ""),
            Some(Value::Null) => once(&text, "\"store\":false", "\"store\":null"),
            Some(_) => text,
        },
        // Billing needs the usage chunk of every stream.
        Dialect::Chat if capture.is_stream() => match sent.get("stream_options") {
            None => once(&text, "\"stream_options\":{\"include_usage\":true},", ""),
            Some(Value::Null) => once(
                &text,
                "\"stream_options\":{\"include_usage\":true}",
                "\"stream_options\":null",
            ),
            Some(options) if options["include_usage"] == true => text,
            Some(options) => panic!("no capture has had {options}"),
        },
        _ => text,
    }
}

/// Sends every capture to all five upstream dialects: it is answered, or refused in the envelope of its endpoint. The
/// snapshot records the outcome of each.
#[tokio::test]
async fn every_capture_is_answered_or_refused_in_its_own_envelope() {
    let captures = Capture::all();
    let mut rows: Vec<String> = captures
        .iter()
        .map(|it| format!("{} {}:", it.sdk, it.name))
        .collect();
    for upstream in Dialect::ALL {
        let (gateway, key) = gateway(upstream).await;
        for (capture, row) in captures.iter().zip(&mut rows) {
            let answer = gateway.send(&capture.request(&key)).await;
            let _ = write!(row, " {}", outcome(capture, &answer));
        }
        gateway.verify().await;
    }
    let head = Dialect::ALL.map(Dialect::name).join(" ");
    insta::assert_snapshot!(format!("{head}\n\n{}", rows.join("\n")));
}

/// `200`, or the code of a refusal.
#[track_caller]
fn outcome(capture: &Capture<'_>, answer: &Answer) -> String {
    let what = format!("{} {}", capture.sdk, capture.name);
    if answer.status() == 200 {
        assert_eq!(answer.ended, BodyEnd::Complete, "{what}");
        let content_type = answer.header("content-type");
        if capture.is_stream() {
            assert_eq!(content_type, Some("text/event-stream"), "{what}");
        } else {
            assert_eq!(content_type, Some("application/json"), "{what}");
            answer.json();
        }
        return "200".to_owned();
    }
    let (status, code) = capture.dialect().failure(answer);
    assert!((400..500).contains(&status), "{what}: {}", answer.text());
    code
}
