//! Models at Amazon Bedrock: keys and signatures, model names in the path, binary streams, errors. The simulated
//! upstream checks every signature.

use serde_json::json;

use crate::harness::{
    Answer, AnswerContent, Conversation, Dialect, GatewayBuilder, Key, TestGateway, UPSTREAM_KEY,
    ask, cost, with,
};

const ARN: &str =
    "arn:aws:bedrock:us-east-1:471147114711:application-inference-profile/ab12cd34ef56";
const PROFILE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
/// A model that reasons without being asked, and refuses tool results that come without its earlier reasoning.
const DEMANDING: &str = "sim-reason+demand-reasoning";

/// A channel for each kind of credential.
pub(super) const CHANNELS: [(&str, &str); 5] = [
    (
        "by-key",
        r#"preset = "bedrock"
        credential = { file = "upstream-key" }"#,
    ),
    (
        "signed",
        r#"preset = "bedrock"
        account = { region = "us-east-1", access_key_id = { file = "key-id" } }
        credential = { file = "aws-secret" }"#,
    ),
    (
        "temporary",
        r#"preset = "bedrock"
        account = { region = "us-east-1", access_key_id = { file = "temporary-key-id" }, session_token = { file = "aws-token" } }
        credential = { file = "aws-secret" }"#,
    ),
    (
        "mantle",
        r#"preset = "bedrock-mantle"
        account = { region = "us-east-1", access_key_id = { file = "key-id" } }
        credential = { file = "aws-secret" }"#,
    ),
    (
        "converse",
        r#"preset = "bedrock-converse"
        account = { region = "us-east-1", access_key_id = { file = "key-id" } }
        credential = { file = "aws-secret" }"#,
    ),
];

pub(super) fn builder() -> GatewayBuilder {
    GatewayBuilder::default()
        .file("key-id", "AKIASIM4711\n")
        .file("temporary-key-id", "ASIASIM4711\n")
        .file("aws-secret", "sim/secret+access-key-4711\n")
        .file("aws-token", "sim-session/4711+token==\n")
        .file("wrong-secret", "other/secret+access-key-4711\n")
        .file("poor-key", "sim-poor-key\n")
}

pub(super) fn channel(name: &str, settings: &str) -> String {
    format!("[[channel]]\nname = \"{name}\"\nbase_url = \"http://SIM\"\n{settings}\n")
}

pub(super) fn model(id: &str, routes: &[(&str, &str)]) -> String {
    let routes: Vec<_> = routes
        .iter()
        .enumerate()
        .map(|(place, (channel, model))| {
            format!("{{ channel = \"{channel}\", model = \"{model}\", priority = {place} }}")
        })
        .collect();
    format!(
        "[[model]]\nid = \"maker/{id}\"\nkind = \"text\"\nroutes = [{}]\n\
         price = {{ input = \"1.25\", cached_input = \"0.125\", output = \"10\" }}\n\
         profile = {{ max_output_tokens = 128000, vision = true, tools = true }}\n",
        routes.join(", ")
    )
}

/// A test gateway with all channels, each with a model of this name.
async fn gateway(name: &str) -> (TestGateway, Key) {
    let add = |builder: GatewayBuilder, (id, settings): (&str, &str)| {
        builder
            .entries(&channel(id, settings))
            .entries(&model(id, &[(id, name)]))
    };
    CHANNELS.into_iter().fold(builder(), add).funded().await
}

#[tokio::test]
async fn three_turns_with_tools_work_for_every_caller_and_credential() {
    let (gateway, key) = gateway(DEMANDING).await;
    for (id, _) in CHANNELS {
        for caller in Dialect::ALL {
            for stream in [false, true] {
                three_turns(&gateway, &key, (caller, id), stream).await;
            }
        }
    }
    gateway.verify().await;
}

