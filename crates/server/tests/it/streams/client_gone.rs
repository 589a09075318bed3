//! Callers that leave: what is charged, and when the upstream call is cancelled (S1, B1, B2).

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use sim::{Call, CallEnd};

use crate::harness::{
    CannedUpstream, Connection, Dialect, Event, GatewayBuilder, Key, Request, Streaming,
    TestGateway, ask, cost, eventually, expected_cost, with, within,
};

pub(super) fn input_tokens(body: &Value) -> u64 {
    let body = bytes::Bytes::from(body.to_string());
    let head = protocol::native::read_head(protocol::Dialect::Chat, &body).unwrap();
    head.input.tokens
}

/// Waits until the upstream's last call has ended, and returns it.
async fn wait_for_end(gateway: &TestGateway) -> Call {
    let over = |calls: &[Call]| calls.last().is_some_and(|call| call.end != CallEnd::Open);
    within("the upstream's end", gateway.sim.calls_until(over))
        .await
        .pop()
        .unwrap()
}

/// Waits until nothing is frozen, and returns the charged amount.
async fn settled(gateway: &TestGateway, key: &Key) -> u64 {
    eventually("the settlement", async || {
        (gateway.frozen(key).await == 0).then_some(())
    })
    .await;
    gateway.usage(key).await
}

/// Reads until there is content, and returns the text so far.
async fn some_content(stream: &mut Streaming) -> String {
    loop {
        let event: Event = stream.next().await.expect("content comes");
        if let Some(text) = event.json()["choices"][0]["delta"]["content"].as_str()
            && !text.is_empty()
        {
            return text.to_owned();
        }
    }
}

#[tokio::test]
async fn usage_learnt_after_the_caller_left_is_what_is_charged() {
    let (gateway, key) = TestGateway::funded().await;
    let prompt = "reply with 60 words";
    let usage = gateway.chat(&key, &ask(prompt)).await.ok().json()["usage"].clone();
    let before = gateway.usage(&key).await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunk-delay=5ms", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask(prompt)).await;
    some_content(&mut stream).await;
    stream.leave();
    let call = wait_for_end(&gateway).await;
    assert_eq!(call.end, CallEnd::Completed, "it was heard out");
    assert_eq!(
        settled(&gateway, &key).await - before,
        expected_cost(&usage)
    );
    gateway.verify().await;
}

