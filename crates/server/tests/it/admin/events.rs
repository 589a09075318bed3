//! `/admin/v1/events`: a live stream of events.

use serde_json::Value;

use super::client::TOKEN;
use super::{AdminClient, assert_refused, with_token};
use crate::harness::{
    Connection, Event, GatewayBuilder, Request, Streaming, TestGateway, ask, eventually, signal,
    within,
};
use crate::tasks::videos;

async fn listen(gateway: &TestGateway, last: Option<&str>) -> Streaming {
    let mut request = Request::get("/admin/v1/events").bearer(TOKEN);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut connection = Connection::open(gateway.admin()).await;
    connection.send(&request).await;
    let head = connection.head().await.expect("an answer");
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    Streaming::with_ids(head, connection)
}

async fn next(stream: &mut Streaming, name: &str) -> Event {
    loop {
        let event = within("an event", stream.next()).await.expect("no end");
        if event.name.as_deref() == Some(name) {
            return event;
        }
    }
}

fn last_id(stream: &Streaming) -> String {
    let text = std::str::from_utf8(&stream.raw).unwrap();
    let mut ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.next_back().unwrap().to_owned()
}

#[tokio::test]
async fn calls_are_told_to_all_who_listen_and_again_to_one_who_comes_back() {
    let (gateway, key) = with_token(GatewayBuilder::default()).funded().await;
    let (mut one, mut other) = (listen(&gateway, None).await, listen(&gateway, None).await);
    // The poller's first pass records what exists already and sends no event. Calls are repeated until an event
    // arrives.
    let first = eventually("a first event", async || {
        let answer = gateway.chat(&key, &ask("hello")).await.ok();
        let event = tokio::time::timeout(std::time::Duration::from_secs(3), next(&mut one, "call"));
        event.await.ok().map(|event| (answer, event))
    })
    .await;
    let call = first.1.json();
    assert_eq!(call["wallet_name"], "w");
    assert_eq!(
        next(&mut other, "call").await.json()["request_id"],
        call["request_id"]
    );
    let last = last_id(&one);
    one.leave();
    let missed = gateway.chat(&key, &ask("again")).await.ok();
    let id = missed.header("x-request-id").unwrap();
    eventually("the row", async || {
        let found = AdminClient::new(&gateway)
            .get(&format!("/calls?q={id}"))
            .await;
        found["data"].as_array().unwrap().first().cloned()
    })
    .await;
    let mut back = listen(&gateway, Some(&last)).await;
    let mut found = next(&mut back, "call").await.json();
    while found["request_id"] != id {
        found = next(&mut back, "call").await.json();
    }
}

#[tokio::test]
async fn the_progress_of_tasks_is_told() {
    let (gateway, key) = with_token(videos::builder()).funded().await;
    let mut stream = listen(&gateway, None).await;
    let ended: Value = eventually("an event of a task", async || {
        videos::create(&gateway, &key, &videos::video_body("a boat")).await;
        let event = tokio::time::timeout(std::time::Duration::from_secs(3), async {
            loop {
                let task = next(&mut stream, "task").await.json();
                if task["status"] == "done" {
                    return task;
                }
            }
        });
        event.await.ok()
    })
    .await;
    assert_eq!(ended["wallet_name"], "w");
    assert_eq!(ended["results"][0]["kind"], "video");
}

#[tokio::test]
async fn listeners_are_bounded_and_streams_end_with_the_node() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(listen(&gateway, None).await);
    }
    let refused = AdminClient::new(&gateway)
        .send("GET", "/events", None)
        .await;
    assert_refused(&refused, 429, "rate_limit_exceeded");
    let wrong = Request::get("/admin/v1/events").header("last-event-id", "x");
    let wrong = AdminClient::new(&gateway).send_as_is(wrong).await;
    assert_eq!(
        assert_refused(&wrong, 400, "invalid_request"),
        "last-event-id"
    );
    // A listener that leaves makes room for another.
    streams.pop().unwrap().leave();
    eventually("room for another", async || {
        let request = Request::get("/admin/v1/events").bearer(TOKEN);
        let mut connection = Connection::open(gateway.admin()).await;
        connection.send(&request).await;
        let head = connection.head().await?;
        (head.status == 200).then(|| streams.push(Streaming::with_ids(head, connection)))
    })
    .await;
    signal("TERM", gateway.pid());
    for mut stream in streams {
        while within("the end", stream.next()).await.is_some() {}
    }
}
