//! Chat calls that are answered as a stream.

use serde_json::{Value, json};
use sim::CallEnd;

use crate::harness::{
    BodyEnd, CANNED_MODEL, CannedUpstream, Event, GatewayBuilder, MODEL, Request, TestGateway, ask,
    expected_cost, micro, with,
};

/// The chunks of a stream, which must have ended with `[DONE]`.
#[track_caller]
fn chunks(events: &[Event], ended: BodyEnd) -> Vec<Value> {
    let (last, chunks) = events.split_last().unwrap();
    assert!(last.is_done(), "{last:?}");
    assert_eq!(ended, BodyEnd::Complete);
    chunks.iter().map(Event::json).collect()
}

fn text_of(chunks: &[Value]) -> String {
    let texts = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    texts.collect()
}

#[tokio::test]
async fn every_chunk_carries_our_id_and_the_public_model() {
    let (gateway, key) = TestGateway::funded().await;
    let mut stream = gateway.stream(&key, &ask("reply with 40 words")).await;
    assert_eq!(stream.head.status, 200);
    assert_eq!(
        stream.head.header("content-type"),
        Some("text/event-stream")
    );
    assert!(
        stream
            .head
            .header("x-request-id")
            .unwrap()
            .starts_with("req_")
    );
    let (events, ended) = stream.rest().await;
    let chunks = chunks(&events, ended);
    assert!(chunks.len() > 5, "{}", chunks.len());
    let id = chunks[0]["id"].as_str().unwrap();
    assert!(id.starts_with("chatcmpl_"));
    for chunk in &chunks {
        assert_eq!(chunk["id"], id);
        assert_eq!(chunk["model"], MODEL);
        assert_eq!(chunk["object"], "chat.completion.chunk");
    }
    assert_eq!(text_of(&chunks).split(' ').count(), 40);
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
}

/// The gateway requests usage from the upstream even if the caller does not, and passes it on only to callers who asked
/// for it.
#[tokio::test]
async fn the_usage_chunk_is_withheld_unless_asked_for() {
    let (gateway, key) = TestGateway::funded().await;
    let mut spent = 0;
    for (options, shown) in [
        (json!({}), false),
        (json!({ "stream_options": null }), false),
        (json!({ "stream_options": {} }), false),
        (
            json!({ "stream_options": { "include_usage": null } }),
            false,
        ),
        (
            json!({ "stream_options": { "include_usage": false } }),
            false,
        ),
        (json!({ "stream_options": { "include_usage": true } }), true),
    ] {
        let body = with(ask("reply with 12 words"), &options);
        let (events, ended) = gateway.stream(&key, &body).await.rest().await;
        let chunks = chunks(&events, ended);
        let reports: Vec<_> = chunks.iter().filter(|it| it["usage"].is_object()).collect();
        assert_eq!(reports.len(), usize::from(shown), "{options}");
        let asked = gateway.sim.calls().pop().unwrap();
        let asked: Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!(asked["stream_options"]["include_usage"], true, "{options}");
        let before = spent;
        spent = gateway.usage(&key).await;
        assert!(spent > before, "billed whether shown or not");
        if shown {
            let last = chunks.last().unwrap();
            assert_eq!(last["choices"], json!([]));
            assert_eq!(spent - before, expected_cost(&last["usage"]));
        } else {
            assert!(
                chunks.iter().all(|it| it["choices"] != json!([])),
                "{options}"
            );
        }
    }
}

