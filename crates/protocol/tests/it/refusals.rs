//! Tests that the texts of refusals explain the error and never identify the upstream.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::read_failure;
use protocol::scrub::{Names, explain};
use protocol::voice::{AudioEncoding, Frame, Watch};
use protocol::{Code, Dialect};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Refusal {
    text: String,
    request: serde_json::Value,
    tells: Vec<String>,
    #[serde(default)]
    upstream: String,
}

#[test]
fn callers_still_learn_what_to_change() {
    let refusals: Vec<Refusal> =
        serde_json::from_str(include_str!("../../fixtures/refusals/vendors.json")).unwrap();
    assert!(refusals.len() >= 50);
    let (mut explained, mut missing) = (Vec::new(), Vec::new());
    for refusal in &refusals {
        let request = [Bytes::from(refusal.request.to_string())];
        let names = Names {
            request: &request,
            ..Names::of_model(&refusal.upstream, "maker/model")
        };
        let text = explain(&refusal.text, names).unwrap_or_default();
        for part in &refusal.tells {
            if !text.contains(part) {
                missing.push(format!("{part:?} is missing in {text:?}"));
            }
        }
        explained.push(text);
    }
    assert_eq!(missing, [] as [String; 0]);
    insta::assert_json_snapshot!(explained);
}

/// Sentences with places for identities.
const SENTENCES: [&str; 8] = [
    "Invalid value for 'temperature' at {}: must be <= 2",
    "{} said: {}: the model does not support 'tools' ({})",
    "error from {}, see {} or contact {}.",
    "[{}] request to {} failed: messages.0.content is too long",
    "{}:{} rejected {}/{}",
    "model={} host={} account={} prompt is too long",
    "Could not process image\n\t{}\n{}",
    "{{\"error\":\"{}\",\"owner\":\"{}\"}} is not a valid tool schema",
];

/// Identities of every kind. Most are made from random parts, so that no list can contain them.
fn identity() -> impl Strategy<Value = String> {
    let label = "[a-z]{2}[a-z0-9]{2,9}";
    let ending = prop_oneof![
        Just("com"),
        Just("xyz"),
        Just("app"),
        Just("team"),
        Just("run"),
        Just("svc"),
        Just("store"),
        Just("live"),
        Just("page"),
        Just("ai"),
        Just("dev"),
        Just("local"),
        Just("lan"),
        Just("zone"),
    ];
    let host = (label, label, ending, prop::option::of(1_024_u16..)).prop_map(
        |(first, second, ending, port)| match port {
            Some(port) => format!("{first}-7.{second}q.{ending}:{port}"),
            None => format!("{first}.{second}q.{ending}"),
        },
    );
    let vendor = prop_oneof![
        Just("DeepSeek"),
        Just("Mistral"),
        Just("Seedance"),
        Just("OpenAI"),
        Just("Bedrock"),
        Just("Fireworks"),
        Just("Groq"),
        Just("LiteLLM"),
        Just("vLLM"),
        Just("Qwen"),
        Just("Cohere"),
        Just("openai.BadRequestError"),
        Just("AnthropicException"),
        Just("GroqError"),
        Just("google.api_core.exceptions.InvalidArgument"),
        Just("Moonshot"),
        Just("Perplexity"),
    ];
    let glued = prop_oneof![
        Just("deployments/NAME"),
        Just("model:NAME"),
        Just("NAME-0613"),
        Just("publishers/v/models/NAME@001"),
        Just("ft:NAME:org:7"),
        Just("NAME"),
        Just("accounts/fw/models/NAME"),
        Just("(NAME)"),
        Just("xNAMEx"),
    ];
    prop_oneof![
        host.clone(),
        host.clone()
            .prop_map(|host| format!("https://{host}/v1/chat/completions")),
        host.prop_map(|host| format!("ops.team@{host}")),
        "[1-9][0-9]{7,14}",
        "acct_[0-9]{5,9}",
        "(org|proj|user|cus|sub|run|req|trace|dep)[-_][a-zA-Z0-9]{5,24}",
        "arn:aws:[a-z]{4,8}:us-east-1:[0-9]{12}:[a-z]{4,9}/[a-z0-9]{6,12}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(:[0-9]{2,5})?",
        vendor.prop_map(str::to_owned),
        glued.prop_map(|form| form.replace("NAME", "zephyr-large-2026")),
    ]
}

