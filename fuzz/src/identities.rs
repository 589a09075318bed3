//! A property of any error text of an upstream: it does not reveal the upstream's identity.

use std::sync::LazyLock;

use protocol::chat::read_failure;
use protocol::native::{Identity, rewrite_answer};
use protocol::scrub::{Names, explain, mask};
use protocol::{Dialect, Failure, Family};
use serde_json::json;

/// One identity in each line.
static PLANTED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let lines = include_str!("../identities.txt").lines();
    let is_identity = |line: &&str| !line.is_empty() && !line.starts_with('#');
    lines.filter(is_identity).collect()
});

/// The names of the model, and words that identify the channel.
const UPSTREAM: &str = "vendors/gpt-large-2026";
const PUBLIC: &str = "maker/large";
const HIDDEN: [&str; 2] = ["primary-eu", "vendor-name"];
const STATUSES: [u16; 8] = [400, 401, 404, 413, 422, 429, 500, 529];
const FAMILIES: [Family; 4] = [
    Family::OpenAi,
    Family::Messages,
    Family::Google,
    Family::Interactions,
];
/// Delimiters around a word.
const AROUND: [(&str, &str); 8] = [
    (" ", " "),
    ("'", "'"),
    ("\"", "\""),
    ("(", ")"),
    (" ", ". "),
    ("\n", ": "),
    ("=", ","),
    ("`", "`"),
];

/// An identity that is a separate word of the text does not reach the client, whatever envelope the
/// upstream uses.
pub fn identities(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut choice = data.iter().fold(data.len(), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let mut choose = |sides: usize| {
        let chosen = choice % sides;
        choice /= sides;
        chosen
    };
    let identity = PLANTED[choose(PLANTED.len())];
    let (identity, is_masked) = match identity.strip_prefix("+ ") {
        Some(identity) => (identity, false),
        None => (identity, true),
    };
    let (before, after) = AROUND[choose(AROUND.len())];
    let status = STATUSES[choose(STATUSES.len())];
    let family = FAMILIES[choose(FAMILIES.len())];
    let mut at = choose(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let (head, tail) = text.split_at(at);
    let text = format!("{head}{before}{identity}{after}{tail}");

    let hidden = HIDDEN.map(Box::from);
    let names = Names {
        hidden: &hidden,
        ..Names::of_model(UPSTREAM, PUBLIC)
    };
    if is_masked {
        assert_gone(&mask(&text, names), identity, &text);
    }
    let explained = explain(&text, names).unwrap_or_default();
    assert_gone(&explained, identity, &text);
    let body = match choose(6) {
        0 => text.clone(),
        1 => json!({"error": {"message": text, "type": "invalid_request_error"}}).to_string(),
        2 => json!({"type": "error", "error": {"type": "api_error", "message": text}}).to_string(),
        3 => json!({"error": {"code": status, "message": text, "status": "UNKNOWN"}}).to_string(),
        4 => json!({"message": text, "code": identity}).to_string(),
        _ => json!({"error": {"message": text, "param": identity, "code": identity}}).to_string(),
    };
    let failures = [
        read_failure(status, body.as_bytes(), names),
        error_in_answer(&body),
    ];
    for failure in failures {
        assert_gone(&shown(&failure, family), identity, &body);
    }
}

/// The failure of an answer with status 200 that is an error.
fn error_in_answer(error: &str) -> Failure {
    let error = serde_json::from_str(error).unwrap_or_else(|_| json!(error));
    let identity = Identity {
        id: "chatcmpl_ours".into(),
        model: PUBLIC.into(),
        created: 7,
    };
    let answer = json!({ "error": error }).to_string();
    let read = rewrite_answer(Dialect::Chat, answer.into(), &identity);
    read.expect_err("an error is no answer").into_failure()
}

/// Everything that a client sees of a failure.
fn shown(failure: &Failure, family: Family) -> String {
    let written = failure.write(family, "req_ours");
    String::from_utf8(written).expect("what we write is UTF-8")
}

fn assert_gone(shown: &str, identity: &str, sent: &str) {
    let (lower, identity) = (shown.to_lowercase(), identity.to_lowercase());
    for (at, _) in lower.match_indices(&*identity) {
        let ends = |neighbour: Option<char>| neighbour.is_none_or(|c| !c.is_alphanumeric());
        let before = lower[..at].chars().next_back();
        let after = lower[at + identity.len()..].chars().next();
        assert!(
            !(ends(before) && ends(after)),
            "{identity} is shown in {shown}, of {sent}"
        );
    }
}