/// Requesting usage changes nothing else in the caller's bytes.
#[tokio::test]
async fn the_upstream_gets_the_callers_bytes_but_for_model_and_usage() {
    let (gateway, key) = TestGateway::funded().await;
    let table = [
        (
            "{ \"stream\" : true,\"model\":\"maker/chat\", \"messages\":[{\"role\":\"user\",\"content\":\"\\u0068i\"}] }",
            "{\"stream_options\":{\"include_usage\":true}, \"stream\" : true,\"model\":\"sim-chat\", \"messages\":[{\"role\":\"user\",\"content\":\"\\u0068i\"}] }",
        ),
        (
            "{\"model\":\"maker/chat\",\"stream_options\" : { \"include_usage\":  false,\"include_obfuscation\":false },\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
            "{\"model\":\"sim-chat\",\"stream_options\" : { \"include_usage\":  true,\"include_obfuscation\":false },\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        ),
        (
            "{\"model\":\"maker/chat\",\"stream_options\":{\"include_usage\":true},\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
            "{\"model\":\"sim-chat\",\"stream_options\":{\"include_usage\":true},\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        ),
    ];
    for (sent, got) in table {
        let request = Request::post("/v1/chat/completions")
            .bearer(&key.secret)
            .body(sent);
        gateway.send(&request).await.ok();
        let call = gateway.sim.calls().pop().unwrap();
        assert_eq!(std::str::from_utf8(&call.body).unwrap(), got);
    }
}

/// On native routes, only the id and the model in the data of an event change. The text of comments is replaced and
/// event ids are removed, because some routers name themselves in them.
#[tokio::test]
async fn only_the_id_and_the_model_of_a_frame_change() {
    let upstream = concat!(
        ": opening\n\n",
        "data: {\"id\":\"up-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"hidden-name-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"x\":{\"id\":\"in\"}}\n\n",
        "data:{\"created\":1,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\u00fc model \\\"id\\\"\",\"x_extra\":[1.0,2e5]}}] , \"model\" : \"hidden-name-1\",\"id\" :\"up-1\"}\r\n\r\n",
        "id: 7\ndata: {\"id\":\"up-1\",\"created\":1,\"model\":\"hidden-name-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
        "data: {\"id\":\"up-1\",\"created\":1,\"model\":\"hidden-name-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2,\"total_tokens\":6,\"x\":1}}\n\n",
        "data: [DONE]\n\n",
    );
    let canned = CannedUpstream::stream(upstream).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let body = with(
        ask("hello"),
        &json!({ "model": CANNED_MODEL, "stream": true, "stream_options": { "include_usage": true } }),
    );
    let answer = gateway.chat(&key, &body).await.ok();
    let text = answer.text();
    let start = text.find("chatcmpl_").unwrap();
    let id = &text[start..start + "chatcmpl_".len() + 22];
    let expected = upstream
        .replace("up-1", id)
        .replace("hidden-name-1", CANNED_MODEL)
        .replace(": opening", ": keep-alive")
        .replace("id: 7\n", "");
    assert_eq!(text, expected);
    assert_eq!(gateway.usage(&key).await, 25, "4 at 1.25 and 2 at 10");
}

/// The vendor refuses requests with `stream_options`, so the gateway does not send this member. If the caller asks for
/// the usage chunk and the vendor sends no usage by itself, the gateway writes the chunk from the charged usage.
#[tokio::test]
async fn a_vendor_that_refuses_stream_options_never_gets_the_callers() {
    let chunk = |rest: &str| {
        format!("data: {{\"id\":\"up-1\",\"created\":1,\"model\":\"hidden-name-1\",{rest}}}\n\n")
    };
    let content = chunk(r#""choices":[{"index":0,"delta":{"content":"four words of text"}}]"#);
    let end = r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#;
    let used = r#","usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}"#;
    for (own_report, last) in [(false, chunk(end)), (true, chunk(&format!("{end}{used}")))] {
        let canned = CannedUpstream::stream(&format!("{content}{last}data: [DONE]\n\n")).await;
        let entries = canned.entries().replace(
            "preset = \"sim\"",
            "preset = \"cohere\"\ncredential = { file = \"upstream-key\" }",
        );
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        for include_usage in [true, false] {
            let before = gateway.usage(&key).await;
            let options = json!({ "include_usage": include_usage });
            let options = json!({ "model": CANNED_MODEL, "stream_options": options });
            let (events, ended) = gateway
                .stream(&key, &with(ask("hello"), &options))
                .await
                .rest()
                .await;
            let chunks = chunks(&events, ended);
            let sent: Value = serde_json::from_slice(canned.bodies().last().unwrap()).unwrap();
            assert!(sent.get("stream_options").is_none(), "{sent}");
            let reports: Vec<_> = chunks.iter().filter(|it| it["usage"].is_object()).collect();
            assert_eq!(reports.len(), usize::from(include_usage), "{chunks:?}");
            let charged = gateway.usage(&key).await - before;
            assert!(charged > 0);
            if let Some(report) = reports.first() {
                assert_eq!(charged, expected_cost(&report["usage"]), "{report}");
                assert_eq!(report["model"], CANNED_MODEL);
                assert_eq!(report["choices"] == json!([]), !own_report, "{report}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_cut_anywhere_gives_the_same_events() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("say exactly: grüße, 世界 and \\ more \"words\""),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let mut seen: Vec<(String, u64)> = Vec::new();
    for faults in ["pieces=100000", "pieces=1", "pieces=7", "pieces=64"] {
        let before = gateway.usage(&key).await;
        gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
        let (events, ended) = gateway.stream(&key, &body).await.rest().await;
        let chunks = chunks(&events, ended);
        seen.push((text_of(&chunks), gateway.usage(&key).await - before));
    }
    assert_eq!(seen[0].0, "grüße, 世界 and \\ more \"words\"");
    assert!(seen.iter().all(|it| *it == seen[0]), "{seen:?}");
}

/// S6: each event is sent on arrival and does not wait for the next one.
#[tokio::test]
async fn an_event_is_flushed_on_arrival() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask("reply with 50 words")).await;
    let mut content = String::new();
    while content.is_empty() {
        let event = stream.next().await.unwrap().json();
        content.push_str(
            event["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap_or_default(),
        );
    }
    // The upstream hangs after this event, so the gateway did not wait for another.
    assert_eq!(gateway.sim.calls()[0].end, CallEnd::Open);
}

/// S6: keep-alives while a model is silent, in a form that clients accept.
#[tokio::test]
async fn silence_is_filled_with_keep_alives() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "stream_keep_alive_ms = 100")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "first-byte=700ms", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask("say exactly: at last")).await;
    assert_eq!(stream.head.status, 200);
    let (events, ended) = stream.rest().await;
    assert_eq!(text_of(&chunks(&events, ended)), "at last");
    let raw = String::from_utf8(stream.raw).unwrap();
    let comments = raw
        .lines()
        .take_while(|line| !line.starts_with("data"))
        .filter(|line| line.starts_with(':'))
        .count();
    assert!(comments >= 2, "{raw}");
}

/// W13: a caller that has seen the end of a stream sees its charge.
#[tokio::test]
async fn the_charge_is_there_when_the_stream_has_ended() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("reply with 30 words"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let mut spent = 0;
    for _ in 0..20 {
        let mut stream = gateway.stream(&key, &body).await;
        let mut usage = Value::Null;
        while let Some(event) = stream.next().await {
            if event.is_done() {
                break;
            }
            usage = event.json()["usage"].clone();
        }
        spent += expected_cost(&usage);
        let balance = gateway.balance(&key).await;
        assert_eq!(micro(&balance["key"], "usage"), spent);
        assert_eq!(micro(&balance["wallet"], "frozen"), 0);
    }
}

/// W13: a stream that arrives in a single read is settled too, and its caller does not wait for an upstream that keeps
/// the connection open.
#[tokio::test]
async fn a_stream_that_comes_in_one_read_is_billed_by_its_usage() {
    let upstream = concat!(
        "data: {\"id\":\"x\",\"model\":\"y\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"all at once\"}}]}\n\n",
        "data: {\"id\":\"x\",\"model\":\"y\",\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":3}}\n\n",
        "data: [DONE]\n\n",
    );
    let canned = CannedUpstream::unending_stream(upstream).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let body = with(ask("hello"), &json!({ "model": CANNED_MODEL }));
    for count in 1..=5 {
        let (events, ended) = gateway.stream(&key, &body).await.rest().await;
        assert_eq!(text_of(&chunks(&events, ended)), "all at once");
        assert_eq!(
            gateway.usage(&key).await,
            count * 35,
            "4 at 1.25 and 3 at 10"
        );
        assert_eq!(gateway.frozen(&key).await, 0);
    }
    let metrics = gateway.admin_get("/metrics").await.ok();
    assert!(metrics.text().contains("tollgate_clients_gone_total 0"));
    gateway.verify().await;
}