async fn three_turns(
    gateway: &TestGateway,
    key: &Key,
    (caller, id): (Dialect, &str),
    stream: bool,
) {
    let what = format!("{caller:?} {id}, streamed: {stream}");
    let prompt = "First look_up, then write_down what was found.";
    let mut talk = Conversation::begin(caller, prompt, &["look_up", "write_down"]);
    for (tool, result) in [("look_up", "found 42"), ("write_down", "written 42")] {
        let said = turn(gateway, key, (caller, id), &mut talk, stream).await;
        let AnswerContent::Calls(calls) = said else {
            panic!("{what}: no call of {tool} but {said:?}");
        };
        assert_eq!(calls[0].1, tool, "{what}");
        talk.add_tool_results(&calls, result);
    }
    let said = turn(gateway, key, (caller, id), &mut talk, stream).await;
    assert!(
        matches!(&said, AnswerContent::Text(text) if text.contains("42")),
        "{what}: {said:?}"
    );
    for call in gateway.sim.calls_of("sim-reason") {
        let action = match (id, stream) {
            ("mantle", _) => "/anthropic/v1/messages",
            ("converse", false) => "/model/sim-reason%2Bdemand-reasoning/converse",
            ("converse", true) => "/model/sim-reason%2Bdemand-reasoning/converse-stream",
            (_, false) => "/model/sim-reason%2Bdemand-reasoning/invoke",
            (_, true) => "/model/sim-reason%2Bdemand-reasoning/invoke-with-response-stream",
        };
        assert_eq!(call.path, action, "{what}");
        let is_signed = call.headers["authorization"]
            .as_bytes()
            .starts_with(b"AWS4-");
        assert_eq!(is_signed, id != "by-key", "{what}");
        assert_eq!(
            call.headers.contains_key("anthropic-version"),
            id == "mantle",
            "{what}"
        );
    }
    gateway.sim.forget_calls();
}

async fn turn(
    gateway: &TestGateway,
    key: &Key,
    (caller, id): (Dialect, &str),
    talk: &mut Conversation,
    stream: bool,
) -> AnswerContent {
    let request = caller.call(&key.secret, &format!("maker/{id}"), talk.body(), stream);
    let answer = gateway.send(&request).await;
    assert_eq!(answer.status(), 200, "{caller:?} {id}: {}", answer.text());
    talk.add_answer(&answer, stream)
}

/// Checks that the answer contains no profile or account names and no additions of the host.
#[track_caller]
fn assert_clean(what: &str, answer: &Answer) {
    let text = answer.text();
    for sign in [
        "arn:",
        "471147114711",
        "inference-profile",
        "us-east-1",
        "us.anthropic",
        "AKIASIM",
        "invocationMetrics",
        "amazon",
        "bedrock",
        "Exception",
        "contentBlock",
        "stopReason",
        "inputTokens",
        "\"p\":",
        "msg_sim",
        "sim-upstream",
        UPSTREAM_KEY,
    ] {
        assert!(!text.contains(sign), "{what}: {sign} in {text}");
    }
    for (name, _) in &answer.head.headers {
        assert!(!name.starts_with("x-amz"), "{what}: {name}");
    }
}

#[tokio::test]
async fn profiles_are_named_in_the_path_and_never_reach_callers() {
    for place in [1, 4] {
        let (channel, settings) = CHANNELS[place];
        profiles_never_reach_callers(channel, settings).await;
    }
}

async fn profiles_never_reach_callers(channel_name: &str, settings: &str) {
    let mut builder = builder().entries(&channel(channel_name, settings));
    for (id, name) in [("profile", PROFILE), ("arn", ARN)] {
        builder = builder.entries(&model(id, &[(channel_name, name)]));
    }
    let (gateway, key) = builder.funded().await;
    for (id, name, segment) in [
        (
            "profile",
            PROFILE,
            "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0",
        ),
        (
            "arn",
            ARN,
            "arn%3Aaws%3Abedrock%3Aus-east-1%3A471147114711%3Aapplication-inference-profile%2Fab12cd34ef56",
        ),
    ] {
        for faults in [
            "",
            "status=400",
            "status=403",
            "status=404",
            "status=424",
            "status=429",
            "status=500",
            "error-in-200",
            "error-event=0",
            "error-event=2",
            "garbage-event=2",
            "cut=content",
            "truncate=content",
            "garbage",
        ] {
            for caller in Dialect::ALL {
                for stream in [false, true] {
                    gateway.sim.queue_faults(name, faults, 1).unwrap();
                    let body = caller.ask("say exactly: plain words");
                    let request = caller.call(&key.secret, &format!("maker/{id}"), body, stream);
                    let answer = gateway.send(&request).await;
                    let what = format!("{channel_name} {id} {caller:?} {faults} {stream}");
                    assert_clean(&what, &answer);
                    if faults.is_empty() {
                        assert_eq!(answer.status(), 200, "{what}: {}", answer.text());
                        assert!(answer.text().contains("plain"), "{what}: {}", answer.text());
                    }
                    // For a refused credential, one call is enough.
                    if faults == "status=403" {
                        break;
                    }
                }
                if faults == "status=403" {
                    break;
                }
            }
        }
        let calls = gateway.sim.calls_of(name);
        assert!(
            calls.iter().all(|call| call.path.contains(segment)),
            "{:?}",
            calls[0].path
        );
    }
    gateway.verify().await;
}

