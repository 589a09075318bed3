//! Traces and metrics of calls, at the operator's collector and for scrapers, and collectors that fail.

use serde_json::Value;

use crate::harness::{
    Answer, Delivery, GatewayBuilder, Key, Receiver, Reply, Request, TestGateway, UPSTREAM_KEY,
    ask, eventually, signal, with,
};

/// A model whose first upstream fails.
const ENTRIES: &str = r#"
[[channel]]
name = "failing"
preset = "openai-compatible"
base_url = "FIRST/v1"
credential = { file = "upstream-key" }
protocols = ["chat"]
sends_traceparent = true
[[model]]
id = "maker/twice"
kind = "text"
created = 1767225600
routes = [
  { channel = "failing", model = "hidden-name", priority = 0 },
  { channel = "main", model = "sim-chat", priority = 1 },
]
price = { input = "1.25", output = "10" }
profile = { context_tokens = 400000, max_output_tokens = 1000 }
"#;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// The base URL of a receiver, without a path.
fn base(receiver: &Receiver) -> &str {
    let url = receiver.url.as_str();
    url.strip_suffix("/told?token=t").unwrap()
}

fn with_collector(collector: &Receiver) -> GatewayBuilder {
    let url = format!("otlp_url = \"{}\"", base(collector));
    GatewayBuilder::default().setting("telemetry", &url)
}

fn spans(delivery: &Delivery) -> Vec<Value> {
    assert!(
        delivery.head.starts_with("post /v1/traces http/1.1\r\n"),
        "{}",
        delivery.head
    );
    assert!(
        delivery.head.contains("content-type: application/json\r\n"),
        "{}",
        delivery.head
    );
    let body: Value = serde_json::from_slice(&delivery.body).unwrap();
    let scope = &body["resourceSpans"][0]["scopeSpans"][0];
    scope["spans"].as_array().unwrap().clone()
}

/// The value of an attribute as text, for every type.
fn value<'s>(span: &'s Value, key: &str) -> &'s str {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|it| it["key"] == key);
    let value = found.and_then(|it| it["value"].as_object()?.values().next());
    value.and_then(Value::as_str).unwrap_or_default()
}

async fn traced(gateway: &TestGateway, key: &Key, traceparent: &str) -> Answer {
    let request = Request::chat(&ask("hello")).bearer(&key.secret);
    gateway
        .send(&request.header("traceparent", traceparent))
        .await
}

async fn metric(gateway: &TestGateway, name: &str) -> u64 {
    let answer = gateway.admin_get("/metrics").await.ok();
    let text = answer.text();
    let mut lines = text.lines();
    let value = lines.find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(' ')
            .map(str::to_owned)
    });
    value
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}

async fn dropped(gateway: &TestGateway, reason: &str) -> u64 {
    let name = format!("tollgate_telemetry_spans_dropped_total{{reason=\"{reason}\"}}");
    metric(gateway, &name).await
}

