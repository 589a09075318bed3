//! `/admin/v1/wallets`: wallets, their entries, statements and history.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, ask, enough_of_the_day};

async fn wallet(admin: &AdminClient<'_>, name: &str, balance: &str) -> String {
    let new = json!({"name": name, "balance": balance});
    let wallet = admin.post("/wallets", &new).await;
    wallet["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_wallet_is_created_found_and_changed() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let new = json!({"name": "Acme", "balance": "10.5", "gift": "2", "credit_limit": "3"});
    let answer = admin.send("POST", "/wallets", Some(&new)).await;
    assert_eq!(answer.status(), 201);
    let made = answer.json();
    assert_eq!(made["balance"], "10.5");
    assert_eq!(made["balance_micro"], "10500000");
    assert_eq!(made["total_available"], "15.5");
    assert_eq!(
        (&made["spent_today"], &made["spent_this_month_micro"]),
        (&json!("0"), &json!("0"))
    );
    let id = made["id"].as_str().unwrap();
    assert_eq!(admin.get(&format!("/wallets/{id}")).await, made);

    let path = format!("/wallets/{id}");
    let change = json!({"name": "Acme Inc", "credit_limit": "7", "enabled": false});
    let changed = admin.send("PATCH", &path, Some(&change)).await.ok().json();
    assert_eq!(
        (&changed["name"], &changed["status"]),
        (&json!("Acme Inc"), &json!("disabled"))
    );
    assert_eq!(changed["credit_limit"], "7");
    // The command line shows the same members.
    let shown = gateway.cli_json(&["wallet", "show", "Acme Inc"]).await;
    for (name, value) in shown.as_object().unwrap() {
        assert_eq!(&changed[name], value, "{name}");
    }

    for (body, status, code, param) in [
        (
            json!({"name": "Acme Inc"}),
            409,
            "name_taken",
            json!("name"),
        ),
        (json!({"name": ""}), 400, "invalid_request", json!("name")),
        (
            json!({"name": "wal_x"}),
            400,
            "invalid_request",
            json!("name"),
        ),
        (
            json!({"name": "x", "balance": "-1"}),
            400,
            "invalid_request",
            json!("balance"),
        ),
        (
            json!({"name": "x", "balance": 5}),
            400,
            "invalid_request",
            json!("balance"),
        ),
        (
            json!({"name": "x", "colour": 1}),
            400,
            "invalid_request",
            json!("colour"),
        ),
        (json!({}), 400, "invalid_request", Value::Null),
    ] {
        let answer = admin.send("POST", "/wallets", Some(&body)).await;
        assert_eq!(assert_refused(&answer, status, code), param, "{body}");
    }
    let refused = json!({"name": "other", "credit_limit": "-7"});
    let answer = admin.send("PATCH", &path, Some(&refused)).await;
    assert_eq!(
        assert_refused(&answer, 400, "invalid_request"),
        "credit_limit"
    );
    assert_eq!(admin.get(&path).await["name"], "Acme Inc");
    for path in [
        "/wallets/wal_0000000000000000",
        "/wallets/acme",
        "/wallets/acme/history",
    ] {
        let answer = admin.send("GET", path, None).await;
        assert_refused(&answer, 404, "not_found");
    }
}

#[tokio::test]
async fn wallets_are_listed_and_searched_by_pages() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(wallet(&admin, &format!("Customer {n}"), "1").await);
    }
    let mut found = Vec::new();
    let mut path = "/wallets?q=customer&limit=2".to_owned();
    loop {
        let page = admin.get(&path).await;
        let rows = page["data"].as_array().unwrap();
        found.extend(
            rows.iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/wallets?q=customer&limit=2&cursor={cursor}");
    }
    ids.reverse();
    assert_eq!(found, ids);
    let one = admin.get(&format!("/wallets?q={}", ids[3])).await;
    assert_eq!(one["data"][0]["name"], "Customer 1");
}

#[tokio::test]
async fn a_payment_is_booked_once_however_often_it_is_sent() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let id = wallet(&admin, "acme", "1").await;
    let path = format!("/wallets/{id}/entries");
    let payment = json!({"kind": "top_up", "amount": "5", "reference": "pay_1", "note": "card"});
    let answers =
        futures_util::future::join_all((0..40).map(|_| admin.send("POST", &path, Some(&payment))))
            .await;
    let created = answers.iter().filter(|answer| answer.status() == 201);
    assert_eq!(created.count(), 1);
    let entry = answers[0].json();
    for answer in &answers {
        assert!(matches!(answer.status(), 200 | 201), "{}", answer.text());
        assert_eq!(answer.json(), entry);
    }
    assert_eq!(
        (&entry["seq"], &entry["kind"]),
        (&json!(2), &json!("top_up"))
    );
    assert_eq!(
        (&entry["amount"], &entry["balance_after"]),
        (&json!("5"), &json!("6"))
    );
    assert_eq!(
        (&entry["note"], &entry["reference"]),
        (&json!("card"), &json!("pay_1"))
    );
    assert!(entry["actor"].is_string() && entry["key"].is_null());

    for (different, param) in [
        (
            json!({"kind": "top_up", "amount": "6", "reference": "pay_1"}),
            "reference",
        ),
        (
            json!({"kind": "gift", "amount": "5", "reference": "pay_1"}),
            "reference",
        ),
    ] {
        let answer = admin.send("POST", &path, Some(&different)).await;
        assert_eq!(assert_refused(&answer, 409, "reference_conflict"), param);
    }
    assert_eq!(admin.get(&format!("/wallets/{id}")).await["balance"], "6");
}

