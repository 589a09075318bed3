//! `/admin/v1/tasks` and `/admin/v1/search`.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::GatewayBuilder;
use crate::tasks::videos;

#[tokio::test]
async fn tasks_of_all_wallets_are_listed_with_their_results() {
    let (gateway, key) = with_token(videos::builder()).funded().await;
    gateway.wallet("other", &["--balance", "5"]).await;
    let other = gateway.key("other", &[]).await;
    let admin = AdminClient::new(&gateway);
    let done = videos::create(&gateway, &key, &videos::video_body("a boat")).await;
    let shown = videos::wait_for_end(&gateway, &key, &done).await.json();
    let failed = videos::create(&gateway, &other, &videos::video_body("a boat [fail]")).await;
    videos::wait_for_end(&gateway, &other, &failed).await;

    let one = admin.get(&format!("/tasks/{done}")).await;
    assert_eq!(
        (&one["status"], &one["wallet_name"], &one["key"]),
        (&json!("done"), &json!("w"), &json!(key.id))
    );
    assert_eq!(
        one["results"],
        json!([{ "kind": "video", "url": shown["video"]["url"] }])
    );
    assert_eq!(one["charge_micro"], gateway.usage(&key).await.to_string());
    assert!(one["ended_at"].as_i64() >= one["created_at"].as_i64());
    assert_eq!(one["error"], Value::Null);

    let ids = |page: &Value| -> Vec<String> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = admin.get("/tasks").await;
    assert_eq!(ids(&all), [failed.clone(), done.clone()]);
    for (query, expected) in [
        ("status=done".to_owned(), vec![&done]),
        ("status=running".to_owned(), vec![]),
        ("wallet=other".to_owned(), vec![&failed]),
        (format!("key={}", key.id), vec![&done]),
        ("model=maker/video".to_owned(), vec![&failed, &done]),
        ("model=maker/none".to_owned(), vec![]),
    ] {
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(
            ids(&admin.get(&format!("/tasks?{query}")).await),
            expected,
            "{query}"
        );
    }
    let page = admin.get("/tasks?limit=1").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = admin.get(&format!("/tasks?limit=1&cursor={cursor}")).await;
    assert_eq!(
        (ids(&rest), &rest["next_cursor"]),
        (vec![done.clone()], &Value::Null)
    );

    let unknown = admin.send("GET", "/tasks/nothing", None).await;
    assert_refused(&unknown, 404, "not_found");
    let found = admin.get(&format!("/search?q={}", &done[..20])).await;
    assert_eq!(
        (&found["data"][0]["kind"], &found["data"][0]["id"]),
        (&json!("task"), &json!(done))
    );
}

#[tokio::test]
async fn anything_is_found_by_a_few_letters() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    let wallet = gateway.wallet("Main Street", &["--balance", "5"]).await;
    let key = gateway.key("Main Street", &["--name", "mainframe"]).await;
    let found = admin.get("/search?q=main").await;
    let results: Vec<(&str, &str)> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["kind"].as_str().unwrap(), row["id"].as_str().unwrap()))
        .collect();
    for one in [
        ("wallet", wallet["id"].as_str().unwrap()),
        ("key", &*key.id),
        ("channel", "main"),
    ] {
        assert!(results.contains(&one), "{one:?} in {results:?}");
    }
    let models = admin.get("/search?q=MAKER/CHAT").await;
    assert_eq!(models["data"][0]["kind"], "model");
    assert_eq!(admin.get("/search?q=%25").await["data"], json!([]));
    for query in ["q=", "q=%20", "colour=red"] {
        let answer = admin.send("GET", &format!("/search?{query}"), None).await;
        assert_refused(&answer, 400, "invalid_request");
    }
}
