//! `/admin/v1/alerts`: each condition begins and ends once, and webhooks are notified of both.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{
    Database, Delivery, GatewayBuilder, Key, Receiver, Reply, TestGateway, ask, eventually,
};

/// The document that shows receivers how to verify a signature.
const OPERATIONS: &str = include_str!("../../../../../docs/operations.md");

/// Checks conditions often, retries soon, and allows webhooks on this machine.
fn with_fast_alerts(builder: GatewayBuilder) -> GatewayBuilder {
    with_token(builder)
        .setting("outbound", "allow = [\"127.0.0.0/8\"]")
        .setting("alerts", "check_every_ms = 50")
        .setting("alerts", "retry_ms = [10, 10, 10]")
}

async fn rule(admin: &AdminClient<'_>, kinds: &[&str], url: &str) -> Value {
    let body = json!({"kinds": kinds, "url": url});
    admin.post("/alerts/rules", &body).await
}

/// Waits until the alerts of a kind satisfy `is_wanted`, and returns them.
async fn alerts(
    admin: &AdminClient<'_>,
    kind: &str,
    is_wanted: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    eventually(kind, async || {
        let list = admin.get(&format!("/alerts?kind={kind}")).await;
        let rows = list["data"].as_array().unwrap().clone();
        is_wanted(&rows).then_some(rows)
    })
    .await
}

fn have_ended(rows: &[Value]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| row["ended_at"].is_i64())
}

fn were_delivered(rows: &[Value]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| row["delivery"] == "delivered")
}

/// Books a manual entry on a wallet.
async fn entry(admin: &AdminClient<'_>, wallet: &str, kind: &str, amount: &str, reference: &str) {
    let body = json!({"kind": kind, "amount": amount, "reference": reference});
    let path = format!("/wallets/{wallet}/entries");
    admin.post(&path, &body).await;
}

fn header<'t>(delivery: &'t Delivery, name: &str) -> &'t str {
    let prefix = format!("{name}: ");
    let mut lines = delivery.head.lines();
    lines.find_map(|line| line.strip_prefix(&*prefix)).unwrap()
}

