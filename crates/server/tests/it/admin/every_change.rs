//! W15: every change leaves exactly one row in the audit, and nothing else leaves a row. The operations are taken from
//! the API description, and the commands from the help of five groups: `wallet`, `key`, `token`, `channel` and `alert`.
//! So every new operation, and every new command of these groups, must be listed here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::TOKEN;
use super::{AdminClient, assert_refused, with_token};
use crate::harness::{Answer, GatewayBuilder, Receiver, Request, TestGateway, ask};

/// The audit row that a successful operation leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedAudit {
    /// A row without `before`, for a creation or a sent message. Rows of `Changed` have both members, and rows of
    /// `Ended` have no `after`.
    Created(&'static str),
    Changed(&'static str),
    Ended(&'static str),
    /// A row about an action that changed nothing.
    Done(&'static str),
    /// A row about a call to an upstream that is not configured. `after` describes the call.
    Called(&'static str),
    /// No row, because nothing changes that the audit covers.
    Nothing,
}

/// An operation other than GET: its method and path as described, a request that succeeds, and the audit row it leaves.
struct Operation {
    method: &'static str,
    template: &'static str,
    path: String,
    body: Option<Value>,
    audit: ExpectedAudit,
}

fn operation(
    method: &'static str,
    template: &'static str,
    path: &str,
    body: Option<Value>,
    audit: ExpectedAudit,
) -> Operation {
    Operation {
        method,
        template,
        path: format!("/admin/v1{path}"),
        body,
        audit,
    }
}

/// All operations, in an order in which each succeeds.
async fn operations(admin: &AdminClient<'_>) -> Vec<Operation> {
    let mut operations = changes_of_accounts(admin).await;
    operations.extend(changes_of_alerts(admin).await);
    operations.extend(changes_of_the_gateway(admin).await);
    operations
}

async fn changes_of_alerts(admin: &AdminClient<'_>) -> Vec<Operation> {
    // Nothing listens at this address: a test message that cannot be delivered is audited too.
    let rule = json!({"kinds": ["low_balance"], "url": "http://127.0.0.1:9/hook"});
    let made = admin.post("/alerts/rules", &rule).await;
    let path = format!("/alerts/rules/{}", made["id"].as_str().unwrap());
    vec![
        operation(
            "post",
            "/admin/v1/alerts/rules",
            "/alerts/rules",
            Some(rule),
            ExpectedAudit::Created("alert_rule.create"),
        ),
        operation(
            "post",
            "/admin/v1/alerts/rules/{id}/test",
            &format!("{path}/test"),
            None,
            ExpectedAudit::Created("alert_rule.test"),
        ),
        operation(
            "delete",
            "/admin/v1/alerts/rules/{id}",
            &path,
            None,
            ExpectedAudit::Ended("alert_rule.remove"),
        ),
    ]
}

async fn changes_of_accounts(admin: &AdminClient<'_>) -> Vec<Operation> {
    let wallet = admin.post("/wallets", &json!({"name": "acme"})).await;
    let wallet = wallet["id"].as_str().unwrap();
    let key = admin.post("/keys", &json!({"wallet": "acme"})).await;
    let key = key["id"].as_str().unwrap();
    vec![
        operation(
            "post",
            "/admin/v1/wallets",
            "/wallets",
            Some(json!({"name": "new", "balance": "5"})),
            ExpectedAudit::Created("wallet.create"),
        ),
        operation(
            "patch",
            "/admin/v1/wallets/{id}",
            &format!("/wallets/{wallet}"),
            Some(json!({"credit_limit": "3"})),
            ExpectedAudit::Changed("wallet.update"),
        ),
        operation(
            "post",
            "/admin/v1/wallets/{id}/entries",
            &format!("/wallets/{wallet}/entries"),
            Some(json!({"kind": "top_up", "amount": "4", "reference": "r"})),
            ExpectedAudit::Changed("wallet.top_up"),
        ),
        operation(
            "post",
            "/admin/v1/keys",
            "/keys",
            Some(json!({"wallet": "acme", "name": "k"})),
            ExpectedAudit::Created("key.create"),
        ),
        operation(
            "patch",
            "/admin/v1/keys/{id}",
            &format!("/keys/{key}"),
            Some(json!({"enabled": false})),
            ExpectedAudit::Changed("key.update"),
        ),
        operation(
            "post",
            "/admin/v1/keys/{id}/rotate",
            &format!("/keys/{key}/rotate"),
            Some(json!({"overlap_seconds": 60})),
            ExpectedAudit::Changed("key.rotate"),
        ),
    ]
}

async fn changes_of_the_gateway(admin: &AdminClient<'_>) -> Vec<Operation> {
    let token = json!({"name": "old", "role": "viewer"});
    let token = admin.post("/tokens", &token).await;
    let token = token["id"].as_str().unwrap();
    let config = admin.get("/config").await;
    let address = &config["channels"][0]["base_url"];
    let account = json!({"preset": "sim", "base_url": address});
    let mut channels = config["channels"].clone();
    channels[0]["private_network"] = json!(true);
    let proposed = json!({"channels": channels, "models": config["models"]});
    let mut replaced = proposed.clone();
    replaced["version"] = config["version"].clone();
    vec![
        operation(
            "post",
            "/admin/v1/tokens",
            "/tokens",
            Some(json!({"name": "t", "role": "viewer"})),
            ExpectedAudit::Created("token.create"),
        ),
        operation(
            "delete",
            "/admin/v1/tokens/{id}",
            &format!("/tokens/{token}"),
            None,
            ExpectedAudit::Changed("token.revoke"),
        ),
        operation(
            "post",
            "/admin/v1/channels/{name}/probe",
            "/channels/main/probe",
            None,
            ExpectedAudit::Done("channel.probe"),
        ),
        operation(
            "post",
            "/admin/v1/channels/discover",
            "/channels/discover",
            Some(account.clone()),
            ExpectedAudit::Called("channel.discover"),
        ),
        operation(
            "post",
            "/admin/v1/channels/try",
            "/channels/try",
            Some(json!({"channel": account, "model": "sim-chat"})),
            ExpectedAudit::Called("channel.try"),
        ),
        operation(
            "post",
            "/admin/v1/config/check",
            "/config/check",
            Some(proposed),
            ExpectedAudit::Nothing,
        ),
        operation(
            "put",
            "/admin/v1/config",
            "/config",
            Some(replaced),
            ExpectedAudit::Changed("config.replace"),
        ),
        operation(
            "post",
            "/admin/v1/session",
            "/session",
            Some(json!({"token": TOKEN})),
            ExpectedAudit::Created("session.create"),
        ),
        // Without a cookie there is no session to end. `DELETE` with a cookie has its own test.
        operation(
            "delete",
            "/admin/v1/session",
            "/session",
            None,
            ExpectedAudit::Nothing,
        ),
        // A call is recorded in the journal, not in the audit.
        operation(
            "post",
            "/admin/v1/play/{path}",
            "/play/v1/chat/completions",
            Some(ask("hello")),
            ExpectedAudit::Nothing,
        ),
        operation(
            "delete",
            "/admin/v1/play/{path}",
            "/play/v1/contents/generations/tasks/none",
            None,
            ExpectedAudit::Nothing,
        ),
        // This operation is the last one, because the calls above need the channel.
        operation(
            "patch",
            "/admin/v1/channels/{name}",
            "/channels/main",
            Some(json!({"enabled": false})),
            ExpectedAudit::Changed("channel.disable"),
        ),
    ]
}

async fn rows(admin: &AdminClient<'_>) -> Vec<Value> {
    let page = admin.get("/audit?limit=500").await;
    assert_eq!(page["next_cursor"], Value::Null);
    page["data"].as_array().unwrap().clone()
}

impl Operation {
    fn request(&self, play_key: &str) -> Request {
        let request = Request::new(&self.method.to_uppercase(), &self.path);
        let request = request.header("x-play-key", play_key);
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    /// Checks actor, action, `before`, `after` and request id of the newest row.
    fn assert_audited(&self, row: &Value, answer: &Answer) {
        let (action, before, after) = match self.audit {
            ExpectedAudit::Created(action) | ExpectedAudit::Called(action) => (action, false, true),
            ExpectedAudit::Changed(action) => (action, true, true),
            ExpectedAudit::Ended(action) => (action, true, false),
            ExpectedAudit::Done(action) => (action, false, false),
            ExpectedAudit::Nothing => unreachable!("there is no row"),
        };
        assert_eq!(row["action"], action, "{row}");
        assert_eq!(
            (&row["actor"], &row["actor_name"], &row["actor_role"]),
            (&json!("config"), &json!("config"), &json!("owner")),
            "{row}"
        );
        assert!(!row["target"].as_str().unwrap().is_empty(), "{row}");
        for (name, is_present) in [("before", before), ("after", after)] {
            let members = row[name].as_object();
            assert_eq!(members.is_some(), is_present, "{name}: {row}");
            assert!(members.is_none_or(|it| !it.is_empty()), "{name}: {row}");
        }
        assert_eq!(row["request_id"].as_str(), answer.header("x-request-id"));
        assert!(row["at"].as_i64().unwrap() > 0);
    }
}

async fn described(gateway: &TestGateway) -> BTreeSet<(String, String)> {
    let description = gateway.admin_get("/openapi.json").await.ok().json();
    let mut operations = BTreeSet::new();
    for (template, item) in description["paths"].as_object().unwrap() {
        for method in ["post", "put", "patch", "delete"] {
            if item[method].is_object() {
                operations.insert((method.to_owned(), template.clone()));
            }
        }
    }
    operations
}

#[tokio::test]
async fn every_change_through_the_api_is_told_once_and_nothing_else_is() {
    let builder = GatewayBuilder::default().setting("outbound", "allow = [\"127.0.0.0/8\"]");
    let (gateway, key) = with_token(builder).funded().await;
    let admin = AdminClient::new(&gateway);
    let viewer = json!({"name": "eyes", "role": "viewer"});
    let viewer = admin.post("/tokens", &viewer).await;
    let viewer = AdminClient::with_token(&gateway, viewer["secret"].as_str().unwrap());
    let operations = operations(&admin).await;
    let known: BTreeSet<_> = operations
        .iter()
        .map(|it| (it.method.to_owned(), it.template.to_owned()))
        .collect();
    assert_eq!(known, described(&gateway).await);

    for operation in operations {
        let what = format!("{} {}", operation.method, operation.path);
        let before = rows(&admin).await;
        // A request that is refused because of the caller's role or the body leaves no row.
        let is_open = operation.template == "/admin/v1/session";
        if !is_open {
            let refused = viewer.send_as_is(operation.request(&key.id)).await;
            assert_eq!(refused.status(), 403, "{what}");
        }
        if operation.body.is_some() {
            let request = Request::new(&operation.method.to_uppercase(), &operation.path);
            let request = request.header("x-play-key", &key.id);
            let refused = admin.send_as_is(request.json(&json!({"no": 1}))).await;
            assert!((400..500).contains(&refused.status()), "{what}");
        }
        assert_eq!(rows(&admin).await, before, "{what} was refused");

        let answer = admin.send_as_is(operation.request(&key.id)).await;
        let is_fine = answer.status() < 300 || operation.path.ends_with("/none");
        assert!(is_fine, "{what}: {}", answer.text());
        let after = rows(&admin).await;
        if operation.audit == ExpectedAudit::Nothing {
            assert_eq!(after, before, "{what}");
            continue;
        }
        assert_eq!(after.len(), before.len() + 1, "{what}");
        assert_eq!(after[1..], before[..], "{what}");
        operation.assert_audited(&after[0], &answer);
    }
}

#[tokio::test]
async fn each_kind_of_entry_and_the_end_of_a_session_have_an_action_of_their_own() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let wallet = admin
        .post("/wallets", &json!({"name": "w", "balance": "50"}))
        .await;
    let path = format!("/wallets/{}/entries", wallet["id"].as_str().unwrap());
    for kind in ["top_up", "gift", "debit", "refund", "adjustment"] {
        let before = rows(&admin).await;
        let body = json!({"kind": kind, "amount": "2", "reference": kind});
        admin.post(&path, &body).await;
        // A repetition books nothing and leaves no row. The same reference with another amount is refused and leaves no
        // row.
        admin.post(&path, &body).await;
        let other = json!({"kind": kind, "amount": "3", "reference": kind});
        let conflict = admin.send("POST", &path, Some(&other)).await;
        assert_eq!(conflict.status(), 409);
        let after = rows(&admin).await;
        assert_eq!(after.len(), before.len() + 1, "{kind}");
        assert_eq!(after[0]["action"], format!("wallet.{kind}"));
        assert_eq!(after[0]["after"]["reference"], kind);
    }
    let sign_in = json!({"token": TOKEN});
    let open = admin.send("POST", "/session", Some(&sign_in)).await;
    let cookie = open.header("set-cookie").unwrap().split(';').next();
    let session = open.json();
    let before = rows(&admin).await;
    let end = Request::new("DELETE", "/admin/v1/session")
        .header("cookie", cookie.unwrap())
        .header("x-csrf-token", session["csrf"].as_str().unwrap());
    let answer = AdminClient::without_token(&gateway)
        .send_as_is(end.clone())
        .await;
    assert_eq!(answer.status(), 204);
    let after = rows(&admin).await;
    assert_eq!(after.len(), before.len() + 1);
    let ended = operation("delete", "", "", None, ExpectedAudit::Ended("session.end"));
    ended.assert_audited(&after[0], &answer);
    // The session has ended, so it cannot be ended again.
    let again = AdminClient::without_token(&gateway).send_as_is(end).await;
    assert_eq!(again.status(), 401);
    assert_eq!(rows(&admin).await, after);
}

/// If the configuration cannot be written, no audit row and no credential file remain.
#[tokio::test]
async fn a_configuration_that_cannot_be_written_is_not_told() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let mut config = admin.get("/config").await;
    config.as_object_mut().unwrap().remove("kept_in");
    config["channels"][0]["credential"] = json!("sk-pasted");
    let before = rows(&admin).await;
    // A folder blocks the name of the new file.
    std::fs::create_dir(gateway.folder().join(".tollgate.toml.new")).unwrap();
    let failed = admin.send("PUT", "/config", Some(&config)).await;
    assert_refused(&failed, 409, "config_not_writable");
    assert_eq!(rows(&admin).await, before);
    let credentials = std::fs::read_dir(gateway.folder().join("credentials")).unwrap();
    assert_eq!(credentials.count(), 0);
    std::fs::remove_dir(gateway.folder().join(".tollgate.toml.new")).unwrap();
    admin.send("PUT", "/config", Some(&config)).await.ok();
    assert_eq!(rows(&admin).await.len(), before.len() + 1);
}

/// The names of the subcommands in the help of a command.
async fn subcommands(gateway: &TestGateway, group: &str) -> BTreeSet<String> {
    let help = gateway.cli(&[group, "--help"]).await.stdout;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let mut names: BTreeSet<String> = names.map(str::to_owned).collect();
    names.remove("help");
    names
}

#[tokio::test]
async fn every_command_that_changes_accounts_is_told_once() {
    const READS: [&str; 6] = ["list", "rules", "show", "statement", "follow", "verify"];
    let builder = GatewayBuilder::default().setting("outbound", "allow = [\"127.0.0.0/8\"]");
    let gateway = with_token(builder).start().await;
    let admin = AdminClient::new(&gateway);
    gateway.wallet("w", &["--balance", "50"]).await;
    let key = gateway.key("w", &[]).await.id;
    let token = ["token", "create", "old", "--role", "viewer"];
    let token = gateway.cli_json(&token).await["id"].clone();
    let token = token.as_str().unwrap();
    let receiver = Receiver::start(&[200]).await;
    let url = receiver.url.as_str();
    let rule = ["alert", "add", url, "--kinds", "low_balance"];
    let rule = gateway.cli_json(&rule).await["id"].clone();
    let rule = rule.as_str().unwrap();
    let commands: [(&str, &[&str], &str); 24] = [
        ("wallet", &["create", "new"], "wallet.create"),
        ("wallet", &["topup", "w", "5"], "wallet.top_up"),
        ("wallet", &["gift", "w", "5"], "wallet.gift"),
        ("wallet", &["debit", "w", "1"], "wallet.debit"),
        ("wallet", &["refund", "w", "1"], "wallet.refund"),
        ("wallet", &["adjust", "w", "1"], "wallet.adjustment"),
        ("wallet", &["rename", "new", "newer"], "wallet.update"),
        ("wallet", &["credit-limit", "w", "2"], "wallet.update"),
        ("wallet", &["alert-below", "w", "3"], "wallet.update"),
        ("wallet", &["disable", "w"], "wallet.update"),
        ("wallet", &["enable", "w"], "wallet.update"),
        ("key", &["create", "--wallet", "w"], "key.create"),
        ("key", &["update", &key, "--rpm", "5"], "key.update"),
        ("key", &["rotate", &key], "key.rotate"),
        ("key", &["disable", &key], "key.update"),
        ("key", &["enable", &key], "key.update"),
        (
            "token",
            &["create", "t", "--role", "viewer"],
            "token.create",
        ),
        ("token", &["revoke", token], "token.revoke"),
        ("token", &["sign-in-link"], "sign_in_link.create"),
        ("channel", &["disable", "main"], "channel.disable"),
        ("channel", &["enable", "main"], "channel.enable"),
        (
            "alert",
            &["add", url, "--kinds", "key_limit"],
            "alert_rule.create",
        ),
        ("alert", &["test", rule], "alert_rule.test"),
        ("alert", &["remove", rule], "alert_rule.remove"),
    ];
    for group in ["wallet", "key", "token", "channel", "alert"] {
        let mut names = subcommands(&gateway, group).await;
        names.retain(|name| !READS.contains(&name.as_str()));
        let known = commands.iter().filter(|(of, ..)| *of == group);
        let known: BTreeSet<String> = known.map(|(_, words, _)| words[0].to_owned()).collect();
        assert_eq!(names, known, "{group}");
    }
    for (group, words, action) in commands {
        let before = rows(&admin).await;
        let command = [&[group], words].concat();
        gateway.cli_json(&command).await;
        let after = rows(&admin).await;
        assert_eq!(after.len(), before.len() + 1, "{command:?}");
        let row = &after[0];
        assert_eq!(row["action"], action, "{row}");
        assert_eq!(
            (&row["actor"], &row["request_id"]),
            (&json!("cli"), &Value::Null)
        );
    }
    // Commands that fail or change nothing leave no row.
    let before = rows(&admin).await;
    for (command, is_fine) in [
        (&["wallet", "create", "w"][..], false),
        (&["wallet", "topup", "nobody", "5"], false),
        (&["wallet", "refund", "w", "9999"], false),
        (&["wallet", "rename", "newer", "w"], false),
        (&["wallet", "enable", "w"], true),
        (&["wallet", "credit-limit", "w", "2"], true),
        (&["key", "create", "--wallet", "nobody"], false),
        (&["key", "rotate", "key_0000000000000000"], false),
        (&["key", "enable", &key], true),
        (&["token", "revoke", "tok_0000000000000000"], false),
        (&["token", "revoke", token], true),
        (
            &["alert", "add", "http://10.0.0.1/", "--kinds", "key_limit"],
            false,
        ),
        (&["alert", "test", rule], false),
        (&["alert", "remove", rule], false),
    ] {
        let output = gateway.cli(command).await;
        assert_eq!(output.status.success(), is_fine, "{command:?}");
    }
    assert_eq!(rows(&admin).await, before);
}