#[tokio::test]
async fn tool_calls_and_reasoning_stream_through() {
    let (gateway, key) = TestGateway::funded().await;
    let body = with(
        ask("What is the weather in both \"Oslo\" and \"Rome\"?"),
        &json!({ "reasoning_effort": "low", "tools": [{ "type": "function", "function": {
            "name": "get_weather",
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } },
                            "required": ["city"] } } }] }),
    );
    let (events, ended) = gateway.stream(&key, &body).await.rest().await;
    let chunks = chunks(&events, ended);
    let deltas: Vec<_> = chunks.iter().map(|it| &it["choices"][0]["delta"]).collect();
    assert!(deltas.iter().any(|it| it["reasoning_content"].is_string()));
    let mut arguments = vec![String::new(); 2];
    let mut starts = 0;
    for call in deltas
        .iter()
        .filter_map(|it| it["tool_calls"][0].as_object())
    {
        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        starts += usize::from(call.contains_key("id"));
        arguments[index].push_str(call["function"]["arguments"].as_str().unwrap());
    }
    assert_eq!(starts, 2, "an id is told once for each call");
    for (text, city) in arguments.iter().zip(["Oslo", "Rome"]) {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value["city"], city);
    }
}

#[tokio::test]
async fn streams_of_one_connection_follow_each_other() {
    let (gateway, key) = TestGateway::funded().await;
    let mut connection = crate::harness::Connection::open(gateway.address()).await;
    for count in 1..=5 {
        let body = with(
            ask(&format!("reply with {count} words")),
            &json!({ "stream": true }),
        );
        connection
            .send(&Request::chat(&body).bearer(&key.secret))
            .await;
        let answer = connection.answer().await.ok();
        assert!(answer.text().ends_with("data: [DONE]\n\n"));
    }
    gateway.verify().await;
}