/// Runs the Python check from `docs/operations.md` on a delivery.
async fn is_genuine(secret: &str, signature: &str, body: &[u8]) -> bool {
    let (_, code) = OPERATIONS.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let program = format!(
        "{code}\nimport sys\nprint(is_genuine({secret:?}, {signature:?}, sys.stdin.buffer.read()))"
    );
    let mut python = tokio::process::Command::new("python3")
        .args(["-c", &program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = python.stdin.take().unwrap();
    input.write_all(body).await.unwrap();
    drop(input);
    let output = python.wait_with_output().await.unwrap();
    assert!(output.status.success());
    // The example in the document prints a line of its own first.
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().last() == Some("True")
}

#[tokio::test]
async fn a_low_balance_is_told_once_until_it_is_heard_and_its_end_once() {
    let gateway = with_fast_alerts(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let wallet = gateway.wallet("acme", &["--balance", "10"]).await;
    let wallet = wallet["id"].as_str().unwrap();
    let receiver = Receiver::start(&[500, 302, 500, 200]).await;
    let made = rule(&admin, &["low_balance"], &receiver.url).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    assert!(
        !admin
            .get("/alerts/rules")
            .await
            .to_string()
            .contains(secret)
    );

    // The rule names no amount, so the amount of the wallet applies.
    let change = json!({"alerts": {"below": "5"}});
    let path = format!("/wallets/{wallet}");
    let answer = admin.send("PATCH", &path, Some(&change)).await.ok();
    assert_eq!(answer.json()["alerts"]["below"], "5");
    entry(&admin, wallet, "debit", "6", "d1").await;
    let deliveries = receiver.wait_for(4).await;
    let begun = alerts(&admin, "low_balance", were_delivered).await;
    assert_eq!(begun.len(), 1);
    assert_eq!(begun[0]["subject"], *wallet);
    assert_eq!(begun[0]["ended_at"], Value::Null);
    let message = begun[0]["message"].as_str().unwrap();
    assert_eq!(message, "Wallet acme has 4 credits, which is less than 5.");
    gateway
        .logged("a line of the log", |line| line.contains(message))
        .await;

    let body: Value = serde_json::from_slice(&deliveries[3].body).unwrap();
    assert_eq!(body["type"], "alert.begin");
    assert_eq!(body["alert"]["id"], begun[0]["id"]);
    assert_eq!(body["alert"]["message"], *message);
    for delivery in &deliveries {
        assert_eq!(
            delivery.body, deliveries[0].body,
            "each attempt is the same"
        );
        let id = body["id"].as_str().unwrap().to_lowercase();
        assert_eq!(header(delivery, "idempotency-key"), id);
        let signature = header(delivery, "tollgate-signature");
        assert!(is_genuine(secret, signature, &delivery.body).await);
        assert!(!is_genuine(secret, signature, b"{}").await);
        assert!(!is_genuine("whsec_other", signature, &delivery.body).await);
    }
    // A further debit keeps the balance low and causes no second notification.
    entry(&admin, wallet, "debit", "1", "d2").await;
    // One check begins the alerts of a key, and another ends them. Both checks come after the debit.
    let key = gateway.key("acme", &[]).await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let key = format!("/keys/{}", key.id);
    let limit = async |limit: Value| {
        let change = json!({ "limit": limit });
        admin.send("PATCH", &key, Some(&change)).await.ok();
    };
    limit(json!("0")).await;
    alerts(&admin, "key_limit", |rows| rows.len() == 2).await;
    limit(Value::Null).await;
    alerts(&admin, "key_limit", have_ended).await;
    assert_eq!(alerts(&admin, "low_balance", were_delivered).await, begun);
    assert_eq!(receiver.deliveries().len(), 4);
    entry(&admin, wallet, "top_up", "10", "t1").await;
    let ended = alerts(&admin, "low_balance", |rows| {
        have_ended(rows) && were_delivered(rows)
    });
    assert_eq!(ended.await.len(), 1);
    let deliveries = receiver.deliveries();
    assert_eq!(deliveries.len(), 5);
    let body: Value = serde_json::from_slice(&deliveries[4].body).unwrap();
    assert_eq!(body["type"], "alert.end");
    assert!(body["alert"]["ended_at"].is_i64());

    // The condition may begin again, as a new alert.
    entry(&admin, wallet, "debit", "10", "d3").await;
    let again = alerts(&admin, "low_balance", |rows| rows.len() == 2).await;
    assert_ne!(again[0]["id"], again[1]["id"]);
    let pages = "/alerts?kind=low_balance&limit=1";
    let page = admin.get(pages).await;
    assert_eq!(page["data"][0]["id"], again[0]["id"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = admin.get(&format!("{pages}&cursor={cursor}")).await;
    assert_eq!(page["data"][0]["id"], again[1]["id"]);
    assert_eq!(page["next_cursor"], Value::Null);
    // The wallet no longer counts as low once its amount is removed.
    let change = json!({"alerts": null});
    admin.send("PATCH", &path, Some(&change)).await.ok();
    alerts(&admin, "low_balance", have_ended).await;
    gateway.verify().await;
}

#[tokio::test]
async fn a_rule_of_one_wallet_hears_of_it_alone() {
    let gateway = with_fast_alerts(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    for name in ["acme", "other"] {
        gateway.wallet(name, &["--balance", "4"]).await;
    }
    let (all, one) = (Receiver::start(&[200]).await, Receiver::start(&[200]).await);
    let body = json!({"kinds": ["low_balance"], "url": one.url, "wallet": "acme", "below": "5"});
    let made = admin.post("/alerts/rules", &body).await;
    assert_eq!(made["wallet_name"], "acme");
    let body = json!({"kinds": ["low_balance"], "url": all.url, "below": "4.5"});
    admin.post("/alerts/rules", &body).await;
    let rows = alerts(&admin, "low_balance", |rows| {
        rows.len() == 3 && were_delivered(rows)
    });
    rows.await;
    assert_eq!((all.deliveries().len(), one.deliveries().len()), (2, 1));
    let body: Value = serde_json::from_slice(&one.deliveries()[0].body).unwrap();
    assert_eq!(body["alert"]["wallet"], made["wallet"]);
    let of_acme = admin.get("/alerts?wallet=acme&open=true").await;
    assert_eq!(of_acme["data"].as_array().unwrap().len(), 2);

    for (body, param) in [
        (json!({"kinds": [], "url": one.url}), Value::Null),
        (
            json!({"kinds": ["fire"], "url": one.url}),
            json!("kinds[0]"),
        ),
        (
            json!({"kinds": ["channel_down"], "url": one.url, "wallet": "acme"}),
            Value::Null,
        ),
        (
            json!({"kinds": ["key_limit"], "url": one.url, "below": "5"}),
            Value::Null,
        ),
        (
            json!({"kinds": ["key_limit"], "url": one.url, "wallet": "nobody"}),
            json!("wallet"),
        ),
        (
            json!({"kinds": ["key_limit"], "url": one.url, "wallet": "wal_0123456789abcdef"}),
            json!("wallet"),
        ),
        (
            json!({"kinds": ["key_limit"], "url": "nonsense"}),
            json!("url"),
        ),
        (
            json!({"kinds": ["key_limit"], "url": "http://localhost/"}),
            json!("url"),
        ),
    ] {
        let answer = admin.send("POST", "/alerts/rules", Some(&body)).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_key_is_told_of_at_80_per_cent_and_when_its_limit_is_used_up() {
    let (gateway, key) = with_fast_alerts(GatewayBuilder::default()).funded().await;
    let admin = AdminClient::new(&gateway);
    gateway.chat(&key, &ask("reply with 100 words")).await.ok();
    let path = format!("/keys/{}", key.id);
    let used = eventually("the charge", async || {
        let used = admin.get(&path).await["usage_micro"].as_str()?.parse().ok();
        used.filter(|used: &i64| *used > 0)
    })
    .await;
    let limit = async |micro: Option<i64>| {
        let limit = micro.map(|micro| ledger::Micro::new(micro).to_string());
        let change = json!({ "limit": limit });
        admin.send("PATCH", &path, Some(&change)).await.ok();
    };
    limit(Some(used * 2)).await;
    limit(Some(used * 10 / 9)).await;
    let near = alerts(&admin, "key_limit", |rows| rows.len() == 1).await;
    assert!(near[0]["message"].as_str().unwrap().contains("80 %"));
    assert_eq!(near[0]["subject"], *key.id);
    limit(Some(used)).await;
    let full = alerts(&admin, "key_limit", |rows| rows.len() == 2).await;
    assert!(full[0]["message"].as_str().unwrap().contains(" all "));
    assert_eq!(full[1]["ended_at"], Value::Null, "both last");
    limit(None).await;
    let ended = alerts(&admin, "key_limit", have_ended).await;
    assert_eq!(ended.len(), 2);
}

async fn fails(gateway: &TestGateway, key: &Key, model: &str) {
    let mut body = ask("hello");
    body["model"] = json!(model);
    let answer = gateway.chat(key, &body).await;
    assert!(answer.status() >= 500, "{}", answer.status());
}

#[tokio::test]
async fn a_channel_that_is_down_and_errors_above_normal_are_told_once() {
    let failing = r#"
        [[model]]
        id = "maker/broken"
        kind = "text"
        routes = [{ channel = "main", model = "sim-chat+status=500" }]
        price = { input = "1", output = "1" }
        profile = { context_tokens = 400000, max_output_tokens = 128000 }
    "#;
    let (gateway, key) = with_fast_alerts(GatewayBuilder::default().entries(failing))
        .funded()
        .await;
    let admin = AdminClient::new(&gateway);
    let receiver = Receiver::start(&[200]).await;
    rule(&admin, &["channel_down", "error_rate"], &receiver.url).await;
    for _ in 0..20 {
        fails(&gateway, &key, "maker/broken").await;
    }
    let down = alerts(&admin, "channel_down", were_delivered).await;
    assert_eq!((down.len(), &down[0]["subject"]), (1, &json!("main")));
    // There is one alert for all calls, and one for the channel.
    let rates = alerts(&admin, "error_rate", |rows| {
        rows.len() == 2 && were_delivered(rows)
    });
    let rates = rates.await;
    assert!(rates.iter().any(|row| row["subject"] == "main"));
    let attention = admin.get("/attention").await;
    let sentences = attention["data"].as_array().unwrap();
    let about = |word: &str| {
        let of = |row: &&Value| row["message"].as_str().unwrap().contains(word);
        sentences.iter().filter(of).count()
    };
    assert_eq!(about("Channel main is paused"), 1, "{attention}");
    assert_eq!(about("15 minutes failed"), 2, "{attention}");

    // The channel is tried again after its cooldown. Successful calls then end all three alerts.
    eventually("the end of the outage", async || {
        gateway.chat(&key, &ask("hello")).await.ok();
        let list = admin.get("/alerts?kind=channel_down").await;
        have_ended(list["data"].as_array().unwrap()).then_some(())
    })
    .await;
    eventually("the end of the errors", async || {
        for _ in 0..50 {
            gateway.chat(&key, &ask("hello")).await.ok();
        }
        let list = admin.get("/alerts?kind=error_rate").await;
        have_ended(list["data"].as_array().unwrap()).then_some(())
    })
    .await;
    let all = alerts(&admin, "error_rate", were_delivered).await;
    assert_eq!(all.len(), 2, "each began once");
    assert_eq!(
        alerts(&admin, "channel_down", were_delivered).await.len(),
        1
    );
    assert_eq!(receiver.deliveries().len(), 6);
}

/// Rules A1 and A3 also apply to webhooks.
#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_allowed() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    for url in [
        "http://127.0.0.1:9/x",
        "http://0x7f.1/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://intranet/",
        "http://169.254.169.254/latest",
        "ftp://a.example/",
        "https://user@a.example/",
    ] {
        let body = json!({"kinds": ["low_balance"], "url": url});
        let answer = admin.send("POST", "/alerts/rules", Some(&body)).await;
        let param = assert_refused(&answer, 400, "invalid_request");
        assert_eq!(param, "url", "{url}");
        let refused = gateway
            .cli(&["alert", "add", url, "--kinds", "low_balance"])
            .await;
        assert!(!refused.status.success(), "{url}");
        assert!(
            refused.stderr.contains("the address is refused"),
            "{}",
            refused.stderr
        );
    }
    // A rule that was stored while its address was allowed is refused at delivery.
    let sql = "INSERT INTO alert_rules (id, kinds, url, secret, created_at)
               VALUES ('rul_0123456789abcdef', 'low_balance', 'http://127.0.0.1:9/', 's', 1)";
    gateway.database().run(sql);
    let answer = admin
        .post("/alerts/rules/rul_0123456789abcdef/test", &json!({}))
        .await;
    assert_eq!(answer["delivered"], false);
    let problem = answer["problem"].as_str().unwrap();
    assert!(problem.contains("not public"), "{problem}");
    let test = ["--json", "alert", "test", "rul_0123456789abcdef"];
    let answer = gateway.cli(&test).await;
    assert!(!answer.status.success() && answer.stdout.contains("not public"));
}

#[tokio::test]
async fn rules_are_tested_and_removed_and_viewers_see_no_secret() {
    let gateway = with_fast_alerts(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let receiver = Receiver::start(&[200, 500]).await;
    let made = gateway
        .cli_json(&[
            "alert",
            "add",
            &receiver.url,
            "--kinds",
            "low_balance,key_limit",
        ])
        .await;
    let id = made["id"].as_str().unwrap();
    let path = format!("/alerts/rules/{id}");
    let try_out = async || admin.post(&format!("{path}/test"), &json!({})).await;
    assert_eq!(try_out().await, json!({"delivered": true, "problem": null}));
    let delivery = &receiver.deliveries()[0];
    let body: Value = serde_json::from_slice(&delivery.body).unwrap();
    assert_eq!(body["type"], "alert.test");
    let (secret, signature) = (
        made["secret"].as_str().unwrap(),
        header(delivery, "tollgate-signature"),
    );
    assert!(is_genuine(secret, signature, &delivery.body).await);
    let failed = try_out().await;
    assert_eq!(failed["delivered"], false);
    assert!(failed["problem"].as_str().unwrap().contains("500"));
    let failed = gateway.cli(&["alert", "test", id]).await;
    assert!(failed.stderr.contains("500"), "{}", failed.stderr);

    let token = json!({"name": "eyes", "role": "viewer"});
    let token = admin.post("/tokens", &token).await;
    let viewer = AdminClient::with_token(&gateway, token["secret"].as_str().unwrap());
    let seen = viewer.get("/alerts/rules").await;
    let url = seen["data"][0]["url"].as_str().unwrap();
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/…"),
        "{url}"
    );
    assert_eq!(
        admin.get("/alerts/rules").await["data"][0]["url"],
        receiver.url
    );

    let answer = admin.send("DELETE", &path, None).await;
    assert_eq!(answer.status(), 204);
    let answer = admin.send("DELETE", &path, None).await;
    assert_refused(&answer, 404, "not_found");
    let answer = admin.send("POST", &format!("{path}/test"), None).await;
    assert_refused(&answer, 404, "not_found");
    assert_eq!(gateway.cli_json(&["alert", "rules"]).await, json!([]));
    let audit = viewer.get(&format!("/audit?target={id}")).await;
    let actions: Vec<_> = audit["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["action"])
        .collect();
    assert_eq!(
        actions,
        [
            "alert_rule.remove",
            "alert_rule.test",
            "alert_rule.test",
            "alert_rule.test",
            "alert_rule.create"
        ]
    );
    let text = audit.to_string();
    assert!(
        !text.contains("token=t") && !text.contains("whsec_"),
        "{text}"
    );
}

/// The receiver gets the message, but the gateway is killed before it records the delivery. After the restart it sends
/// the message again, with the same id.
#[tokio::test]
async fn killed_in_a_delivery_an_alert_is_delivered_again() {
    let mut gateway = with_fast_alerts(GatewayBuilder::default()).start().await;
    let receiver = Receiver::replying(vec![Reply::Never, Reply::Status(200)]).await;
    gateway.wallet("acme", &["--balance", "1"]).await;
    let add = [
        "alert",
        "add",
        &receiver.url,
        "--kinds",
        "low_balance",
        "--below",
        "5",
    ];
    gateway.cli_json(&add).await;
    receiver.wait_for(1).await;
    gateway.kill();
    gateway.restart().await;
    let deliveries = receiver.wait_for(2).await;
    assert_eq!(deliveries[0].body, deliveries[1].body);
    let admin = AdminClient::new(&gateway);
    let rows = alerts(&admin, "low_balance", were_delivered).await;
    assert_eq!(rows.len(), 1, "it has begun once");
    let listed = gateway.cli_json(&["alert", "list", "--open"]).await;
    assert_eq!(listed[0]["id"], rows[0]["id"]);
    // The wallet's own amount takes precedence over the rule's.
    gateway
        .cli_json(&["wallet", "alert-below", "acme", "0.5"])
        .await;
    alerts(&admin, "low_balance", have_ended).await;
}

/// A webhook that hangs delays its own messages for ten seconds, but not those of other rules.
#[tokio::test]
async fn webhooks_that_hang_delay_no_other() {
    let gateway = with_fast_alerts(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let below = async |url: &str| {
        let body = json!({"kinds": ["low_balance"], "url": url, "below": "5"});
        admin.post("/alerts/rules", &body).await;
    };
    let mut hanging = Vec::new();
    for _ in 0..5 {
        let receiver = Receiver::replying(vec![Reply::Never]).await;
        below(&receiver.url).await;
        hanging.push(receiver);
    }
    for number in 0..4 {
        let name = format!("w{number}");
        gateway.wallet(&name, &["--balance", "1"]).await;
    }
    let before_any_ends = Duration::from_secs(9);
    let deliveries = tokio::time::timeout(before_any_ends, async {
        for receiver in &hanging {
            receiver.wait_for(4).await;
        }
        let receiver = Receiver::start(&[200]).await;
        below(&receiver.url).await;
        gateway.wallet("last", &["--balance", "1"]).await;
        receiver.wait_for(1).await
    });
    let deliveries = deliveries.await.expect("nobody waits for those that hang");
    let body: Value = serde_json::from_slice(&deliveries[0].body).unwrap();
    assert_eq!(body["type"], "alert.begin");
}

#[tokio::test]
async fn several_nodes_deliver_an_alert_once() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let mut gateway = with_fast_alerts(GatewayBuilder::default().database(database))
        .start()
        .await;
    for _ in 0..2 {
        gateway.another_node().await;
    }
    let admin = AdminClient::new(&gateway);
    let receiver = Receiver::start(&[200]).await;
    let body = json!({"kinds": ["low_balance"], "url": receiver.url, "below": "5"});
    admin.post("/alerts/rules", &body).await;
    for number in 0..10 {
        gateway
            .wallet(&format!("w{number}"), &["--balance", "1"])
            .await;
    }
    let rows = alerts(&admin, "low_balance", |rows| {
        rows.len() == 10 && were_delivered(rows)
    });
    rows.await;
    assert_eq!(receiver.deliveries().len(), 10);
}