/// Without an end mark, only the end of the stream shows which usage report is the last.
#[tokio::test]
async fn a_report_that_only_the_end_makes_final_is_what_is_charged() {
    let mut entries = String::new();
    for upstream in Dialect::ALL {
        let name = upstream.name();
        let _ = writeln!(
            entries,
            "[[model]]
            id = \"sim/{name}\"
            kind = \"text\"
            routes = [{{ channel = \"main\", model = \"sim-chat+usage=running+chunk-delay=5ms\", dialect = \"{name}\" }}]
            price = {{ input = \"1.25\", output = \"10\" }}
            profile = {{ context_tokens = 400000, max_output_tokens = 128000 }}"
        );
    }
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    for caller in Dialect::ALL {
        for upstream in Dialect::ALL {
            let model = format!("sim/{}", upstream.name());
            let call = caller.call(&key.secret, &model, caller.ask("reply with 60 words"), true);
            let before = gateway.usage(&key).await;
            let mut connection = Connection::open(gateway.address()).await;
            connection.send(&call).await;
            let head = connection.head().await.expect("an answer");
            let mut stream = Streaming::new(head, connection);
            stream.next().await.expect("an event");
            stream.leave();
            let used = wait_for_end(&gateway).await.true_usage.expect("an answer");
            let exact = used.fresh_input * 1_250_000 + used.output * 10_000_000;
            let charged = settled(&gateway, &key).await - before;
            let pair = format!("{} to {}", caller.name(), upstream.name());
            assert_eq!(charged, exact.div_ceil(1_000_000), "{pair}");
            gateway.sim.forget_calls();
        }
    }
}

/// B2: without a usage report, the charge is for the input as counted at admission, and for the output as counted over
/// all received deltas.
#[tokio::test]
async fn without_usage_the_formula_holds_and_the_upstream_is_cancelled() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_gone_drain_ms = 300")
        .funded()
        .await;
    let body = with(ask("reply with 60 words"), &json!({ "stream": true }));
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &body).await;
    let text = some_content(&mut stream).await;
    stream.leave();
    let call = wait_for_end(&gateway).await;
    assert_eq!(call.end, CallEnd::Cancelled);
    let expected = cost(
        input_tokens(&body),
        0,
        protocol::count::tokens(text.as_bytes()),
    );
    assert_eq!(settled(&gateway, &key).await, expected);
    let metrics = gateway.admin_get("/metrics").await.ok();
    assert!(
        metrics.text().contains("tollgate_clients_gone_total 1"),
        "{}",
        metrics.text()
    );
    gateway.verify().await;
}

/// S1: after the client has left, at most 256 KiB are read.
#[tokio::test]
async fn a_long_answer_is_not_heard_out_to_its_end() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "reply-bytes=16000000+chunks=4000", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask("go")).await;
    some_content(&mut stream).await;
    stream.leave();
    let call = wait_for_end(&gateway).await;
    assert_eq!(call.end, CallEnd::Cancelled);
    assert!(call.sent_bytes < 14_000_000, "{}", call.sent_bytes);
    assert!(settled(&gateway, &key).await > 0);
    gateway.verify().await;
}

/// B2: leaving just before a buffered answer does not make the call free.
#[tokio::test]
async fn leaving_before_a_buffered_answer_costs_the_answer() {
    let (gateway, key) = TestGateway::funded().await;
    let prompt = "reply with 25 words";
    let usage = gateway.chat(&key, &ask(prompt)).await.ok().json()["usage"].clone();
    let before = gateway.usage(&key).await;
    gateway
        .sim
        .queue_faults("sim-chat", "delay=400ms", 1)
        .unwrap();
    let mut connection = Connection::open(gateway.address()).await;
    connection
        .send(&Request::chat(&ask(prompt)).bearer(&key.secret))
        .await;
    eventually("the upstream call", async || {
        (gateway.upstream_calls() == 2).then_some(())
    })
    .await;
    drop(connection);
    assert_eq!(wait_for_end(&gateway).await.end, CallEnd::Completed);
    assert_eq!(
        settled(&gateway, &key).await - before,
        expected_cost(&usage)
    );
    let row = eventually("the journal's row", async || {
        let rows = gateway.cli(&["logs", "--json"]).await.stdout;
        let last = rows.lines().nth(1)?;
        Some(serde_json::from_str::<Value>(last).unwrap())
    })
    .await;
    assert_eq!(
        (&row["status"], &row["outcome"]),
        (&json!(499), &json!("settled"))
    );
    gateway.verify().await;
}

#[tokio::test]
async fn leaving_a_silent_upstream_costs_the_input() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_gone_drain_ms = 200")
        .funded()
        .await;
    for stream in [false, true] {
        let before = gateway.usage(&key).await;
        let calls = gateway.upstream_calls();
        let body = with(ask("hello"), &json!({ "stream": stream }));
        gateway
            .sim
            .queue_faults("sim-chat", "hang=head", 1)
            .unwrap();
        let mut connection = Connection::open(gateway.address()).await;
        connection
            .send(&Request::chat(&body).bearer(&key.secret))
            .await;
        eventually("the upstream call", async || {
            (gateway.upstream_calls() > calls).then_some(())
        })
        .await;
        drop(connection);
        assert_eq!(wait_for_end(&gateway).await.end, CallEnd::Cancelled);
        let charge = settled(&gateway, &key).await - before;
        assert_eq!(charge, cost(input_tokens(&body), 0, 0), "stream {stream}");
    }
    gateway.verify().await;
}

