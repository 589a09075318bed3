//! Clouds that host vendors' models: each serves callers of every dialect, and none can be identified by its answers.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{
    AnswerContent, Conversation, Dialect, GatewayBuilder, Key, Request, TestGateway, UPSTREAM_KEY,
    with,
};

/// Names of the operator's accounts, which no caller may see.
const PROJECT: &str = "acme-project-7788";
const RESOURCE: &str = "acme-resource-7788";
const TENANT: &str = "acme-tenant-7788";
const CLIENT: &str = "acme-client-7788";

/// For each channel: its name, its settings, and the upstream's name of the model.
const CLOUDS: [(&str, &str, &str); 9] = [
    (
        "azure",
        r#"preset = "azure"
base_url = "http://SIM/openai/v1"
account = { resource = "acme-resource-7788" }
credential = { file = "upstream-key" }
protocols = ["chat"]"#,
        "sim-reason deployment/1",
    ),
    (
        "azure-responses",
        r#"preset = "azure"
base_url = "http://SIM/openai/v1"
credential = { file = "upstream-key" }
protocols = ["responses"]"#,
        "sim-reason",
    ),
    (
        "azure-token",
        r#"preset = "azure"
base_url = "http://SIM/openai/v1"
account = { tenant = "acme-tenant-7788", client_id = "acme-client-7788", authority = "http://SIM" }
credential = { file = "upstream-key" }
protocols = ["chat"]"#,
        "sim-reason",
    ),
    (
        "azure-dated",
        r#"preset = "azure-dated"
base_url = "http://SIM/openai"
account = { api_version = "2025-04-01-preview" }
credential = { file = "upstream-key" }
protocols = ["chat"]"#,
        "sim-reason deployment/1",
    ),
    (
        "azure-anthropic",
        r#"preset = "azure-anthropic"
base_url = "http://SIM/anthropic"
credential = { file = "upstream-key" }"#,
        "sim-reason",
    ),
    (
        "azure-anthropic-token",
        r#"preset = "azure-anthropic"
base_url = "http://SIM/anthropic"
account = { tenant = "acme-tenant-7788", client_id = "acme-client-7788", authority = "http://SIM" }
credential = { file = "upstream-key" }"#,
        "sim-reason",
    ),
    (
        "vertex",
        r#"preset = "vertex"
base_url = "http://SIM"
account = { project = "acme-project-7788", location = "us-east5" }
credential = { file = "account.json" }"#,
        "sim-reason",
    ),
    (
        "vertex-express",
        r#"preset = "vertex-express"
base_url = "http://SIM"
credential = { file = "upstream-key" }"#,
        "sim-reason",
    ),
    (
        "vertex-anthropic",
        r#"preset = "vertex-anthropic"
base_url = "http://SIM"
account = { project = "acme-project-7788" }
credential = { file = "account.json" }"#,
        "sim-reason@20250929",
    ),
];

fn model_of(channel: &str) -> String {
    format!("maker/{channel}")
}

