//! Reports of past calls: ledger reports, repricing, details of one call, bodies in the journal.

use serde_json::{Value, json};

use crate::harness::{
    Dialect, GatewayBuilder, Key, TestGateway, ask, enough_of_the_day, eventually, expected_cost,
    with,
};

/// Parses one JSON object per line.
fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits for the journal row of a call.
async fn shown(gateway: &TestGateway, request_id: &str) -> Value {
    eventually("the row", async || {
        let output = gateway.cli(&["logs", "show", request_id, "--json"]).await;
        serde_json::from_str(&output.stdout).ok()
    })
    .await
}

/// Makes calls and returns their charge. The charge is durable by then, so commands see it too.
async fn spend(gateway: &TestGateway, key: &Key, prompts: &[&str]) -> u64 {
    let mut sum = 0;
    for prompt in prompts {
        sum += expected_cost(&gateway.chat(key, &ask(prompt)).await.ok().json()["usage"]);
    }
    assert_eq!(gateway.usage(key).await, sum);
    sum
}

#[tokio::test]
async fn a_report_adds_up_by_every_name_and_in_every_form() {
    let (gateway, key) = TestGateway::funded().await;
    enough_of_the_day().await;
    gateway.wallet("other", &["--balance", "5"]).await;
    let other = gateway.key("other", &[]).await;
    let spent = spend(&gateway, &key, &["count to 5", "count to 9"]).await;
    let beside = spend(&gateway, &other, &["count to 3"]).await;
    // The hold of this call is released, because nothing was delivered.
    gateway.sim.queue_faults("*", "status=400", 1).unwrap();
    assert_eq!(gateway.chat(&key, &ask("hello")).await.status(), 400);
    assert_eq!(gateway.usage(&key).await, spent);

    let rows = gateway
        .cli(&["ledger", "report", "--by", "wallet,key", "--json"])
        .await;
    let rows = lines(&rows.stdout);
    assert_eq!(rows.len(), 2, "{rows:?}");
    let of = |key: &Key| rows.iter().find(|row| row["key"] == *key.id).unwrap();
    let row = of(&key);
    assert_eq!(
        (&row["calls"], &row["released"]),
        (&json!(2), &json!(1)),
        "{row}"
    );
    assert_eq!(row["charge_micro"], spent.to_string());
    assert_eq!(of(&other)["charge_micro"], beside.to_string());

    // The same calls by day and model, as CSV.
    let table = gateway
        .cli(&["ledger", "report", "--by", "day,model", "--format", "csv"])
        .await;
    let mut csv = table.stdout.lines();
    assert_eq!(
        csv.next().unwrap(),
        "day,model,calls,released,abandoned,input,cached_input,cache_write,cache_write_1h,output,tool_calls,charge_micro,abandoned_held_micro,costed_entries,cost_micro,margin_micro"
    );
    let model = csv.find(|line| line.contains("maker/chat")).unwrap();
    let cells: Vec<_> = model.split(',').collect();
    assert_eq!(
        (cells[2], cells[11]),
        ("3", (spent + beside).to_string().as_str())
    );

    // The text output shows credits and a total.
    let table = gateway
        .cli(&["ledger", "report", "--wallet", "other"])
        .await
        .stdout;
    let micro = format!("0.{beside:06}");
    let total = table.lines().last().unwrap();
    assert!(
        total.starts_with("total") && total.contains(micro.trim_end_matches('0')),
        "{table}"
    );
    // There are no calls on another day.
    let none = gateway
        .cli(&["ledger", "report", "--day", "2020-01-01", "--json"])
        .await;
    assert_eq!((none.status.success(), none.stdout.as_str()), (true, ""));
}

#[tokio::test]
async fn pricing_again_proves_the_same_total() {
    let (gateway, key) = TestGateway::funded().await;
    let spent = spend(&gateway, &key, &["count to 5", "count to 9"]).await;
    let proof = gateway.cli_json(&["ledger", "reprice"]).await;
    assert_eq!(proof["ok"], true);
    assert_eq!(proof["settlements"], 2);
    assert_eq!(proof["booked_micro"], spent.to_string());
    assert_eq!(proof["repriced_micro"], spent.to_string());
    let said = gateway.cli(&["ledger", "reprice", "--since", "1d"]).await;
    assert!(said.stdout.contains("the same total"), "{}", said.stdout);
}