#[tokio::test]
async fn credits_are_taken_as_far_as_there_are_any() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let id = wallet(&admin, "acme", "0").await;
    let path = format!("/wallets/{id}/entries");
    for (body, balance) in [
        (
            json!({"kind": "top_up", "amount": "10", "reference": "pay"}),
            "10",
        ),
        (
            json!({"kind": "gift", "amount": "1", "reference": "welcome"}),
            "11",
        ),
        (
            json!({"kind": "debit", "amount": "2.5", "reference": "setup"}),
            "8.5",
        ),
        (
            json!({"kind": "refund", "amount": "4", "reference": "back", "refund_of": "pay"}),
            "4.5",
        ),
        (
            json!({"kind": "refund", "amount": "1", "reference": "more"}),
            "3.5",
        ),
        (
            json!({"kind": "adjustment", "amount": "-0.5", "reference": "oops"}),
            "3",
        ),
        (
            json!({"kind": "adjustment", "amount": "7", "reference": "fix"}),
            "10",
        ),
    ] {
        let entry = admin.post(&path, &body).await;
        assert_eq!(entry["balance_after"], balance, "{body}");
    }
    for (body, param) in [
        (
            json!({"kind": "debit", "amount": "100", "reference": "x"}),
            json!("amount"),
        ),
        (
            json!({"kind": "refund", "amount": "7", "reference": "x", "refund_of": "pay"}),
            json!("amount"),
        ),
        (
            json!({"kind": "refund", "amount": "1", "reference": "x", "refund_of": "welcome"}),
            json!("refund_of"),
        ),
        (
            json!({"kind": "debit", "amount": "1", "reference": "x", "refund_of": "pay"}),
            json!("refund_of"),
        ),
        (
            json!({"kind": "top_up", "amount": "0", "reference": "x"}),
            json!("amount"),
        ),
        (
            json!({"kind": "top_up", "amount": "-1", "reference": "x"}),
            json!("amount"),
        ),
        (
            json!({"kind": "top_up", "amount": "9223372036854", "reference": "x"}),
            json!("amount"),
        ),
        (
            json!({"kind": "top_up", "amount": "1e3", "reference": "x"}),
            json!("amount"),
        ),
        (
            json!({"kind": "top_up", "amount": "1", "reference": ""}),
            json!("reference"),
        ),
        (json!({"kind": "top_up", "amount": "1"}), Value::Null),
        (
            json!({"kind": "status", "amount": "1", "reference": "x"}),
            json!("kind"),
        ),
    ] {
        let answer = admin.send("POST", &path, Some(&body)).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{body}"
        );
    }
    let page = admin.get(&format!("{path}?limit=3")).await;
    let seqs: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, [7, 6, 5]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = admin.get(&format!("{path}?cursor={cursor}")).await;
    assert_eq!(rest["data"].as_array().unwrap().len(), 4);
    assert_eq!(rest["data"][0]["refund_of"], 1);
    gateway.verify().await;
}

