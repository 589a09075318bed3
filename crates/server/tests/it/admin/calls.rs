//! `/admin/v1/calls`: search, and the details of one call.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, ask, eventually, expected_cost, with};

fn ids(page: &Value) -> Vec<String> {
    let rows = page["data"].as_array().unwrap().iter();
    rows.map(|row| row["request_id"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until the journal has this many calls.
async fn written(admin: &AdminClient<'_>, calls: usize) -> Value {
    eventually("the rows", async || {
        let page = admin.get("/calls?limit=500").await;
        (page["data"].as_array().unwrap().len() == calls).then_some(page)
    })
    .await
}

#[tokio::test]
async fn calls_are_found_by_every_filter_and_by_a_few_words() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    gateway.wallet("Other Co", &["--balance", "5"]).await;
    let other = gateway.key("Other Co", &["--name", "robot"]).await;
    let admin = AdminClient::new(&gateway);
    let first = gateway.chat(&key, &ask("hello")).await.ok();
    let second = gateway.chat(&other, &ask("hello")).await.ok();
    let missing = with(ask("hello"), &json!({ "model": "maker/none" }));
    let third = gateway.chat(&key, &missing).await;
    assert_eq!(third.status(), 404);
    let id = |answer: &crate::harness::Answer| answer.header("x-request-id").unwrap().to_owned();
    let (first, second, third) = (id(&first), id(&second), id(&third));
    let all = written(&admin, 3).await;
    assert_eq!(ids(&all), [third.clone(), second.clone(), first.clone()]);
    assert_eq!(all["next_cursor"], Value::Null);

    let found = async |query: &str| ids(&admin.get(&format!("/calls?{query}")).await);
    let now = all["data"][0]["at"].as_i64().unwrap();
    for (query, expected) in [
        ("wallet=w".to_owned(), vec![&third, &first]),
        ("wallet=Other%20Co".to_owned(), vec![&second]),
        (format!("key={}", other.id), vec![&second]),
        ("model=maker/chat".to_owned(), vec![&second, &first]),
        ("model=maker/none".to_owned(), vec![&third]),
        ("model=maker/never".to_owned(), vec![]),
        ("channel=main".to_owned(), vec![&second, &first]),
        ("channel=nobody".to_owned(), vec![]),
        (
            "endpoint=/v1/chat/completions&status=200".to_owned(),
            vec![&second, &first],
        ),
        ("status=4xx".to_owned(), vec![&third]),
        ("status=5xx".to_owned(), vec![]),
        (format!("from={}", now + 60_000), vec![]),
        (
            format!("to={}", now + 60_000),
            vec![&third, &second, &first],
        ),
        (format!("q={}", &first[..12]), vec![&first]),
        ("q=robot".to_owned(), vec![&second]),
        ("q=OTHER".to_owned(), vec![&second]),
        ("q=MAKER/CHAT".to_owned(), vec![&second, &first]),
        ("q=model_not_found".to_owned(), vec![&third]),
        ("q=model_not_found&wallet=Other%20Co".to_owned(), vec![]),
        ("q=nothing-has-this-name".to_owned(), vec![]),
    ] {
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(found(&query).await, expected, "{query}");
    }

    let row = &all["data"][1];
    assert_eq!(
        (&row["wallet_name"], &row["key_name"]),
        (&json!("Other Co"), &json!("robot"))
    );
    assert_eq!(
        (&row["status"], &row["outcome"]),
        (&json!(200), &json!("settled"))
    );
    assert!(row["total_ms"].as_f64().unwrap() > 0.0);
    let page = admin.get("/calls?limit=2").await;
    assert_eq!(ids(&page), [third, second]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = admin.get(&format!("/calls?limit=2&cursor={cursor}")).await;
    assert_eq!(
        (ids(&rest), &rest["next_cursor"]),
        (vec![first], &Value::Null)
    );
}

#[tokio::test]
async fn a_search_that_cannot_be_obeyed_is_refused() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for (query, param) in [
        ("wallet=nobody", "wallet"),
        ("key=nobody", "key"),
        ("status=9xx", "status"),
        ("from=yesterday", "from"),
        ("limit=0", "limit"),
        ("cursor=!", "cursor"),
        ("colour=red", "colour"),
        (&*format!("q={}", "x".repeat(201)), "q"),
    ] {
        let path = format!("/calls?{query}");
        let answer = AdminClient::new(&gateway).send("GET", &path, None).await;
        assert_eq!(
            assert_refused(&answer, 400, "invalid_request"),
            param,
            "{query}"
        );
    }
    let unknown = AdminClient::new(&gateway)
        .send("GET", "/calls/req_none", None)
        .await;
    assert_refused(&unknown, 404, "not_found");
    let nobody = AdminClient::without_token(&gateway)
        .send("GET", "/calls", None)
        .await;
    assert_refused(&nobody, 401, "invalid_admin_token");
}

#[tokio::test]
async fn a_call_is_explained_by_its_routes_times_and_price_lines() {
    let builder = with_token(GatewayBuilder::default()).setting("journal", "bodies = true");
    let (gateway, key) = builder.funded().await;
    let admin = AdminClient::new(&gateway);
    let answer = gateway.chat(&key, &ask("count to 7")).await.ok();
    let usage = answer.json()["usage"].clone();
    let id = answer.header("x-request-id").unwrap();
    written(&admin, 1).await;
    let call = admin.get(&format!("/calls/{id}")).await;
    let charge = expected_cost(&usage).to_string();
    assert_eq!(
        (&call["request_id"], &call["charge_micro"]),
        (&json!(id), &json!(charge))
    );
    assert_eq!(
        call["attempts"],
        json!([{ "channel": "main", "model": call["upstream_model"], "reason": null, "passed_over": false, "fallback": null }])
    );
    for timing in [
        "queued_ms",
        "admitted_ms",
        "upstream_ms",
        "first_byte_ms",
        "total_ms",
    ] {
        assert!(call["timings"][timing].is_f64(), "{timing} in {call}");
    }
    let settlement = &call["settlement"];
    assert_eq!(
        (&settlement["kind"], &settlement["basis"]),
        (&json!("settled"), &json!("reported"))
    );
    assert_eq!(settlement["charge_micro"], charge);
    assert_eq!(call["price"]["charge_micro"], charge);
    let lines = call["price"]["lines"].as_array().unwrap();
    let output = lines.iter().find(|line| line["name"] == "output").unwrap();
    assert_eq!(
        (&output["quantity"], &output["price"]),
        (&usage["completion_tokens"], &json!("10"))
    );
    assert!(
        call["request_body"]
            .as_str()
            .unwrap()
            .contains("count to 7")
    );
    assert!(call["response_body"].is_string());
    assert_eq!(call["dropped_params"], json!([]));
}