fn entry(name: &str, settings: &str, upstream_model: &str) -> String {
    let mut entry = String::new();
    let _ = write!(
        entry,
        "[[channel]]
name = \"{name}\"
{settings}
[[model]]
id = \"{}\"
kind = \"text\"
routes = [{{ channel = \"{name}\", model = \"{upstream_model}\" }}]
price = {{ input = \"1.25\", output = \"10\" }}
profile = {{ max_output_tokens = 128000, vision = true, tools = true }}
",
        model_of(name)
    );
    entry
}

/// A test gateway with these channels. The key file refers to a token endpoint of the simulated upstream.
async fn gateway_with_clouds(
    clouds: &[(&str, &str, &str)],
    token_path: &str,
) -> (TestGateway, Key) {
    let add = |builder: GatewayBuilder, (name, settings, model): &(&str, &str, &str)| {
        builder.entries(&entry(name, settings, model))
    };
    let key_file = sim::service_account(&format!("http://SIM{token_path}"));
    clouds
        .iter()
        .fold(GatewayBuilder::default(), add)
        .file("account.json", &key_file)
        .funded()
        .await
}

/// Checks that a text contains nothing that identifies the cloud or the account.
#[track_caller]
fn assert_clean(what: &str, text: &str) {
    for sign in [
        UPSTREAM_KEY,
        PROJECT,
        RESOURCE,
        TENANT,
        CLIENT,
        "sim-token",
        "sim-reason",
        "us-east5",
        "deployment/1",
        "sim-project",
        "filter_results",
        "filter_offsets",
        "127.0.0.1",
    ] {
        assert!(!text.contains(sign), "{what}: {sign} in {text}");
    }
}

/// All dialects, whole and streamed, with a tool call and its result.
#[tokio::test]
async fn every_cloud_serves_every_caller() {
    let (gateway, key) = gateway_with_clouds(&CLOUDS, "/token").await;
    for (cloud, _, _) in CLOUDS {
        for caller in Dialect::ALL {
            for stream in [false, true] {
                let what = format!("{caller:?} by {cloud}, streamed: {stream}");
                let mut talk = Conversation::begin(caller, "look_up the number", &["look_up"]);
                for turn in 0..2 {
                    let request = caller.call(&key.secret, &model_of(cloud), talk.body(), stream);
                    let answer = gateway.send(&request).await;
                    assert_eq!(answer.status(), 200, "{what}: {}", answer.text());
                    // Native routes pass all members on, including those of the content filter.
                    let is_native = cloud.starts_with("azure") && caller == Dialect::Chat;
                    let text = answer.text();
                    let text = if is_native {
                        text.replace("filter_results", "")
                            .replace("filter_offsets", "")
                    } else {
                        text.to_owned()
                    };
                    assert_clean(&what, &text);
                    if caller != Dialect::Generate {
                        assert!(text.contains(&model_of(cloud)), "{what}: {text}");
                    }
                    match (turn, talk.add_answer(&answer, stream)) {
                        (0, AnswerContent::Calls(calls)) => talk.add_tool_results(&calls, "42"),
                        (1, AnswerContent::Text(text)) if text.contains("42") => {}
                        (turn, said) => panic!("{what}: {said:?} in turn {turn}"),
                    }
                }
            }
        }
    }
    let asked = gateway.sim.calls_of("token");
    // Two token endpoints with two channels each; every channel asks once.
    assert_eq!(asked.len(), 4, "{asked:?}");
    gateway.verify().await;
}

/// Chat clients read `choices[0].delta` of every chunk except the usage chunk.
#[tokio::test]
async fn no_chunk_of_a_content_filter_reaches_chat_clients() {
    let (gateway, key) = gateway_with_clouds(&CLOUDS[..1], "/token").await;
    for more in [
        json!({}),
        json!({ "stream_options": { "include_usage": true } }),
    ] {
        let body = with(Dialect::Chat.ask("say exactly: fine"), &more);
        let call = Dialect::Chat.call(&key.secret, &model_of("azure"), body, true);
        let answer = gateway.send(&call).await.ok();
        let chunks = answer.text().lines();
        let chunks = chunks.filter_map(|line| line.strip_prefix("data: {"));
        let chunks: Vec<Value> = chunks
            .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap())
            .collect();
        assert!(chunks.len() > 2, "{}", answer.text());
        for chunk in chunks {
            let has_delta = chunk["choices"][0]["delta"].is_object();
            assert!(has_delta || chunk["usage"].is_object(), "{chunk}");
            assert_eq!(chunk["object"], "chat.completion.chunk");
        }
    }
}

/// Tokens that expire after two seconds are renewed under load, and no call fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_renewed_under_load_without_a_lost_call() {
    let cloud = CLOUDS
        .iter()
        .find(|(name, _, _)| *name == "vertex")
        .unwrap();
    let (gateway, key) = gateway_with_clouds(&[*cloud], "/token/life-2").await;
    let gateway = Arc::new(gateway);
    let until = Instant::now() + Duration::from_secs(9);
    let mut callers = Vec::new();
    for _ in 0..8 {
        let (gateway, key) = (Arc::clone(&gateway), key.clone());
        callers.push(tokio::spawn(async move {
            let mut served = 0_u32;
            while Instant::now() < until {
                let body = Dialect::Chat.ask("say exactly: fine");
                let call = Dialect::Chat.call(
                    &key.secret,
                    &model_of("vertex"),
                    body,
                    served.is_multiple_of(2),
                );
                let answer = gateway.send(&call).await;
                assert_eq!(answer.status(), 200, "{}", answer.text());
                served += 1;
                // Slow down, because the simulator's log is bounded and must still contain the first token request.
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
            served
        }));
    }
    let mut served = 0;
    for caller in callers {
        served += caller.await.unwrap();
    }
    assert!(served >= 300, "{served}");
    let refused = gateway.sim.calls_of("sim-reason");
    assert!(refused.iter().all(|call| call.status == Some(200)));
    let asked = gateway.sim.calls_of("token").len();
    assert!(
        (4..=14).contains(&asked),
        "{asked} tokens for {served} calls"
    );
}

/// If the token endpoint refuses our secret, the channel is unavailable and the log names the cause.
#[tokio::test]
async fn a_refused_client_secret_is_an_outage_with_a_clear_log_line() {
    let (name, settings, model) = CLOUDS[2];
    let settings = settings.replace("upstream-key", "bad-key");
    let (gateway, key) = GatewayBuilder::default()
        .entries(&entry(name, &settings, model))
        .file("bad-key", "sim-bad-key")
        .funded()
        .await;
    let call = || Dialect::Chat.call(&key.secret, &model_of(name), Dialect::Chat.ask("hi"), false);
    let answer = gateway.send(&call()).await;
    assert_eq!(
        Dialect::Chat.failure(&answer),
        (502, "upstream_error".to_owned())
    );
    assert_clean("refused", answer.text());
    let answer = gateway.send(&call()).await;
    assert_eq!(answer.status(), 503, "{}", answer.text());
    let line = |line: &str| line.contains("no new token") && line.contains("AADSTS7000215");
    let line = gateway.logged("the alarm", line).await;
    assert!(!line.contains("sim-bad-key"), "{line}");
    assert_eq!(gateway.usage(&key).await, 0);
    assert!(gateway.sim.calls_of(model).is_empty());
    let asked = gateway.sim.calls_of("token").len();
    assert_eq!(asked, 1, "a final refusal is not asked again at once");
}

/// A token that was just issued is not renewed when it is refused, because the next one would be refused too.
#[tokio::test]
async fn a_fresh_token_that_is_refused_takes_the_channel_out() {
    let (name, settings, model) = CLOUDS[2];
    let (gateway, key) = GatewayBuilder::default()
        .entries(&entry(name, settings, model))
        .funded()
        .await;
    let call = || Dialect::Chat.call(&key.secret, &model_of(name), Dialect::Chat.ask("hi"), false);
    gateway.send(&call()).await.ok();
    gateway.sim.queue_faults(model, "status=401", 1).unwrap();
    let answer = gateway.send(&call()).await;
    assert_eq!(
        Dialect::Chat.failure(&answer),
        (502, "upstream_error".to_owned())
    );
    assert_eq!(gateway.send(&call()).await.status(), 503);
    assert_eq!(gateway.sim.calls_of("token").len(), 1);
}

/// The texts of Vertex AI about projects and regions do not reach the caller.
#[tokio::test]
async fn refusals_do_not_name_the_account() {
    let clouds = CLOUDS.map(|(name, settings, _)| (name, settings, "sim-misplaced"));
    let (gateway, key) = gateway_with_clouds(&clouds, "/token").await;
    for (cloud, _, _) in clouds {
        if !cloud.starts_with("vertex") || cloud == "vertex-express" {
            continue;
        }
        for caller in Dialect::ALL {
            for stream in [false, true] {
                let what = format!("{caller:?} by {cloud}, streamed: {stream}");
                let body = caller.ask("hello");
                let request = caller.call(&key.secret, &model_of(cloud), body, stream);
                let answer = gateway.send(&request).await;
                assert_eq!(answer.status(), 400, "{what}: {}", answer.text());
                assert_clean(&what, answer.text());
            }
        }
    }
}

/// Callers of Messages may name betas that the cloud does not know, and may count tokens.
#[tokio::test]
async fn hosted_messages_have_the_clouds_form() {
    let cloud = CLOUDS[8];
    let (gateway, key) = gateway_with_clouds(&[cloud], "/token").await;
    let body = Dialect::Messages.ask("hello");
    let call = Dialect::Messages.call(&key.secret, &model_of(cloud.0), body, false);
    let betas = "interleaved-thinking-2025-05-14,unknown-2030-01-01";
    let answer = gateway.send(&call.header("anthropic-beta", betas)).await;
    answer.ok();
    let sent = gateway.sim.calls_of("sim-reason@20250929");
    let [sent] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert!(
        sent.path
            .ends_with("/publishers/anthropic/models/sim-reason@20250929:rawPredict")
    );
    assert_eq!(
        sent.headers["anthropic-beta"],
        "interleaved-thinking-2025-05-14"
    );
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
    assert!(body.get("model").is_none());

    let mut body = Dialect::Messages.ask("hello there");
    body.as_object_mut().unwrap().remove("max_tokens");
    body["model"] = model_of(cloud.0).into();
    let count = Request::post("/v1/messages/count_tokens")
        .json(&body)
        .header("x-api-key", &key.secret);
    let counted = gateway.send(&count).await.ok().json();
    assert!(counted["input_tokens"].as_u64().unwrap() > 0, "{counted}");
    let asked = gateway.sim.calls();
    let last = asked.last().unwrap();
    assert!(
        last.path.ends_with("/models/count-tokens:rawPredict"),
        "{}",
        last.path
    );
}

/// Newer embedding models of Vertex AI take one content per call, in a form of their own.
#[tokio::test]
async fn newer_models_embed_one_content_a_call() {
    let settings = CLOUDS[6].1;
    let entry = entry("vertex", settings, "sim-gemini-embedding-2")
        .replace("kind = \"text\"", "kind = \"embedding\"")
        .replace(
            "price = { input = \"1.25\", output = \"10\" }",
            "price = { input = \"1\" }",
        )
        .replace(
            "max_output_tokens = 128000, vision = true, tools = true",
            "context_tokens = 8192",
        );
    let key_file = sim::service_account("http://SIM/token");
    let builder = GatewayBuilder::default()
        .entries(&entry)
        .file("account.json", &key_file);
    let (gateway, key) = builder.funded().await;
    let model = model_of("vertex");
    let list = |input: Value| {
        let body = json!({ "model": model, "input": input, "dimensions": 8 });
        Request::post("/v1/embeddings")
            .json(&body)
            .bearer(&key.secret)
    };
    let answer = gateway
        .send(&list(json!("one two three")))
        .await
        .ok()
        .json();
    assert_eq!(answer["data"][0]["embedding"].as_array().unwrap().len(), 8);
    let tokens = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(gateway.usage(&key).await, tokens);
    let sent = gateway.sim.calls_of("sim-gemini-embedding-2");
    assert!(
        sent[0]
            .path
            .ends_with("/models/sim-gemini-embedding-2:embedContent")
    );
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(
        body["embedContentConfig"],
        json!({ "outputDimensionality": 8 })
    );

    let refused = gateway.send(&list(json!(["one", "two"]))).await;
    assert_eq!(refused.status(), 400, "{}", refused.text());
    assert!(refused.text().contains("one input"), "{}", refused.text());

    let one =
        json!({ "content": { "parts": [{ "text": "one two three" }] }, "outputDimensionality": 8 });
    let mut of_batch = one.clone();
    of_batch["model"] = format!("models/{model}").into();
    let batch = json!({ "requests": [of_batch] });
    for (verb, body, place) in [
        ("embedContent", one, "/embedding/values"),
        ("batchEmbedContents", batch, "/embeddings/0/values"),
    ] {
        let request = Request::post(&format!("/v1beta/models/{model}:{verb}"));
        let request = request.json(&body).header("x-goog-api-key", &key.secret);
        let answer = gateway.send(&request).await.ok().json();
        let vector = answer.pointer(place).and_then(Value::as_array);
        assert_eq!(vector.map(Vec::len), Some(8), "{verb}: {answer}");
    }
    assert_eq!(gateway.usage(&key).await, 3 * tokens);
    gateway.verify().await;
}

/// A request with a batch, or with tokens instead of text, skips a route that takes one text per call.
#[tokio::test]
async fn a_batch_goes_to_a_route_that_takes_it() {
    let mut entries = String::new();
    for (id, upstream_model) in [
        ("maker/newer", "sim-gemini-embedding-2"),
        ("maker/older", "gemini-embedding-001"),
    ] {
        let _ = write!(
            entries,
            r#"
[[model]]
id = "{id}"
kind = "embedding"
routes = [
  {{ channel = "vertex", model = "{upstream_model}", priority = 0 }},
  {{ channel = "main", model = "sim-embed", priority = 1 }},
]
price = {{ input = "1" }}
"#
        );
    }
    let channel = format!("[[channel]]\nname = \"vertex\"\n{}\n", CLOUDS[6].1);
    let (gateway, key) = GatewayBuilder::default()
        .entries(&channel)
        .entries(&entries)
        .file("account.json", &sim::service_account("http://SIM/token"))
        .funded()
        .await;
    let list = |model: &str, input: Value| {
        let body = json!({ "model": model, "input": input, "dimensions": 8 });
        Request::post("/v1/embeddings")
            .json(&body)
            .bearer(&key.secret)
    };
    for (model, at_vertex) in [
        ("maker/newer", "sim-gemini-embedding-2"),
        ("maker/older", "gemini-embedding-001"),
    ] {
        let before = gateway.sim.calls_of("sim-embed").len();
        for input in [json!(["one", "two"]), json!([[1, 2], [3]]), json!([1, 2])] {
            let answer = gateway.send(&list(model, input.clone())).await;
            assert_eq!(answer.status(), 200, "{model}, {input}: {}", answer.text());
        }
        let one = json!({
            "model": format!("models/{model}"),
            "content": { "parts": [{ "text": "one" }] },
        });
        let batch = Request::post(&format!("/v1beta/models/{model}:batchEmbedContents"))
            .json(&json!({ "requests": [one, one] }))
            .header("x-goog-api-key", &key.secret);
        let answer = gateway.send(&batch).await;
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
        assert_eq!(gateway.sim.calls_of("sim-embed").len(), before + 4);
        assert_eq!(gateway.sim.calls_of(at_vertex).len(), 0, "{model}");
    }
    // The first route takes a single text.
    let answer = gateway.send(&list("maker/newer", json!(["one"]))).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(gateway.sim.calls_of("sim-gemini-embedding-2").len(), 1);
    gateway.verify().await;
}

/// Callers use one of two forms for embeddings. The gateway converts both to the forms of the clouds.
#[tokio::test]
async fn clouds_make_embeddings() {
    let mut builder = GatewayBuilder::default();
    for (name, settings) in [
        ("azure", CLOUDS[0].1),
        ("azure-dated", CLOUDS[3].1),
        ("vertex", CLOUDS[6].1),
    ] {
        let settings = settings.replace("protocols = [\"chat\"]", "protocols = [\"embeddings\"]");
        let entry = entry(name, &settings, "sim-embed")
            .replace("kind = \"text\"", "kind = \"embedding\"")
            .replace(
                "price = { input = \"1.25\", output = \"10\" }",
                "price = { input = \"1\" }",
            )
            .replace(
                "max_output_tokens = 128000, vision = true, tools = true",
                "context_tokens = 8192",
            );
        builder = builder.entries(&entry);
    }
    let key_file = sim::service_account("http://SIM/token");
    let (gateway, key) = builder.file("account.json", &key_file).funded().await;
    for cloud in ["azure", "azure-dated", "vertex"] {
        let model = model_of(cloud);
        let body = json!({ "model": model, "input": ["one two", "three"], "dimensions": 8 });
        let request = Request::post("/v1/embeddings")
            .json(&body)
            .bearer(&key.secret);
        let list = gateway.send(&request).await.ok().json();
        assert_eq!(list["model"], model);
        assert_eq!(list["data"].as_array().unwrap().len(), 2, "{list}");
        assert!(list["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
        let body =
            json!({ "content": { "parts": [{ "text": "one two" }] }, "outputDimensionality": 8 });
        let request = Request::post(&format!("/v1beta/models/{model}:embedContent"));
        let request = request.json(&body).header("x-goog-api-key", &key.secret);
        let content = gateway.send(&request).await.ok().json();
        assert_eq!(
            content["embedding"]["values"].as_array().unwrap().len(),
            8,
            "{content}"
        );
        let floats = |values: &Value| -> Vec<f64> {
            let values = values.as_array().unwrap().iter();
            values.map(|it| it.as_f64().unwrap()).collect()
        };
        let (first, alone) = (
            floats(&list["data"][0]["embedding"]),
            floats(&content["embedding"]["values"]),
        );
        assert_eq!(first, alone, "the same text has the same vector");
    }
    gateway.verify().await;
}