#[tokio::test]
async fn one_call_is_explained_to_the_last_digit() {
    let (gateway, key) = TestGateway::funded().await;
    let answer = gateway.chat(&key, &ask("count to 7")).await.ok();
    let usage = answer.json()["usage"].clone();
    let id = answer.header("x-request-id").unwrap();
    // `/v1/balance` returns durable state, so commands see the charge too.
    assert_eq!(gateway.usage(&key).await, expected_cost(&usage));
    let call = shown(&gateway, id).await;
    for timing in [
        "queued_us",
        "admitted_us",
        "upstream_us",
        "first_byte_us",
        "total_us",
    ] {
        assert!(call[timing].is_u64(), "{timing} in {call}");
    }
    let charge = expected_cost(&usage).to_string();
    let settlement = &call["settlement"];
    assert_eq!(
        (&settlement["kind"], &settlement["basis"]),
        (&json!("settled"), &json!("reported"))
    );
    assert_eq!(settlement["charge_micro"], charge);
    assert_eq!(settlement["balance_delta_micro"], format!("-{charge}"));
    assert_eq!(settlement["hold"], call["hold"]);
    let price = &call["price"];
    assert_eq!(price["rounded_up_micro"], charge);
    let lines = price["lines"].as_array().unwrap();
    let output = lines
        .iter()
        .find(|line| line["component"] == "output")
        .unwrap();
    assert_eq!(output["quantity"], usage["completion_tokens"]);
    assert_eq!(
        (&output["unit_price"], &output["per"]),
        (&json!("10"), &json!(1_000_000))
    );

    let text = gateway.cli(&["logs", "show", id]).await.stdout;
    for word in [
        "admission",
        "admitted after",
        "for the ledger",
        "main as sim-chat",
        "settled as entry",
        "rounded up once to",
        "as the upstream reported",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    // A refused call has neither a hold nor a price.
    let refused = gateway
        .chat(&key, &with(ask("x"), &json!({ "model": "no/model" })))
        .await;
    let call = shown(&gateway, refused.header("x-request-id").unwrap()).await;
    assert_eq!(
        (&call["settlement"], &call["price"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(call["code"], "model_not_found");
}

#[tokio::test]
async fn bodies_are_kept_only_where_asked_for_and_without_their_bulk() {
    let picture = format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(400));
    let body = json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": [
        { "type": "text", "text": "say exactly: kept in mind" },
        { "type": "image_url", "image_url": { "url": picture } },
    ] }] });
    let (gateway, key) = TestGateway::funded().await;
    let answer = gateway.chat(&key, &body).await.ok();
    let off = shown(&gateway, answer.header("x-request-id").unwrap()).await;
    assert_eq!(
        (&off["request_body"], &off["response_body"]),
        (&Value::Null, &Value::Null)
    );

    let (gateway, key) = GatewayBuilder::default()
        .setting("journal", "bodies = true")
        .funded()
        .await;
    let whole = gateway.chat(&key, &body).await.ok();
    let row = shown(&gateway, whole.header("x-request-id").unwrap()).await;
    let request = row["request_body"].as_str().unwrap();
    assert!(
        request.contains("kept in mind") && request.contains("<image/png base64"),
        "{request}"
    );
    assert!(!request.contains("iVBORw0KGgoiVBORw0KGgo"), "{request}");
    assert_eq!(row["response_body"].as_str().unwrap(), whole.text());

    for dialect in Dialect::ALL {
        let ask = dialect.ask("say exactly: kept in mind");
        let streamed = gateway
            .send(&dialect.call(&key.secret, "maker/chat", ask, true))
            .await
            .ok();
        let row = shown(&gateway, streamed.header("x-request-id").unwrap()).await;
        let kept = row["response_body"].as_str().unwrap();
        // The journal shortens signatures in the middle, so compare only the beginning and the end.
        let ends = |text: &str| (text[..40].to_owned(), text[text.len() - 20..].to_owned());
        assert_eq!(ends(kept), ends(streamed.text()), "{dialect:?}");
    }
    // The journal keeps the body of a refused request too, up to a fixed size.
    let long = with(
        ask("x"),
        &json!({ "model": "no/model", "note": "word ".repeat(40_000) }),
    );
    let refused = gateway.chat(&key, &long).await;
    let row = shown(&gateway, refused.header("x-request-id").unwrap()).await;
    let kept = row["request_body"].as_str().unwrap();
    assert!((60_000..=65_536).contains(&kept.len()), "{}", kept.len());
}
