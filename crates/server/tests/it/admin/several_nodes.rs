//! The admin API of several nodes that share a database.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::TOKEN;
use super::{AdminClient, with_token};
use crate::harness::{Connection, Database, GatewayBuilder, Request};

/// A payment that is retried because answers were lost is booked once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_retries_over_three_nodes_book_once() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let mut gateway = with_token(GatewayBuilder::default().database(database))
        .start()
        .await;
    gateway.another_node().await;
    gateway.another_node().await;
    let nodes = gateway.admins();
    assert_eq!(nodes.len(), 3);
    let admin = AdminClient::new(&gateway);
    let wallet = admin.post("/wallets", &json!({"name": "w"})).await;
    let path = format!(
        "/admin/v1/wallets/{}/entries",
        wallet["id"].as_str().unwrap()
    );
    let payment = json!({"kind": "top_up", "amount": "5", "reference": "pay_1"});
    let request = Request::post(&path).json(&payment).bearer(TOKEN);
    let mut sent = JoinSet::new();
    for number in 0..200 {
        let (node, request) = (nodes[number % nodes.len()], request.clone());
        sent.spawn(async move {
            loop {
                let mut connection = Connection::open(node).await;
                connection.send(&request).await;
                let answer = connection.answer().await;
                // An overloaded node answers 503. The client then sends the payment again.
                if answer.status() != 503 {
                    return answer;
                }
            }
        });
    }
    let mut entries: Vec<Value> = Vec::new();
    let mut created = 0;
    while let Some(answer) = sent.join_next().await {
        let answer = answer.unwrap();
        assert!(matches!(answer.status(), 200 | 201), "{}", answer.text());
        created += usize::from(answer.status() == 201);
        entries.push(answer.json());
    }
    // `created` is zero if the request that booked the payment was answered with 503.
    assert!(created <= 1 && entries.len() == 200, "{created}");
    assert!(entries.iter().all(|entry| *entry == entries[0]));
    let wallet = admin
        .get(&path.replace("/admin/v1", "").replace("/entries", ""))
        .await;
    assert_eq!(wallet["balance"], "5");
    let audit = admin.get("/audit?action=wallet.top_up").await;
    assert_eq!(audit["data"].as_array().unwrap().len(), 1);
    gateway.verify().await;
}