#[tokio::test]
async fn a_call_and_each_route_that_it_tried_are_spans_at_the_collector() {
    let collector = Receiver::start(&[200]).await;
    let failing = Receiver::start(&[500]).await;
    let (gateway, key) = with_collector(&collector)
        .setting("telemetry", "headers = { file = \"collector-headers\" }")
        .setting("telemetry", "service_name = \"gate\"")
        .setting("telemetry", "trusted_callers = [\"127.0.0.0/8\"]")
        .setting("journal", "bodies = true")
        .file("collector-headers", "x-api-key=for%20the%20collector")
        .entries(&ENTRIES.replace("FIRST", base(&failing)))
        .funded()
        .await;
    let body = with(
        ask("a private question"),
        &serde_json::json!({ "model": "maker/twice" }),
    );
    let request = Request::chat(&body).bearer(&key.secret);
    let traceparent = format!("00-{TRACE}-{SPAN}-01");
    let answer = gateway
        .send(&request.header("traceparent", &traceparent))
        .await
        .ok();
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    let usage = answer.json()["usage"].clone();

    let delivery = collector.wait_for(1).await.remove(0);
    assert!(
        delivery.head.contains("x-api-key: for the collector\r\n"),
        "{}",
        delivery.head
    );
    let text = String::from_utf8(delivery.body.clone()).unwrap();
    for secret in [
        "a private question",
        content.as_str().unwrap(),
        UPSTREAM_KEY,
        &key.secret,
    ] {
        assert!(!text.contains(secret), "{secret} is told: {text}");
    }
    assert!(text.contains(r#"{"key":"service.name","value":{"stringValue":"gate"}}"#));
    let spans = spans(&delivery);
    let [call, first, second] = spans.as_slice() else {
        panic!("{spans:#?}");
    };
    assert_eq!(call["name"], "chat maker/twice");
    assert_eq!(call["traceId"], TRACE);
    assert_eq!(call["parentSpanId"], SPAN);
    for (key, wanted) in [
        ("gen_ai.request.model", "maker/twice"),
        ("gen_ai.response.model", "sim-chat"),
        ("gen_ai.provider.name", "sim"),
        (
            "gen_ai.usage.input_tokens",
            &usage["prompt_tokens"].to_string(),
        ),
        (
            "gen_ai.usage.output_tokens",
            &usage["completion_tokens"].to_string(),
        ),
        (
            "tollgate.request_id",
            answer.header("x-request-id").unwrap(),
        ),
        ("tollgate.key", &key.id),
        ("tollgate.channel", "main"),
        ("tollgate.hold_end", "settled"),
    ] {
        assert_eq!(value(call, key), wanted, "{key}");
    }
    for (span, channel, error) in [(first, "failing", "upstream_error"), (second, "main", "")] {
        assert_eq!(span["traceId"], TRACE);
        assert_eq!(span["parentSpanId"], call["spanId"]);
        assert_eq!(value(span, "tollgate.channel"), channel);
        assert_eq!(value(span, "error.type"), error);
    }
    // The first upstream got the id of its span in `traceparent`. The second channel does not send this header.
    let asked = failing.wait_for(1).await.remove(0);
    let named = format!(
        "traceparent: 00-{TRACE}-{}-01\r\n",
        first["spanId"].as_str().unwrap()
    );
    assert!(asked.head.contains(&named), "{}", asked.head);
    eventually("the count", async || {
        let sent = metric(&gateway, "tollgate_telemetry_spans_sent_total").await;
        (sent == 3).then_some(())
    })
    .await;
}

/// The status is 200 and the stream ends with an error event. Both the call and the attempt count as failed.
#[tokio::test]
async fn a_stream_that_breaks_in_the_middle_is_a_failed_attempt() {
    let collector = Receiver::start(&[200]).await;
    let (gateway, key) = with_collector(&collector).funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "cut=content", 1)
        .unwrap();
    let body = with(ask("hello"), &serde_json::json!({ "stream": true }));
    let answer = gateway.chat(&key, &body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(
        answer.text().contains("upstream_error"),
        "{}",
        answer.text()
    );
    let spans = spans(&collector.wait_for(1).await[0]);
    let [call, attempt] = spans.as_slice() else {
        panic!("{spans:#?}");
    };
    for span in [call, attempt] {
        assert_eq!(span["status"]["code"], 2, "{span:#}");
        assert_eq!(value(span, "error.type"), "upstream_error");
        assert_eq!(value(span, "tollgate.channel"), "main");
    }
    assert_eq!(value(call, "http.response.status_code"), "200");
    gateway.verify().await;
}

#[tokio::test]
async fn a_traceparent_counts_only_if_it_is_valid_and_its_caller_trusted() {
    let collector = Receiver::start(&[200]).await;
    let good = format!("00-{TRACE}-{SPAN}-01");
    let (gateway, key) = with_collector(&collector).funded().await;
    traced(&gateway, &key, &good).await.ok();
    let untrusted = spans(&collector.wait_for(1).await[0]).remove(0);
    assert_ne!(untrusted["traceId"], TRACE);
    assert_eq!(untrusted.get("parentSpanId"), None);

    let collector = Receiver::start(&[200]).await;
    let (gateway, key) = with_collector(&collector)
        .setting("telemetry", "trusted_callers = [\"127.0.0.1\"]")
        .funded()
        .await;
    for bad in [
        "",
        "00",
        &good.to_uppercase(),
        &format!("{good}-x"),
        "\u{e9}",
    ] {
        traced(&gateway, &key, bad).await.ok();
    }
    // If the caller does not sample its trace, the call is not traced.
    traced(&gateway, &key, &format!("00-{TRACE}-{SPAN}-00"))
        .await
        .ok();
    traced(&gateway, &key, &good).await.ok();
    let calls = eventually("all calls", async || {
        let deliveries = collector.deliveries();
        let spans = deliveries.iter().flat_map(spans);
        let calls: Vec<_> = spans.filter(|it| it["kind"] == 2).collect();
        let is_there = calls.iter().any(|it| it["traceId"] == TRACE);
        is_there.then_some(calls)
    })
    .await;
    assert_eq!(calls.len(), 6, "{calls:#?}");
    let ours = calls.iter().filter(|it| it.get("parentSpanId").is_none());
    assert_eq!(ours.count(), 5, "{calls:#?}");
}

#[tokio::test]
async fn a_busy_collector_gets_the_same_spans_again() {
    let collector = Receiver::start(&[503, 200]).await;
    let (gateway, key) = with_collector(&collector).funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let deliveries = collector.wait_for(2).await;
    assert_eq!(deliveries[0].body, deliveries[1].body);
    eventually("the count", async || {
        let sent = metric(&gateway, "tollgate_telemetry_spans_sent_total").await;
        (sent == 2).then_some(())
    })
    .await;
    for reason in ["queue_full", "refused", "unreachable", "shutdown"] {
        assert_eq!(dropped(&gateway, reason).await, 0, "{reason}");
    }
}

#[tokio::test]
async fn spans_that_the_collector_refuses_are_counted_and_not_sent_again() {
    let collector = Receiver::start(&[400, 200]).await;
    let (gateway, key) = with_collector(&collector).funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    eventually("the count", async || {
        (dropped(&gateway, "refused").await == 2).then_some(())
    })
    .await;
    gateway
        .logged("the refusal", |line| {
            line.contains("does not take telemetry")
        })
        .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let deliveries = collector.wait_for(2).await;
    assert_ne!(deliveries[0].body, deliveries[1].body);
    gateway
        .logged("the recovery", |line| {
            line.contains("takes telemetry again")
        })
        .await;
}

/// A collector that does not answer delays no call, and delays the shutdown by a few seconds at most.
#[tokio::test]
async fn a_collector_that_never_answers_delays_nobody() {
    let collector = Receiver::replying(vec![Reply::Never]).await;
    let (mut gateway, key) = with_collector(&collector).funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    collector.wait_for(1).await;
    // The export waits for the collector's answer. Calls do not.
    for _ in 0..20 {
        gateway.chat(&key, &ask("hello")).await.ok();
    }
    signal("TERM", gateway.pid());
    assert!(gateway.process().ended().await.success());
    gateway
        .logged("the loss", |line| line.contains("the last spans are lost"))
        .await;
    gateway.verify().await;
}

#[tokio::test]
async fn a_node_that_stops_sends_what_is_left() {
    let collector = Receiver::start(&[200]).await;
    let (mut gateway, key) = with_collector(&collector).funded().await;
    let answer = gateway.chat(&key, &ask("hello")).await.ok();
    let id = answer.header("x-request-id").unwrap().to_owned();
    signal("TERM", gateway.pid());
    assert!(gateway.process().ended().await.success());
    let deliveries = collector.deliveries();
    let spans: Vec<_> = deliveries.iter().flat_map(spans).collect();
    assert!(
        spans
            .iter()
            .any(|it| value(it, "tollgate.request_id") == id),
        "{spans:#?}"
    );
}

#[tokio::test]
async fn a_sample_ratio_of_zero_sends_nothing() {
    let collector = Receiver::start(&[200]).await;
    let (mut gateway, key) = with_collector(&collector)
        .setting("telemetry", "sample_ratio = 0")
        .funded()
        .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    signal("TERM", gateway.pid());
    assert!(gateway.process().ended().await.success());
    assert_eq!(collector.deliveries(), []);
}

#[tokio::test]
async fn headers_that_are_no_headers_are_refused_without_being_shown() {
    let (gateway, _) = GatewayBuilder::default()
        .file("headers", "s3cret")
        .funded()
        .await;
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    let telemetry = "[telemetry]\nheaders = { file = \"headers\" }\n";
    std::fs::write(gateway.config_file(), format!("{telemetry}{text}")).unwrap();
    let checked = gateway.cli(&["check"]).await;
    assert_eq!(checked.status.code(), Some(1));
    let output = format!("{}{}", checked.stdout, checked.stderr);
    assert!(output.contains("telemetry.headers"), "{output}");
    assert!(!output.contains("s3cret"), "{output}");
}

#[tokio::test]
async fn calls_are_counted_by_what_they_asked_for_and_who_served_them() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("telemetry", "wallet_series = 1")
        .funded()
        .await;
    gateway.wallet("second", &["--balance", "100"]).await;
    let second = gateway.key("second", &[]).await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let unknown = with(
        ask("hello"),
        &serde_json::json!({ "model": "maker/invented" }),
    );
    assert_eq!(gateway.chat(&second, &unknown).await.status(), 404);
    let charged = gateway.usage(&key).await;
    let wallets = gateway.cli_json(&["wallet", "list"]).await;
    let wallets = wallets["data"]
        .as_array()
        .or(wallets.as_array())
        .unwrap()
        .clone();
    let first = wallets.iter().find(|it| it["name"] == "w").unwrap()["id"]
        .as_str()
        .unwrap();
    let endpoint = "endpoint=\"/v1/chat/completions\"";
    for (name, wanted) in [
        (
            format!(
                "tollgate_calls_total{{{endpoint},model=\"maker/chat\",channel=\"main\",outcome=\"served\"}}"
            ),
            1,
        ),
        (
            format!(
                "tollgate_calls_total{{{endpoint},model=\"\",channel=\"\",outcome=\"refused\"}}"
            ),
            1,
        ),
        (
            format!("tollgate_wallet_calls_total{{wallet=\"{first}\"}}"),
            1,
        ),
        (
            format!("tollgate_wallet_charged_micro_credits_total{{wallet=\"{first}\"}}"),
            charged,
        ),
        (
            "tollgate_wallet_calls_total{wallet=\"other\"}".to_owned(),
            1,
        ),
    ] {
        eventually(&name, async || {
            let answer = gateway.admin_get("/metrics").await.ok();
            let text = answer.text();
            assert!(!text.contains("invented"), "{text}");
            let line = format!("{name} {wanted}");
            text.lines().any(|it| it == line).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_collector_gets_the_metrics_that_a_scraper_sees() {
    let collector = Receiver::start(&[200]).await;
    let (gateway, key) = with_collector(&collector)
        .setting("telemetry", "metrics = true")
        .setting("telemetry", "metrics_every_ms = 100")
        .setting("telemetry", "sample_ratio = 0")
        .funded()
        .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let metrics = eventually("the call among the metrics", async || {
        let delivery = collector.deliveries().pop()?;
        assert!(
            delivery.head.starts_with("post /v1/metrics "),
            "{}",
            delivery.head
        );
        let body: Value = serde_json::from_slice(&delivery.body).unwrap();
        let scope = &body["resourceMetrics"][0]["scopeMetrics"][0];
        let metrics = scope["metrics"].as_array().unwrap().clone();
        metrics
            .iter()
            .any(|it| it["name"] == "tollgate_requests")
            .then_some(metrics)
    })
    .await;
    let named = |name: &str| {
        let found = metrics.iter().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {metrics:#?}"))
    };
    let point = &named("tollgate_requests")["sum"]["dataPoints"][0];
    assert_eq!(point["asInt"], "1", "{point}");
    assert_eq!(value(point, "endpoint"), "/v1/chat/completions");
    assert_eq!(value(point, "status"), "200");
    let histogram = &named("tollgate_first_byte_seconds")["histogram"]["dataPoints"][0];
    assert_eq!(histogram["count"], "1", "{histogram}");
    assert!(named("tollgate_uptime_seconds")["gauge"].is_object());
}

/// The bucket lines of the latency histograms.
fn buckets(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|it| it.contains("_seconds_bucket{")).collect()
}

/// Checks that the value of an exemplar belongs to the bucket of its line.
fn assert_in_bucket(line: &str, marked: &str) {
    let (_, bound) = line.split_once("le=\"").unwrap();
    let (bound, _) = bound.split_once('"').unwrap();
    let (_, value) = line.split_once(marked).unwrap();
    let (value, _) = value.split_once(' ').unwrap();
    let [bound, value] = [bound, value].map(|it| it.parse::<f64>().unwrap());
    assert!(value > 0.0 && value <= bound, "{line}");
}

#[tokio::test]
async fn a_scraper_that_asks_for_openmetrics_gets_the_trace_of_a_call_as_an_exemplar() {
    const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0";
    let collector = Receiver::start(&[200]).await;
    let (gateway, key) = with_collector(&collector)
        .setting("telemetry", "trusted_callers = [\"127.0.0.0/8\"]")
        .funded()
        .await;
    traced(&gateway, &key, &format!("00-{TRACE}-{SPAN}-01"))
        .await
        .ok();
    let marked = format!(" # {{trace_id=\"{TRACE}\"}} ");
    let metrics = eventually("an exemplar of both histograms", async || {
        let request = Request::get("/metrics").header("accept", OPENMETRICS);
        let metrics = gateway.admin_send(&request).await.ok();
        let lines = buckets(metrics.text());
        let shown = lines.iter().filter(|it| it.contains(&marked));
        let names = shown.filter_map(|it| {
            assert_in_bucket(it, &marked);
            it.split_once('{')
        });
        let names: Vec<_> = names.map(|(name, _)| name.to_owned()).collect();
        let wanted = [
            "tollgate_request_seconds_bucket",
            "tollgate_first_byte_seconds_bucket",
        ];
        (names == wanted).then_some(metrics)
    })
    .await;
    let kind = metrics.header("content-type").unwrap().to_owned();
    assert!(kind.starts_with(OPENMETRICS), "{kind}");
    assert!(metrics.text().ends_with("# EOF\n"), "{}", metrics.text());

    // Without the OpenMetrics format, the same text has no exemplars.
    let plain = gateway.admin_get("/metrics").await.ok();
    assert!(!plain.text().contains(" # {"), "{}", plain.text());
    let without = |line: &&str| line.split(" # {").next().unwrap().to_owned();
    let lines: Vec<_> = buckets(metrics.text()).iter().map(without).collect();
    assert_eq!(lines, buckets(plain.text()));

    // A call that is not traced leaves no exemplar.
    let other = TRACE.replace('4', "5");
    traced(&gateway, &key, &format!("00-{other}-{SPAN}-00"))
        .await
        .ok();
    let again = eventually("both calls in both histograms", async || {
        let request = Request::get("/metrics").header("accept", OPENMETRICS);
        let again = gateway.admin_send(&request).await.ok();
        let lines = again.text().lines();
        let counts = lines.filter(|it| it.contains("_seconds_count{") && it.ends_with(" 2"));
        (counts.count() == 2).then_some(again)
    })
    .await;
    let exemplars = again.text().matches(" # {").count();
    assert_eq!(exemplars, 2, "{}", again.text());
    assert_eq!(again.text().matches(&marked).count(), 2, "{}", again.text());
}
