//! What does not depend on the protocol of a task: several nodes, and the operators' commands. The tasks are Video-A.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::videos::{builder, create, post, video_body, wait_for_end};
use crate::harness::{Connection, Database, Key, Request, TestGateway, eventually};

/// The cost of eight seconds of video, in micro-credits.
const VIDEO_COST: u64 = 800_000;

/// The rows of `tasks list`, as JSON.
pub(crate) async fn listed(gateway: &TestGateway, options: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["tasks", "list", "--limit", "5000", "--json"];
    arguments.extend_from_slice(options);
    let output = gateway.cli(&arguments).await;
    assert!(output.status.success(), "{}", output.stderr);
    let rows = output.stdout.lines();
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// Creates a task on a new connection to one of the nodes.
pub(crate) async fn create_on(node: SocketAddr, key: &Key, prompt: &str) -> String {
    let mut connection = Connection::open(node).await;
    let request = Request::post("/v1/videos/generations");
    connection
        .send(&request.json(&video_body(prompt)).bearer(&key.secret))
        .await;
    let answer = connection.answer().await.ok();
    answer.json()["request_id"].as_str().unwrap().to_owned()
}

/// T7: two nodes, one of them killed midway. All tasks end, no task is polled by both nodes at once, and each is
/// settled once. `TOLLGATE_TASKS=1000` runs the long version.
#[tokio::test]
async fn two_nodes_follow_many_tasks_and_one_of_them_dies() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let count = std::env::var("TOLLGATE_TASKS").map_or(100, |count| count.parse().unwrap());
    let builder = builder()
        .database(database)
        .setting("tasks", "lease_ms = 3000");
    let mut gateway = builder.start().await;
    let nodes = [gateway.address(), gateway.another_node().await];
    gateway.wallet("w", &["--balance", "10000"]).await;
    let key = gateway.key("w", &[]).await;
    let mut creators = JoinSet::new();
    for creator in 0..10 {
        let key = key.clone();
        creators.spawn(async move {
            for number in (creator..count).step_by(10) {
                let prompt = format!("a boat [polls={}]", 5 + count / 100);
                create_on(nodes[number % 2], &key, &prompt).await;
            }
        });
    }
    // The simulator keeps only its newest calls, so they are collected repeatedly.
    let mut polls = BTreeMap::new();
    let mut gather = |gateway: &TestGateway| {
        let calls = gateway.sim.calls().into_iter();
        for call in calls.filter(|call| call.method == "GET") {
            let until = call.at_ms + call.took_ms.unwrap_or(0);
            polls.insert(call.seq, (call.path, call.at_ms, until));
        }
    };
    while !creators.is_empty() {
        gather(&gateway);
        while let Some(created) = creators.try_join_next() {
            created.unwrap();
        }
        // Wait between two reads of the simulator's log.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.kill_last_node();
    let mut frozen = gateway.frozen(&key).await;
    while frozen > 0 {
        frozen = eventually("the end of further tasks", async || {
            gather(&gateway);
            let now = gateway.frozen(&key).await;
            (now < frozen).then_some(now)
        })
        .await;
    }
    assert_eq!(gateway.usage(&key).await, count as u64 * VIDEO_COST);
    let rows = listed(&gateway, &[]).await;
    assert_eq!(rows.len(), count);
    assert!(rows.iter().all(|row| row["status"] == "done"));
    let mut polls: Vec<(String, u64, u64)> = polls.into_values().collect();
    assert!(polls.len() >= count);
    polls.sort_unstable();
    for two in polls.windows(2) {
        let (first, next) = (&two[0], &two[1]);
        assert!(
            first.0 != next.0 || first.2 <= next.1,
            "polled by two at once: {first:?} {next:?}"
        );
    }
    gateway.verify().await;
}

#[tokio::test]
async fn operators_list_show_and_follow_tasks() {
    let (gateway, key) = builder().funded().await;
    let done = create(&gateway, &key, &video_body("a boat")).await;
    wait_for_end(&gateway, &key, &done).await;
    let refused = create(&gateway, &key, &video_body("[refuse]")).await;
    wait_for_end(&gateway, &key, &refused).await;
    let rows = listed(&gateway, &[]).await;
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&done.as_str()) && ids.contains(&refused.as_str()));
    let failed = listed(&gateway, &["--status", "failed", "--wallet", "w"]).await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["id"], refused.as_str());
    assert!(listed(&gateway, &["--open"]).await.is_empty());
    let shown = gateway.cli_json(&["tasks", "show", &done]).await;
    assert_eq!(shown["protocol"], "video-a");
    assert_eq!(shown["channel"], "main");
    assert_eq!(shown["snapshot"]["status"], "done");
    let table = gateway.cli(&["tasks", "list"]).await.stdout;
    assert!(
        table.contains("PROGRESS") && table.contains(&done),
        "{table}"
    );
    let missing = "01987654-0000-7000-8000-000000000000";
    let missing = gateway.cli(&["tasks", "show", missing]).await;
    assert!(!missing.status.success() && missing.stderr.contains("no task"));
    // With `--drain`, the command follows until no task is open.
    let slow = create(&gateway, &key, &video_body("a boat [polls=20]")).await;
    let followed = gateway.cli(&["tasks", "follow", "--drain", "--json"]).await;
    let last = followed.stdout.lines().rfind(|line| line.contains(&slow));
    let last: Value = serde_json::from_str(last.unwrap()).unwrap();
    assert_eq!(last["status"], "done", "{}", followed.stdout);
}

/// T8: a reload that would remove a channel with open tasks is refused.
#[tokio::test]
async fn a_channel_with_open_tasks_cannot_be_taken_away() {
    let (gateway, key) = builder().funded().await;
    let id = create(&gateway, &key, &video_body("a boat [polls=100000]")).await;
    let file = gateway.config_file().to_owned();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"main\"", "\"other\"")).unwrap();
    crate::harness::signal("HUP", gateway.pid());
    let refused = |line: &str| line.contains("still has open tasks");
    gateway.logged("the refusal", refused).await;
    let answer = post(&gateway, &key, "/v1/videos/generations", &video_body("x")).await;
    answer.ok();
    let row = gateway.cli_json(&["tasks", "show", &id]).await;
    assert_eq!(
        (&row["channel"], &row["status"]),
        (&json!("main"), &json!("pending"))
    );
}