/// A draining stream does not count against the key's concurrency.
#[tokio::test]
async fn a_draining_call_does_not_block_the_keys_next_one() {
    let (gateway, _) = TestGateway::funded().await;
    let key = gateway.key("w", &["--concurrency", "1"]).await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask("reply with 60 words")).await;
    some_content(&mut stream).await;
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(
        refused.failure(),
        (429, "concurrency_limit_exceeded".to_owned())
    );
    stream.leave();
    // The call must be admitted within three seconds, while the drain of five seconds still runs.
    let admitted = eventually("the place", async || {
        let answer = gateway.chat(&key, &ask("hello")).await;
        (answer.status() == 200).then_some(())
    });
    tokio::time::timeout(Duration::from_secs(3), admitted)
        .await
        .unwrap();
    assert_eq!(
        gateway.sim.calls()[0].end,
        CallEnd::Open,
        "it is still being heard out"
    );
    assert!(
        gateway.frozen(&key).await > 0,
        "and still holds its credits"
    );
}

/// A buffered call whose caller has left does not count against the key's concurrency either.
#[tokio::test]
async fn a_whole_answer_that_nobody_waits_for_does_not_block_the_keys_next_call() {
    let (gateway, _) = TestGateway::funded().await;
    let key = gateway.key("w", &["--concurrency", "1"]).await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=head", 1)
        .unwrap();
    let request = Request::chat(&ask("hello")).bearer(&key.secret);
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&request).await;
    within(
        "the call",
        gateway.sim.calls_until(|calls| !calls.is_empty()),
    )
    .await;
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(
        refused.failure(),
        (429, "concurrency_limit_exceeded".to_owned())
    );
    drop(connection);
    let admitted = eventually("the place", async || {
        let answer = gateway.chat(&key, &ask("hello")).await;
        (answer.status() == 200).then_some(())
    });
    tokio::time::timeout(Duration::from_secs(3), admitted)
        .await
        .unwrap();
    assert!(gateway.frozen(&key).await > 0, "it still holds its credits");
}

/// S4: a client that reads nothing for too long is treated as gone.
#[tokio::test]
async fn a_reader_that_takes_nothing_is_let_go() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_write_idle_ms = 500")
        .setting("timeouts", "client_gone_drain_ms = 200")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "reply-bytes=24000000+chunks=4000", 1)
        .unwrap();
    let stream = gateway.stream(&key, &ask("go")).await;
    assert_eq!(stream.head.status, 200);
    // The client reads nothing more from here on.
    let call = wait_for_end(&gateway).await;
    assert_eq!(call.end, CallEnd::Cancelled);
    assert!(
        call.sent_bytes < 22_000_000,
        "{} bytes were read ahead",
        call.sent_bytes
    );
    assert!(settled(&gateway, &key).await > 0);
    drop(stream);
    gateway.verify().await;
}

/// S9: many callers that leave at different moments leave no hold open.
#[tokio::test]
async fn leaving_at_any_moment_leaves_nothing_behind() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "client_gone_drain_ms = 50")
        .funded()
        .await;
    let streamed = with(ask("reply with 40 words"), &json!({ "stream": true }));
    for (index, body) in [ask("reply with 40 words"), streamed]
        .iter()
        .cycle()
        .take(60)
        .enumerate()
    {
        gateway
            .sim
            .queue_faults("sim-chat", "delay=3ms+chunk-delay=1ms", 1)
            .unwrap();
        let mut connection = Connection::open(gateway.address()).await;
        connection
            .send(&Request::chat(body).bearer(&key.secret))
            .await;
        // The callers leave later and later, from before the admission until after the end of a buffered call.
        tokio::time::sleep(Duration::from_micros(500 * index as u64)).await;
        drop(connection);
    }
    settled(&gateway, &key).await;
    eventually("no open hold", async || {
        let metrics = gateway.admin_get("/metrics").await.ok();
        metrics
            .text()
            .contains("tollgate_holds_open 0\n")
            .then_some(())
    })
    .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