fn text() -> impl Strategy<Value = (String, Vec<String>)> {
    let sentence = prop::sample::select(SENTENCES.to_vec());
    (sentence, prop::collection::vec(identity(), 4)).prop_map(|(sentence, identities)| {
        let mut text = String::new();
        let mut used = identities.iter().cycle();
        for (at, piece) in sentence.split("{}").enumerate() {
            if at > 0 {
                text.push_str(used.next().unwrap());
            }
            text.push_str(piece);
        }
        (text, identities)
    })
}

/// The texts that must not occur in the result: the identity itself and its longest part. A part that is short
/// or a common word may occur.
fn traces(identity: &str) -> Vec<String> {
    let mut traces = vec![identity.to_ascii_lowercase()];
    let is_part = |c: char| !c.is_ascii_alphanumeric();
    let longest = identity.split(is_part).max_by_key(|part| part.len());
    let is_telling = |part: &&str| {
        part.len() >= 5 && !["openai", "exceptions", "completions", "models"].contains(part)
    };
    traces.extend(longest.filter(is_telling).map(str::to_ascii_lowercase));
    traces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(planted_cases()))]
    #[test]
    fn planted_identities_never_reach_a_caller((text, identities) in text()) {
        let hidden = ["main-account".into(), "inference.vendor.app".into()];
        let request = [Bytes::from_static(br#"{"temperature":3,"tools":[]}"#)];
        let names = Names {
            upstream: "zephyr-large-2026",
            public: "maker/model",
            hidden: &hidden,
            request: &request,
        };
        let shown = explain(&text, names).unwrap_or_default().to_ascii_lowercase();
        prop_assert!(!shown.contains("zephyr"), "{shown}");
        for identity in identities {
            for trace in traces(&identity) {
                prop_assert!(!shown.contains(&trace), "{trace} of {text:?} is shown: {shown}");
            }
        }
    }
}

/// Frames of a session that contain a text of the upstream.
fn frames(text: &str, code: &str) -> Vec<String> {
    let whole =
        json!({ "type": "invalid_request_error", "code": code, "message": text, "param": code });
    let details = json!({ "type": "failed", "reason": code, "error": whole });
    let failed = "conversation.item.input_audio_transcription.failed";
    vec![
        json!({ "type": "error", "error": whole }).to_string(),
        json!({ "type": "error", "message": text, "code": code }).to_string(),
        json!({ "type": "error", "error": text }).to_string(),
        json!({ "type": failed, "item_id": "item_1", "error": whole }).to_string(),
        json!({ "type": "response.done", "response": { "status": "failed", "status_details": details } }).to_string(),
        json!({ "type": "warning", "message": text }).to_string(),
        json!({ "detail": text, "code": code }).to_string(),
        json!({ "details": [{ "reason": code, "message": text }] }).to_string(),
        // Two readers could see different errors in this frame.
        format!("{{\"type\":\"error\",\"error\":{{}},\"error\":{}}}", json!(text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(planted_cases() / 10))]
    #[test]
    fn planted_identities_never_reach_the_caller_of_a_session((text, identities) in text()) {
        let encoding = AudioEncoding::read(None, None, None, None).unwrap();
        for frame in frames(&text, &identities[0]) {
            for mut watch in [Watch::realtime("maker/model", None), Watch::speech(), Watch::transcript(encoding)] {
                let names = Names::of_model("zephyr-large-2026", "maker/model");
                let changed = watch.on_upstream(Frame::Text(&frame), 0, names);
                let shown = changed.map_or(frame.clone(), |changed| changed.text).to_ascii_lowercase();
                prop_assert!(!shown.contains("zephyr"), "{shown}");
                for trace in identities.iter().flat_map(|identity| traces(identity)) {
                    prop_assert!(!shown.contains(&trace), "{trace} of {frame} is shown: {shown}");
                }
            }
        }
    }
}

/// `TOLLGATE_REFUSAL_CASES=1000000` runs the long scan.
fn planted_cases() -> u32 {
    let asked = std::env::var("TOLLGATE_REFUSAL_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

#[test]
fn a_vendors_name_goes_even_when_the_caller_wrote_it_first() {
    let request = [Bytes::from_static(
        b"is this DeepSeek on main-account or together?",
    )];
    let hidden = ["main-account".into(), "together".into()];
    let names = Names {
        hidden: &hidden,
        request: &request,
        ..Names::of_model("m", "maker/model")
    };
    assert_eq!(
        explain(
            "DeepSeek refused the request of main-account at together: too long",
            names
        )
        .unwrap(),
        "[upstream] refused the request of [upstream] at [upstream]: too long"
    );
}

/// Whoever lists guesses in a request must not learn from a refusal which of them is right.
#[test]
fn a_clients_guesses_are_not_confirmed() {
    const GUESSES: [&str; 26] = [
        "nebius.com",
        "api.hyperbolic.xyz",
        "gateway-3.corp:8443",
        "10.0.0.7:8443",
        "ops@vendor.example.com",
        "https://docs.nebius.com/errors",
        "https://status.zork.example/7",
        "us-east-1",
        "swedencentral",
        "europe-west4",
        "cn-beijing",
        "org-a1b2c3",
        "acct_1234567",
        "req_011CSHoEeqs5C35K2UUqR7Fy",
        "123e4567-e89b-12d3-a456-426614174000",
        "arn:aws:bedrock:us-east-1:123456789012:model/x",
        "123456789012",
        "nebius",
        "Databricks",
        "SageMaker",
        "Together",
        "lambda",
        "Modal",
        "RunPod",
        "replicate",
        "Meta",
    ];
    let body =
        json!({ "model": "m", "messages": [{ "role": "user", "content": GUESSES.join(" ") }] });
    for request in [
        body.to_string(),
        json!({ "prompt": GUESSES.join("\n") }).to_string(),
    ] {
        let request = [Bytes::from(request)];
        let names = Names {
            request: &request,
            ..Names::of_model("m-1", "maker/model")
        };
        for guess in GUESSES {
            let text = format!("The request to {guess} was rejected: messages must not be empty");
            let shown = explain(&text, names).unwrap();
            assert!(!shown.contains(guess), "{shown}");
            assert!(shown.ends_with("messages must not be empty"), "{shown}");
        }
        let account = "account 12345 is not allowed to use this model";
        let request = [Bytes::from_static(b"12345")];
        let names = Names {
            request: &request,
            ..names
        };
        assert!(!explain(account, names).unwrap().contains("12345"));
    }
}

/// Names and ids of a client's own tools, schemas and items, which look like random ids.
const LONG_NAMES: [&str; 7] = [
    "mcp__context7__resolve-library-id",
    "text_editor_20250728",
    "code_execution_20250825",
    "extract_invoice_v2_schema",
    "user_lookup_by_email_v2",
    "rs_68b1c2d3e4f5061728394a5b6c7d8e9f",
    "msg_68b1c2d3e4f5061728394a5b6c7d8e9f",
];

/// What a client wrote itself still explains an error, unless it may identify somebody.
#[test]
fn a_clients_own_words_still_explain() {
    let request = json!({
        "max_tokens": 4_000_000_000_u64,
        "image_url": { "url": "https://pics.example.org/cat.png?sig" },
        "tools": [{ "name": "look_up_zork", "schema": { "zork": { "kind": 1 } } }],
        "properties": { "cc": {}, "cluster": {}, "org": {} },
        "metadata": { "run": "a long one" },
        "user_text": "cat.png deploy.sh main.cc fc_0123456789abcdef01234567 item 12",
    });
    let request = [Bytes::from(request.to_string())];
    let names = Names {
        request: &request,
        ..Names::of_model("m-1", "maker/model")
    };
    for text in [
        "max_tokens must not exceed 64000, but is 4000000000",
        "Failed to download https://pics.example.org/cat.png?sig",
        "Unknown tool look_up_zork",
        "Unknown member tools.0.schema.zork.kind",
        "Invalid 'metadata.run': string too long",
        "tools.0.input_schema.properties.cc: invalid value",
        "tools[0].input_schema.properties.cc: invalid value",
        "tools.0.input_schema.properties.cluster: invalid value",
        "tools.0.input_schema.properties.org: invalid value",
        "The file cat.png is not valid",
        "The file deploy.sh is not valid",
        "The file main.cc is not valid",
        "No output was found for call fc_0123456789abcdef01234567",
        "These options cannot be used together",
    ] {
        assert_eq!(explain(text, names).as_deref(), Some(text));
    }
    for path in ["metadata.run", "tools[0].name", "properties.cluster"] {
        let body = json!({ "error": { "message": "string too long", "param": path } });
        let body = body.to_string();
        let failure = read_failure(Dialect::Chat, 400, body.as_bytes(), names);
        assert_eq!(failure.param.as_deref(), Some(path));
    }
}

#[test]
fn long_names_of_a_client_still_explain() {
    let request = [Bytes::from(json!({ "tools": LONG_NAMES }).to_string())];
    let names = Names {
        request: &request,
        ..Names::of_model("m-1", "maker/model")
    };
    for name in LONG_NAMES {
        let text = format!("The name '{name}' is not valid: it must not be empty");
        assert_eq!(explain(&text, names).as_deref(), Some(&*text));
    }
}

/// A string of the request that is a guess as a whole confirms no account, no region and no host.
#[test]
fn strings_of_a_request_confirm_no_identities() {
    const GUESSES: [&str; 11] = [
        "org-a1b2c3d4e5f6g7h8i9j0",
        "org_ab12-cd34-ef56-gh78-ij90",
        "acct_1234567890abcdef1234",
        "proj_1234567890abcdef1234",
        "user-1234567890abcdef1234",
        "req_011CSHoEeqs5C35K2UUqR7Fy",
        "request-011CSHoEeqs5C35K2UUqR7Fy",
        "trace-1234567890abcdef1234",
        "inference-pool-123456789012",
        "northamerica-northeast1",
        "metadata.zork.com",
    ];
    let request = [Bytes::from(json!({ "metadata": GUESSES }).to_string())];
    let names = Names {
        request: &request,
        ..Names::of_model("m-1", "maker/model")
    };
    for guess in GUESSES {
        let text = format!("The request to {guess} was rejected: messages must not be empty");
        let shown = explain(&text, names).unwrap();
        assert!(!shown.contains(guess), "{shown}");
    }
}

/// The presets and the makers of the catalog, with the hosts of the presets.
#[test]
fn every_vendor_that_the_program_knows_is_withheld() {
    const PLAIN: [&str; 14] = [
        "ai",
        "anthropic-dated",
        "compatible",
        "converse",
        "dated",
        "express",
        "gateway",
        "localhost",
        "mantle",
        "openai-compatible",
        "sim",
        "vertex-express",
        "writer",
        "meta",
    ];
    let presets = include_str!("../../../../catalog/presets.toml");
    let models = include_str!("../../../../catalog/models.toml");
    let value = |line: &'static str, name: &str| {
        let rest = line.strip_prefix(name)?.trim_start().strip_prefix("= \"")?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let mut known = Vec::new();
    for line in presets.lines() {
        if let Some(name) = value(line, "name") {
            known.push(name.to_owned());
            known.extend(name.split('-').map(str::to_owned));
        }
        if let Some(url) = value(line, "base_url") {
            let host = url.split('/').nth(2).unwrap_or_default();
            let host = host.rsplit("}.").next().unwrap_or_default();
            let host = host.split(':').next().unwrap_or_default();
            known.push(
                host.rsplit('}')
                    .next()
                    .unwrap_or_default()
                    .trim_start_matches('-')
                    .to_owned(),
            );
        }
    }
    let ids = models.lines().filter_map(|line| value(line, "id"));
    known.extend(
        ids.filter_map(|id| id.split_once('/'))
            .map(|(maker, _)| maker.to_owned()),
    );
    known.sort();
    known.dedup();
    assert!(known.len() > 60, "{known:?}");
    let mut shown = Vec::new();
    for name in known.iter().filter(|name| !PLAIN.contains(&&***name)) {
        let name = match &**name {
            // In lower case it is a word of its own.
            "together" => "Together",
            other => other,
        };
        let request = [Bytes::from(format!(r#"{{"prompt":"is this {name}?"}}"#))];
        let names = Names {
            request: &request,
            ..Names::of_model("m-1", "maker/model")
        };
        let text = format!("The service {name} has rejected this request: too many messages");
        if explain(&text, names).unwrap().contains(name) {
            shown.push(name.to_owned());
        }
    }
    assert_eq!(shown, [] as [&str; 0]);
}

/// A client must not make a serving thread search megabytes for each of a thousand words.
#[test]
fn only_some_words_are_looked_for_and_only_in_the_beginning_of_a_request() {
    let far = [
        Bytes::from(vec![b' '; 1 << 20]),
        Bytes::from_static(b"zork"),
    ];
    let near = [Bytes::from_static(b"zork")];
    let explain_with = |text: &str, request: &[Bytes]| {
        let names = Names {
            request,
            ..Names::of_model("m", "maker/model")
        };
        explain(text, names)
    };
    let text = "the value zork is not valid";
    assert_eq!(explain_with(text, &near).as_deref(), Some(text));
    assert_eq!(
        explain_with(text, &far).as_deref(),
        Some("the value […] is not valid")
    );
    let many = format!("{}zork", "invalid value xyzzy ".repeat(32));
    assert!(!explain_with(&many, &near).unwrap().contains("zork"));
}

/// A refusal as a vendor sends it, and its meaning.
#[derive(Deserialize)]
struct Meaning {
    vendor: String,
    status: u16,
    means: String,
    body: serde_json::Value,
}

#[test]
fn the_meaning_of_a_refusal_is_known_for_every_vendor() {
    let refusals: Vec<Meaning> =
        serde_json::from_str(include_str!("../../fixtures/refusals/meanings.json")).unwrap();
    let names = Names::of_model("llm-7b:latest", "maker/model");
    for refusal in &refusals {
        let body = refusal.body.to_string();
        let code = match refusal.means.as_str() {
            "no_such_model" => Code::UpstreamError,
            "context_overflow" => Code::ContextLengthExceeded,
            "request" => Code::UpstreamRejected,
            other => panic!("no such meaning: {other}"),
        };
        for dialect in Dialect::ALL {
            let failure = read_failure(dialect, refusal.status, body.as_bytes(), names);
            let outcome = (failure.code, failure.status());
            let status = match code {
                Code::UpstreamError => 502,
                _ if refusal.status >= 500 => 400,
                _ => refusal.status,
            };
            let vendor = &refusal.vendor;
            assert_eq!(outcome, (code, status), "{vendor}, {dialect}: {body}");
            assert!(!failure.message.contains("llm-7b"), "{vendor}: {failure}");
        }
    }
}

/// Upstreams report an unknown model with different statuses. With 400 the gateway tries another route,
/// as with 404.
#[test]
fn an_unknown_model_is_known_by_its_words_alone() {
    let refusals: Vec<Meaning> =
        serde_json::from_str(include_str!("../../fixtures/refusals/meanings.json")).unwrap();
    let names = Names::of_model("llm-7b:latest", "maker/model");
    for refusal in refusals {
        if refusal.means == "no_such_model" {
            let body = refusal.body.to_string();
            let failure = read_failure(Dialect::Chat, 400, body.as_bytes(), names);
            assert_eq!(failure.code, Code::UpstreamError, "{}", refusal.vendor);
        }
    }
}