#[tokio::test]
async fn a_statement_tells_calls_payments_and_months() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    enough_of_the_day().await;
    let admin = AdminClient::new(&gateway);
    let id = wallet(&admin, "acme", "10").await;
    let key = gateway.key("acme", &["--name", "app"]).await;
    for _ in 0..3 {
        gateway.chat(&key, &ask("hello")).await.ok();
    }
    // `/v1/balance` shows only durable charges, so the statement has them too.
    gateway.balance(&key).await;
    let note =
        json!({"kind": "top_up", "amount": "1", "reference": "=HYPERLINK(1,2)", "note": "a \"b\""});
    admin.post(&format!("/wallets/{id}/entries"), &note).await;
    let path = format!("/wallets/{id}/statement");
    let whole = admin.get(&path).await;
    let rows = whole["data"].as_array().unwrap();
    let micro = |value: &Value| value.as_str().unwrap().parse::<i64>().unwrap();
    let mut running = micro(&whole["opening"]["balance_micro"]);
    for row in rows {
        running += micro(&row["amount_micro"]);
        assert_eq!(micro(&row["balance_after_micro"]), running, "{row}");
    }
    assert_eq!(micro(&whole["closing"]["balance_micro"]), running);
    let calls: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "settled").collect();
    assert_eq!(calls.len(), 3);
    assert!(calls[0]["request_id"].is_string() && calls[0]["actor"].is_null());
    let charged: i64 = calls.iter().map(|row| -micro(&row["amount_micro"])).sum();
    let month = &whole["months"][0];
    assert_eq!(micro(&month["charged_micro"]), charged);
    assert_eq!(month["calls"], 3);
    assert_eq!(micro(&month["keys"][0]["charged_micro"]), charged);
    assert_eq!(month["keys"][0]["key"], calls[0]["key"]);
    assert_eq!(
        (&month["keys"][0]["key_name"], &calls[0]["key_name"]),
        (&json!("app"), &json!("app"))
    );
    let spent = admin.get(&format!("/wallets/{id}")).await;
    assert_eq!(micro(&spent["spent_today_micro"]), charged);
    assert_eq!(micro(&spent["spent_this_month_micro"]), charged);

    // Read the same entries in pages, and then within a range of time.
    let mut paged = Vec::new();
    let mut next = format!("{path}?limit=2");
    loop {
        let page = admin.get(&next).await;
        paged.extend(page["data"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        next = format!("{path}?limit=2&cursor={cursor}");
    }
    assert_eq!(&paged, rows);
    let end = rows
        .iter()
        .map(|row| row["at"].as_i64().unwrap())
        .max()
        .unwrap()
        + 1;
    for (query, count) in [
        (format!("from={end}"), 0),
        (format!("to={end}"), rows.len()),
    ] {
        let page = admin.get(&format!("{path}?{query}")).await;
        assert_eq!(page["data"].as_array().unwrap().len(), count, "{query}");
    }

    let answer = admin
        .send("GET", &format!("{path}?format=csv"), None)
        .await
        .ok();
    assert_eq!(
        answer.header("content-type"),
        Some("text/csv; charset=utf-8")
    );
    let text = answer.text();
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), rows.len() + 1);
    assert!(lines[0].starts_with("entry,time,kind,amount,balance_after,"));
    assert!(
        lines[rows.len()].contains(",\"'=HYPERLINK(1,2)\","),
        "{}",
        lines[rows.len()]
    );
    assert!(lines[rows.len()].contains(",\"a \"\"b\"\"\","));

    let history = admin.get(&format!("/wallets/{id}/history")).await;
    let today = history["data"].as_array().unwrap().last().unwrap();
    assert_eq!(micro(&today["balance_micro"]), running);
    for query in ["format=xml", "from=x", "limit=0", "cursor=x"] {
        let answer = admin.send("GET", &format!("{path}?{query}"), None).await;
        let param = query.split('=').next().unwrap();
        assert_eq!(assert_refused(&answer, 400, "invalid_request"), param);
    }
}

#[tokio::test]
async fn the_command_line_moves_credits_and_prints_statements() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    gateway.wallet("acme", &["--balance", "10"]).await;
    for _ in 0..2 {
        let topup = [
            "wallet",
            "topup",
            "acme",
            "5",
            "--reference",
            "pay_1",
            "--note",
            "invoice",
        ];
        assert_eq!(gateway.cli_json(&topup).await["balance"], "15");
    }
    for (command, balance) in [
        (
            vec!["wallet", "debit", "acme", "2", "--reference", "d1"],
            "13",
        ),
        (vec!["wallet", "refund", "acme", "4", "--of", "pay_1"], "9"),
        (vec!["wallet", "adjust", "acme", "-1.5"], "7.5"),
        (vec!["wallet", "rename", "acme", "Acme Inc"], "7.5"),
    ] {
        assert_eq!(
            gateway.cli_json(&command).await["balance"],
            balance,
            "{command:?}"
        );
    }
    for refused in [
        vec!["wallet", "topup", "Acme Inc", "6", "--reference", "pay_1"],
        vec!["wallet", "debit", "Acme Inc", "100"],
        vec!["wallet", "refund", "Acme Inc", "2", "--of", "pay_1"],
        vec!["wallet", "adjust", "Acme Inc", "0"],
        vec!["wallet", "rename", "Acme Inc", ""],
    ] {
        assert!(!gateway.cli(&refused).await.status.success(), "{refused:?}");
    }
    let statement = gateway.cli_json(&["wallet", "statement", "Acme Inc"]).await;
    let kinds: Vec<_> = statement["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["top_up", "top_up", "debit", "refund", "adjustment"]);
    let month = &statement["months"][0];
    assert_eq!(
        (&month["debit"], &month["refund"]),
        (&json!("-2"), &json!("-4"))
    );
    assert_eq!(statement["closing"]["balance"], "7.5");
    gateway.verify().await;
}
