//! Lists of content tasks, and deletion of tasks by their owner.

use serde_json::json;

use super::content_tasks::{PATH, builder, create, text, video_body, wait_for_state};
use crate::harness::{Answer, Key, Request, TestGateway};

pub(crate) async fn delete(gateway: &TestGateway, key: &Key, id: &str) -> Answer {
    // The official client sends a body with DELETE.
    let request = Request::new("DELETE", &format!("{PATH}/{id}"))
        .json(&json!({}))
        .bearer(&key.secret);
    gateway.send(&request).await
}

/// `docs/api/content-tasks.md`: the effect of a deletion depends on the state of the task.
#[tokio::test]
async fn each_state_has_its_own_deletion() {
    let (gateway, key) = builder().funded().await;
    let gone = (404, "task_not_found".to_owned());
    let running = (409, "task_running".to_owned());
    let cancelled = (409, "task_cancelled".to_owned());

    // Queued: the task is cancelled here and upstream, at no charge.
    let id = create(&gateway, &key, &video_body("[queue]")).await;
    let answer = delete(&gateway, &key, &id).await.ok();
    assert_eq!(answer.text(), "{}");
    let shown = gateway.get(&key, &format!("{PATH}/{id}")).await.ok().json();
    assert_eq!(shown["status"], "cancelled");
    assert_eq!(gateway.sim.content_tasks()[0].status, "cancelled");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );

    // Cancelled: the task stays, and the answer tells clients not to retry.
    let again = delete(&gateway, &key, &id).await;
    assert_eq!(again.failure(), cancelled);
    assert_eq!(again.header("x-should-retry"), Some("false"));

    // Running: the task stays.
    let id = create(&gateway, &key, &video_body("[run]")).await;
    wait_for_state(&gateway, &key, &id, &["running"]).await;
    let answer = delete(&gateway, &key, &id).await;
    assert_eq!(answer.failure(), running);
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(gateway.sim.content_tasks()[1].status, "running");

    // Ended: the task is deleted upstream and hidden here. Its charge and its history stay.
    for (words, status) in [("[fail]", "failed"), ("[expire]", "expired")] {
        let id = create(&gateway, &key, &video_body(words)).await;
        wait_for_state(&gateway, &key, &id, &[status]).await;
        assert_eq!(delete(&gateway, &key, &id).await.ok().text(), "{}");
        let record = gateway.sim.content_tasks().pop().unwrap();
        assert!(record.is_deleted, "{record:?}");
        for path in [format!("{PATH}/{id}"), format!("/v1/tasks/{id}")] {
            assert_eq!(gateway.get(&key, &path).await.failure(), gone);
        }
        assert_eq!(delete(&gateway, &key, &id).await.failure(), gone);
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_task_that_begins_under_the_hand_is_not_called_off() {
    let (gateway, key) = builder().funded().await;
    let id = create(&gateway, &key, &video_body("[race]")).await;
    let answer = delete(&gateway, &key, &id).await;
    assert_eq!(answer.failure(), (409, "task_running".to_owned()));
    let shown = gateway.get(&key, &format!("{PATH}/{id}")).await.ok().json();
    assert_eq!(shown["status"], "queued");
    assert_ne!(gateway.frozen(&key).await, 0);
    // An upstream error is reported, and the task can still be deleted afterwards.
    let id = create(&gateway, &key, &video_body("[queue]")).await;
    gateway
        .sim
        .queue_faults("delete/sim-film", "status=500", 1)
        .unwrap();
    assert_eq!(delete(&gateway, &key, &id).await.status(), 502);
    assert_eq!(delete(&gateway, &key, &id).await.ok().text(), "{}");
    gateway.verify().await;
}

#[tokio::test]
async fn a_task_is_listed_and_deleted_by_its_own_wallet_alone() {
    let (gateway, key) = builder().funded().await;
    gateway.wallet("other", &["--balance", "100"]).await;
    let stranger = gateway.key("other", &[]).await;
    let id = create(&gateway, &key, &video_body("[queue]")).await;
    let foreign = delete(&gateway, &stranger, &id).await;
    assert_eq!(foreign.failure(), (404, "task_not_found".to_owned()));
    for missing in ["01987654-0000-7000-8000-000000000000", "nothing", ""] {
        let missing = delete(&gateway, &stranger, missing).await;
        assert_eq!(missing.status(), 404);
        assert_eq!(missing.body, foreign.body);
    }
    let listed = gateway.get(&stranger, PATH).await.ok().json();
    assert_eq!(listed, json!({ "items": [], "total": 0 }));
    let listed = gateway.get(&key, PATH).await.ok().json();
    assert_eq!(listed["items"][0]["id"], id);
    // Tasks of other protocols are not listed here and cannot be deleted.
    let video = json!({ "model": "maker/video", "prompt": "a boat [polls=1000]" });
    let request = Request::post("/v1/videos/generations")
        .json(&video)
        .bearer(&key.secret);
    let video = gateway.send(&request).await.ok().json()["request_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(delete(&gateway, &key, &video).await.status(), 404);
    assert_eq!(gateway.get(&key, PATH).await.ok().json()["total"], 1);
}

#[tokio::test]
async fn a_list_has_pages_and_filters() {
    let (gateway, key) = builder().funded().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(create(&gateway, &key, &video_body("[queue]")).await);
    }
    let small = json!({ "model": "maker/film-1.0", "content": [text("[fail]")], "duration": 2 });
    let failed = create(&gateway, &key, &small).await;
    wait_for_state(&gateway, &key, &failed, &["failed"]).await;
    delete(&gateway, &key, &ids[0]).await.ok();
    let list = async |query: &str| {
        let listed = gateway
            .get(&key, &format!("{PATH}?{query}"))
            .await
            .ok()
            .json();
        let items = listed["items"].as_array().unwrap().clone();
        let found: Vec<String> = items
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (found, listed["total"].as_u64().unwrap())
    };
    let of = |wanted: &[&String]| wanted.iter().map(|id| (*id).clone()).collect::<Vec<_>>();
    // The newest task comes first.
    assert_eq!(
        list("").await,
        (of(&[&failed, &ids[2], &ids[1], &ids[0]]), 4)
    );
    assert_eq!(
        list("page_num=2&page_size=2").await,
        (of(&[&ids[1], &ids[0]]), 4)
    );
    assert_eq!(list("page_num=9&page_size=2").await, (vec![], 4));
    assert_eq!(list("filter.status=cancelled").await, (of(&[&ids[0]]), 1));
    assert_eq!(
        list("filter.model=maker%2Ffilm-1.0").await,
        (of(&[&failed]), 1)
    );
    let two = format!(
        "filter.task_ids={}&filter.task_ids={failed}&filter.task_ids=x",
        ids[1]
    );
    assert_eq!(list(&two).await, (of(&[&failed, &ids[1]]), 2));
    assert_eq!(list("filter.task_ids=x").await, (vec![], 0));
    for query in ["page_num=0", "page_size=501", "page_size=x"] {
        let answer = gateway.get(&key, &format!("{PATH}?{query}")).await;
        assert_eq!(
            answer.failure(),
            (400, "invalid_request".to_owned()),
            "{query}"
        );
    }
}