/// W8: a caller that left while the upstream had the request is charged once.
#[tokio::test]
async fn a_gone_callers_call_is_settled_once() {
    let canned = CannedUpstream::paused(r#"{"choices":[{"index":0,"message":{"content":"x"}}],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&canned.entries())
        .funded()
        .await;
    let body = with(
        ask("hello"),
        &json!({ "model": crate::harness::CANNED_MODEL }),
    );
    for _ in 0..5 {
        let mut connection = Connection::open(gateway.address()).await;
        connection
            .send(&Request::chat(&body).bearer(&key.secret))
            .await;
        drop(connection);
    }
    // Some callers left before their request was read, and are charged nothing.
    let mut last = Connection::open(gateway.address()).await;
    last.send(&Request::chat(&body).bearer(&key.secret)).await;
    canned.wait_for_requests(1).await;
    canned.release_answers();
    last.answer().await.ok();
    let charge = settled(&gateway, &key).await;
    let came = canned.bodies().len() as u64;
    assert_eq!(charge, came * cost(8, 0, 1), "{came} calls");
    gateway.verify().await;
}

/// A channel may be configured without a drain: the caller is charged for the output until the cancellation.
#[tokio::test]
async fn a_channel_without_a_drain_is_cancelled_at_once() {
    let (gateway, key) = GatewayBuilder::default()
        .entries(
            r#"
            [[channel]]
            name = "fast"
            preset = "sim"
            base_url = "http://SIM/v1"
            client_gone_drain_ms = 0
            [[model]]
            id = "maker/fast"
            kind = "text"
            routes = [{ channel = "fast", model = "sim-fast" }]
            price = { input = "1.25", cached_input = "0.125", output = "10" }
            profile = { context_tokens = 400000, max_output_tokens = 128000 }
            "#,
        )
        .funded()
        .await;
    let checked = gateway.cli_json(&["check"]).await;
    let drains = ["main", "fast"].map(|name| {
        let channels = checked["channels"].as_array().unwrap();
        let channel = channels.iter().find(|it| it["name"] == name);
        channel.unwrap()["client_gone_drain_ms"].as_u64()
    });
    assert_eq!(drains, [Some(5_000), Some(0)]);

    // At each pace, the answer takes less than the five seconds of the default drain.
    for (chunks, pace_ms) in [(2_000, 1), (800, 4), (200, 15)] {
        let faults = format!("chunks={chunks}+chunk-delay={pace_ms}ms");
        gateway.sim.queue_faults("sim-fast", &faults, 1).unwrap();
        let before = gateway.usage(&key).await;
        let body = with(ask("go"), &json!({ "model": "maker/fast", "stream": true }));
        let mut stream = gateway.stream(&key, &body).await;
        let seen = some_content(&mut stream).await;
        stream.leave();
        let call = wait_for_end(&gateway).await;
        assert_eq!(call.end, CallEnd::Cancelled, "{pace_ms} ms");
        let charge = settled(&gateway, &key).await - before;
        let input = input_tokens(&body);
        let least = cost(input, 0, protocol::count::tokens(seen.as_bytes()));
        assert!(charge >= least, "{pace_ms} ms: {charge}");
        assert!(charge < cost(input, 0, chunks), "{pace_ms} ms: {charge}");
        gateway.sim.forget_calls();
    }

    // A buffered answer: the caller has received nothing, so only the input is charged.
    let before = gateway.usage(&key).await;
    gateway
        .sim
        .queue_faults("sim-fast", "hang=head", 1)
        .unwrap();
    let body = with(ask("hello"), &json!({ "model": "maker/fast" }));
    let mut connection = Connection::open(gateway.address()).await;
    connection
        .send(&Request::chat(&body).bearer(&key.secret))
        .await;
    within(
        "the call",
        gateway.sim.calls_until(|calls| !calls.is_empty()),
    )
    .await;
    drop(connection);
    assert_eq!(wait_for_end(&gateway).await.end, CallEnd::Cancelled);
    let charge = settled(&gateway, &key).await - before;
    assert_eq!(charge, cost(input_tokens(&body), 0, 0));
    gateway.verify().await;
}
