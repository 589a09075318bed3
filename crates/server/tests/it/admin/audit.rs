//! `/admin/v1/audit`: rows for changes made through the API and the command line.

use serde_json::Value;

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, run_in};

#[tokio::test]
async fn what_the_command_line_did_is_told_a_page_at_a_time() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for name in ["one", "two", "three"] {
        gateway.wallet(name, &["--balance", "5"]).await;
    }
    let admin = AdminClient::new(&gateway);
    let first = admin.get("/audit?action=wallet.create&limit=2").await;
    let names = |page: &Value| -> Vec<String> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["after"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["three", "two"]);
    let row = &first["data"][0];
    assert_eq!(
        (&row["actor"], &row["actor_role"]),
        (&"cli".into(), &"owner".into())
    );
    assert_eq!(
        (&row["before"], &row["request_id"]),
        (&Value::Null, &Value::Null)
    );
    assert!(row["target"].as_str().unwrap().starts_with("wal_"));
    let cursor = first["next_cursor"].as_str().unwrap();
    let path = format!("/audit?action=wallet.create&limit=2&cursor={cursor}");
    let second = admin.get(&path).await;
    assert_eq!(names(&second), ["one"]);
    assert_eq!(second["next_cursor"], Value::Null);
    assert_eq!(names(&admin.get("/audit?q=THREE").await), ["three"]);
}

#[tokio::test]
async fn a_query_that_cannot_be_obeyed_is_refused() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("cursor=!", "cursor"),
        ("cursor=bnVsbA", "cursor"),
        ("from=yesterday", "from"),
        ("colour=red", "colour"),
    ] {
        let answer = AdminClient::new(&gateway)
            .send("GET", &format!("/audit?{query}"), None)
            .await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{query}"
        );
    }
}

/// W15: every command that changes something leaves exactly one row.
#[tokio::test]
async fn every_change_by_command_is_told_once() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    gateway.wallet("acme", &[]).await;
    let key = gateway.key("acme", &[]).await.id;
    let token = gateway
        .cli_json(&["token", "create", "ops", "--role", "viewer"])
        .await;
    let token = token["id"].as_str().unwrap();
    let mut expected = vec!["wallet.create", "key.create", "token.create"];
    for (command, action) in [
        (["wallet", "topup", "acme", "5"].as_slice(), "wallet.top_up"),
        (&["wallet", "gift", "acme", "1"], "wallet.gift"),
        (&["wallet", "credit-limit", "acme", "2"], "wallet.update"),
        (&["wallet", "disable", "acme"], "wallet.update"),
        (&["wallet", "enable", "acme"], "wallet.update"),
        (&["key", "update", &key, "--limit", "3"], "key.update"),
        (&["key", "disable", &key], "key.update"),
        (&["key", "enable", &key], "key.update"),
        (&["token", "revoke", token], "token.revoke"),
        (&["token", "sign-in-link"], "sign_in_link.create"),
    ] {
        gateway.cli_json(command).await;
        expected.push(action);
    }
    // Commands that only read leave no row.
    gateway.cli_json(&["wallet", "list"]).await;
    gateway.cli_json(&["token", "list"]).await;
    let audit = gateway.cli_json(&["audit"]).await;
    let rows = audit.as_array().unwrap();
    let actions: Vec<_> = rows
        .iter()
        .rev()
        .map(|row| row["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, expected);
    assert!(
        rows.iter()
            .all(|row| row["actor"] == "cli" && row["actor_role"] == "owner")
    );
    // Services and containers have no login name, but their user has a name or a number.
    let command = ["--config", "tollgate.toml", "token", "sign-in-link"];
    let no_login = [("USER", ""), ("LOGNAME", "")];
    let made = run_in(&command, gateway.folder(), &no_login).await;
    assert!(made.status.success(), "{}", made.stderr);
    let audit = gateway.cli_json(&["audit"]).await;
    let name = audit[0]["actor_name"].as_str().unwrap();
    assert!(!name.is_empty() && name != "unknown", "{}", audit[0]);
}