/// HTTP/2: many calls share one connection.
#[tokio::test]
async fn calls_share_an_http2_connection() {
    let (gateway, key) = TestGateway::funded().await;
    let socket = tokio::net::TcpStream::connect(gateway.address())
        .await
        .unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(socket);
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let mut calls = tokio::task::JoinSet::new();
    for count in 1..=20 {
        let mut sender = sender.clone();
        let stream = count % 2 == 0;
        let body = with(
            ask(&format!("reply with {count} words")),
            &json!({ "stream": stream }),
        );
        let request =
            http::Request::post(format!("http://{}/v1/chat/completions", gateway.address()))
                .header("authorization", format!("Bearer {}", key.secret))
                .body(http_body_util::Full::new(bytes::Bytes::from(
                    body.to_string(),
                )))
                .unwrap();
        calls.spawn(async move {
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.status(), 200);
            let body = http_body_util::BodyExt::collect(answer.into_body())
                .await
                .unwrap();
            let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
            assert_eq!(text.ends_with("data: [DONE]\n\n"), stream, "{text}");
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    assert_eq!(gateway.upstream_calls(), 20);
    assert_eq!(gateway.frozen(&key).await, 0);
    drop(sender);
    connection.await.unwrap().unwrap();
    gateway.verify().await;
}