#[tokio::test]
async fn the_bill_is_that_of_the_models_own_usage() {
    let (gateway, key) = gateway("sim-chat").await;
    for (id, _) in CHANNELS {
        for stream in [false, true] {
            let before = gateway.usage(&key).await;
            let body = Dialect::Messages.ask("say exactly: some words to be counted");
            let model = format!("maker/{id}");
            let request = Dialect::Messages.call(&key.secret, &model, body, stream);
            gateway.send(&request).await.ok();
            let calls = gateway.sim.calls_of("sim-chat");
            let used = calls.last().unwrap().true_usage.unwrap();
            let spent = gateway.usage(&key).await - before;
            let exact = cost(used.fresh_input, used.cache_read, used.output);
            assert_eq!(spent, exact, "{id} {stream}: {used:?}");
        }
    }
    gateway.verify().await;
}

/// Some endpoints of Bedrock take betas in the body, others in a header.
#[tokio::test]
async fn betas_go_where_the_endpoint_takes_them() {
    let (gateway, key) = gateway("sim-chat").await;
    for (id, in_body) in [("signed", true), ("mantle", false)] {
        let model = format!("maker/{id}");
        let request = Dialect::Messages
            .call(&key.secret, &model, Dialect::Messages.ask("hi"), true)
            .header("anthropic-beta", "one-2026-01-01, two-2026-01-01");
        gateway.send(&request).await.ok();
        let calls = gateway.sim.calls_of("sim-chat");
        let call = calls.last().unwrap();
        let body: serde_json::Value = serde_json::from_slice(&call.body).unwrap();
        let betas = json!(["one-2026-01-01", "two-2026-01-01"]);
        assert_eq!(body["anthropic_beta"] == betas, in_body, "{body}");
        assert_eq!(
            call.headers.contains_key("anthropic-beta"),
            !in_body,
            "{id}"
        );
        assert_eq!(body.get("model").is_some(), !in_body, "{body}");
        assert_eq!(body.get("stream").is_some(), !in_body, "{body}");
    }
}

#[tokio::test]
async fn another_route_answers_when_this_one_is_refused() {
    let wrong = r#"preset = "bedrock"
        account = { region = "us-east-1", access_key_id = { file = "key-id" } }
        credential = { file = "wrong-secret" }"#;
    let far = r#"preset = "bedrock"
        account = { region = "eu-west-1", access_key_id = { file = "key-id" } }
        credential = { file = "aws-secret" }"#;
    let poor = r#"preset = "bedrock"
        credential = { file = "poor-key" }"#;
    let mut builder = builder().entries(&channel("good", CHANNELS[1].1));
    for (id, settings) in [("wrong", wrong), ("far", far), ("poor", poor)] {
        builder = builder
            .entries(&channel(id, settings))
            .entries(&model(id, &[(id, "sim-chat"), ("good", "sim-chat")]));
    }
    let (gateway, key) = builder.funded().await;
    for id in ["wrong", "far", "poor"] {
        gateway.sim.forget_calls();
        let body = with(
            ask("say exactly: from the other"),
            &json!({ "model": format!("maker/{id}") }),
        );
        let answer = gateway.chat(&key, &body).await.ok().json();
        assert_eq!(
            answer["choices"][0]["message"]["content"], "from the other",
            "{id}"
        );
        let statuses: Vec<_> = gateway
            .sim
            .calls()
            .iter()
            .filter_map(|call| call.status)
            .collect();
        let first = if id == "poor" { 400 } else { 403 };
        assert_eq!(statuses, [first, 200], "{id}");
    }
    gateway.verify().await;
}

/// Models with an OpenAI-compatible endpoint are called there, with signed requests.
#[tokio::test]
async fn models_with_a_compatible_endpoint_are_called_there() {
    let settings = r#"preset = "bedrock-openai"
        account = { region = "us-east-1", access_key_id = { file = "key-id" } }
        credential = { file = "aws-secret" }"#;
    let entry = channel("open", settings).replace("http://SIM", "http://SIM/openai/v1");
    let builder = builder()
        .entries(&entry)
        .entries(&model("open", &[("open", "openai.gpt-oss-120b-1:0")]));
    let (gateway, key) = builder.funded().await;
    for caller in Dialect::ALL {
        for stream in [false, true] {
            let body = caller.ask("say exactly: plain words");
            let request = caller.call(&key.secret, "maker/open", body, stream);
            let answer = gateway.send(&request).await;
            let what = format!("{caller:?} {stream}: {}", answer.text());
            assert_eq!(answer.status(), 200, "{what}");
            assert!(answer.text().contains("plain"), "{what}");
            assert!(!answer.text().contains("gpt-oss"), "{what}");
        }
    }
    let calls = gateway.sim.calls_of("openai.gpt-oss-120b-1:0");
    assert!(
        calls
            .iter()
            .all(|call| call.path.starts_with("/openai/v1/"))
    );
    gateway.verify().await;
}
