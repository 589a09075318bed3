//! What holds for tasks of every protocol: sudden ends, several nodes, callbacks, and what operators see.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::harness::{Connection, Database, Key, Plot, Request, Stage, eventually};
use crate::videos::{ENTRIES, create, ended, film, plot, post, receiver};

/// What eight seconds of film cost, in micro-credits.
const FILM_COST: u64 = 800_000;

fn told(prompt: &str, url: &str) -> Value {
    json!({ "model": "maker/video", "prompt": prompt, "callback_url": url })
}

/// What operators see of all tasks, as JSON.
async fn listed(stage: &Stage, options: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["tasks", "list", "--limit", "5000", "--json"];
    arguments.extend_from_slice(options);
    let output = stage.cli(&arguments).await;
    assert!(output.status.success(), "{}", output.stderr);
    let rows = output.stdout.lines();
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// Reliability 7, `kill@task_row` and `@created`: the task fails, its end is told, and it was sent once.
#[tokio::test]
async fn killed_around_a_creation_the_task_fails_and_its_end_is_told() {
    let allow = "allow = [\"127.0.0.0/8\"]";
    let (mut stage, key) = plot().setting("outbound", allow).funded().await;
    let (url, heard) = receiver(&[200]).await;
    stage.sim.queue_faults("sim-video", "hang=head", 1).unwrap();
    let mut caller = Connection::open(stage.address()).await;
    let request = Request::post("/v1/videos/generations")
        .json(&told("x", &url))
        .bearer(&key.secret);
    caller.send(&request).await;
    eventually("the creation", async || {
        (stage.upstream_calls() == 1).then_some(())
    })
    .await;
    stage.kill();
    stage.verify().await;
    stage.restart().await;
    eventually("the callback", async || {
        (!heard.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    let heard = heard.lock().unwrap().clone();
    assert!(heard[0].contains(r#""status":"failed""#), "{}", heard[0]);
    assert_eq!((stage.upstream_calls(), stage.usage(&key).await), (1, 0));
    assert_eq!(stage.frozen(&key).await, 0);
    let row = listed(&stage, &[]).await.remove(0);
    let target = format!("/v1/tasks/{}", row["id"].as_str().unwrap());
    let shown = stage.get(&key, &target).await.ok();
    assert!(heard[0].as_bytes().ends_with(&shown.body));
    stage.verify().await;
}

/// Reliability 7, kill@poll.
#[tokio::test]
async fn killed_in_a_poll_the_task_goes_on_from_its_row() {
    let (mut stage, key) = plot().funded().await;
    stage
        .sim
        .queue_faults("poll/sim-video", "hang=head", 1)
        .unwrap();
    let id = create(&stage, &key, &film("a boat")).await;
    eventually("the poll", async || {
        (stage.upstream_calls() == 2).then_some(())
    })
    .await;
    stage.kill();
    stage.verify().await;
    stage.restart().await;
    assert_eq!(ended(&stage, &key, &id).await.json()["status"], "done");
    assert_eq!(stage.usage(&key).await, FILM_COST);
    stage.verify().await;
}

/// Reliability 7, kill@callback: an attempt that a crash ends is used up, and the next says the same.
#[tokio::test]
async fn killed_in_a_callback_the_end_is_told_again_with_equal_bytes() {
    let allow = "allow = [\"127.0.0.0/8\"]";
    let (mut stage, key) = plot().setting("outbound", allow).funded().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/told", listener.local_addr().unwrap());
    let id = create(&stage, &key, &told("x", &url)).await;
    // The first delivery is taken and never answered.
    let (mut first, _) = listener.accept().await.unwrap();
    let heard = delivery(&mut first).await;
    stage.kill();
    stage.verify().await;
    stage.restart().await;
    let (mut second, _) = listener.accept().await.unwrap();
    assert_eq!(delivery(&mut second).await, heard);
    let thanks = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    second.write_all(thanks).await.unwrap();
    eventually("the note of the delivery", async || {
        let row = stage.cli_json(&["tasks", "show", &id]).await;
        (row["callback_outcome"] == "delivered").then(|| {
            assert_eq!(row["callback_attempts"], 2);
        })
    })
    .await;
    assert_eq!(stage.usage(&key).await, FILM_COST);
    stage.verify().await;
}

/// A whole delivery, head and body.
async fn delivery(socket: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"}") {
        let mut piece = [0; 4096];
        let length = socket.read(&mut piece).await.unwrap();
        assert!(length > 0, "the delivery broke off");
        text.extend_from_slice(&piece[..length]);
    }
    String::from_utf8(text).unwrap()
}

/// Reliability, section 5: no form of a refused address is ever connected to.
#[tokio::test]
async fn callbacks_to_addresses_that_are_not_public_never_arrive() {
    let (stage, key) = plot().funded().await;
    let heard = Arc::new(Mutex::new(0));
    let mut ports = Vec::new();
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let listener = TcpListener::bind(address).await.unwrap();
        ports.push(listener.local_addr().unwrap().port());
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                *heard.lock().unwrap() += 1;
            }
        });
    }
    let (port, everywhere) = (ports[0], ports[1]);
    let urls = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://LOCALHOST.:{port}/"),
        format!("http://a.localhost:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0177.0.0.1:{port}/"),
        format!("http://0.0.0.0:{everywhere}/"),
        format!("http://[::1]:{everywhere}/"),
        format!("http://[::]:{everywhere}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://[::127.0.0.1]:{port}/"),
        format!("http://[64:ff9b::7f00:1]:{port}/"),
        format!("http://printer:{port}/"),
        format!("http://db.internal:{port}/"),
        format!("http://tv.local:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        // Our own listener.
        format!("http://{}/v1/balance", stage.address()),
    ];
    for url in &urls {
        create(&stage, &key, &told("x", url)).await;
    }
    eventually("the last attempts", async || {
        let rows = listed(&stage, &[]).await;
        let given_up = rows
            .iter()
            .filter(|row| row["callback_outcome"] == "given_up");
        (given_up.count() == urls.len()).then_some(())
    })
    .await;
    assert_eq!(*heard.lock().unwrap(), 0);
    stage.verify().await;
}

async fn create_on(node: SocketAddr, key: &Key, prompt: &str) -> String {
    let mut connection = Connection::open(node).await;
    let request = Request::post("/v1/videos/generations");
    connection
        .send(&request.json(&film(prompt)).bearer(&key.secret))
        .await;
    let answer = connection.answer().await.ok();
    answer.json()["request_id"].as_str().unwrap().to_owned()
}

/// Reliability T7: two nodes, one killed midway; all tasks end, none is polled by two at once, each is
/// settled once. `TOLLGATE_TASKS=1000` is the long proof.
#[tokio::test]
async fn two_nodes_follow_many_tasks_and_one_of_them_dies() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let count = std::env::var("TOLLGATE_TASKS").map_or(100, |count| count.parse().unwrap());
    let plot = plot()
        .database(database)
        .setting("tasks", "lease_ms = 3000");
    let mut stage = plot.open().await;
    let nodes = [stage.address(), stage.another_node().await];
    stage.wallet("w", &["--balance", "10000"]).await;
    let key = stage.key("w", &[]).await;
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
    // The simulator keeps its newest calls alone, so they are gathered on the way.
    let mut polls = BTreeMap::new();
    let mut gather = |stage: &Stage| {
        let calls = stage.sim.calls().into_iter();
        for call in calls.filter(|call| call.method == "GET") {
            let until = call.at_ms + call.took_ms.unwrap_or(0);
            polls.insert(call.seq, (call.path, call.at_ms, until));
        }
    };
    while !creators.is_empty() {
        gather(&stage);
        while let Some(created) = creators.try_join_next() {
            created.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.kill_last_node();
    let mut frozen = stage.frozen(&key).await;
    while frozen > 0 {
        frozen = eventually("the end of further tasks", async || {
            gather(&stage);
            let now = stage.frozen(&key).await;
            (now < frozen).then_some(now)
        })
        .await;
    }
    assert_eq!(stage.usage(&key).await, count as u64 * FILM_COST);
    let rows = listed(&stage, &[]).await;
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
    stage.verify().await;
}

#[tokio::test]
async fn operators_list_show_and_follow_tasks() {
    let (stage, key) = plot().funded().await;
    let done = create(&stage, &key, &film("a boat")).await;
    ended(&stage, &key, &done).await;
    let refused = create(&stage, &key, &film("[refuse]")).await;
    ended(&stage, &key, &refused).await;
    let rows = listed(&stage, &[]).await;
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&done.as_str()) && ids.contains(&refused.as_str()));
    let failed = listed(&stage, &["--status", "failed", "--wallet", "w"]).await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["id"], refused.as_str());
    assert!(listed(&stage, &["--open"]).await.is_empty());
    let shown = stage.cli_json(&["tasks", "show", &done]).await;
    assert_eq!(shown["protocol"], "video-a");
    assert_eq!(shown["channel"], "main");
    assert_eq!(shown["snapshot"]["status"], "done");
    let table = stage.cli(&["tasks", "list"]).await.stdout;
    assert!(
        table.contains("PROGRESS") && table.contains(&done),
        "{table}"
    );
    let missing = "01987654-0000-7000-8000-000000000000";
    let missing = stage.cli(&["tasks", "show", missing]).await;
    assert!(!missing.status.success() && missing.stderr.contains("no task"));
    // It stays until nothing is open, and tells each state once.
    let slow = create(&stage, &key, &film("a boat [polls=20]")).await;
    let followed = stage.cli(&["tasks", "follow", "--drain", "--json"]).await;
    let last = followed.stdout.lines().rfind(|line| line.contains(&slow));
    let last: Value = serde_json::from_str(last.unwrap()).unwrap();
    assert_eq!(last["status"], "done", "{}", followed.stdout);
}

/// Reliability T8: a channel that still has tasks may take no new work, but it may not go.
#[tokio::test]
async fn a_channel_with_open_tasks_cannot_be_taken_away() {
    let (stage, key) = plot().funded().await;
    let id = create(&stage, &key, &film("a boat [polls=100000]")).await;
    let file = stage.config_file().to_owned();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"main\"", "\"other\"")).unwrap();
    crate::harness::signal("HUP", stage.pid());
    eventually("the refusal", async || {
        let refused = |line: &String| line.contains("still has open tasks");
        stage.log().iter().any(refused).then_some(())
    })
    .await;
    let answer = post(&stage, &key, "/v1/videos/generations", &film("x")).await;
    answer.ok();
    let row = stage.cli_json(&["tasks", "show", &id]).await;
    assert_eq!(
        (&row["channel"], &row["status"]),
        (&json!("main"), &json!("pending"))
    );
}

/// Many open tasks on one node: looks keep their schedule within a tenth. It measures the machine too, so
/// it is played when asked for: `TOLLGATE_OPEN_TASKS=10000 cargo test --release -p tollgate-server --test it
/// tasks::many_open -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures the machine"]
async fn many_open_tasks_are_looked_at_on_time() {
    const PAUSE_MS: u64 = 5_000;
    const CREATORS: usize = 32;
    let count = std::env::var("TOLLGATE_OPEN_TASKS").map_or(1_000, |count| count.parse().unwrap());
    let plot = Plot::default()
        .entries(ENTRIES)
        .setting("tasks", &format!("poll_first_ms = {PAUSE_MS}"))
        .setting("tasks", &format!("poll_max_ms = {PAUSE_MS}"));
    let stage = plot.open().await;
    stage.wallet("w", &["--balance", "1000000"]).await;
    let key = stage.key("w", &[]).await;
    let mut creators = JoinSet::new();
    for creator in 0..CREATORS {
        let (key, node) = (key.clone(), stage.address());
        creators.spawn(async move {
            for _ in (creator..count).step_by(CREATORS) {
                create_on(node, &key, "a boat [polls=1000000]").await;
            }
        });
    }
    creators.join_all().await;
    // Three rounds of looks, gathered as they come.
    let mut polls: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(4 * PAUSE_MS) {
        let calls = stage.sim.calls().into_iter();
        let gets = calls.filter(|call| call.method == "GET");
        polls.extend(gets.map(|call| (call.seq, (call.path, call.at_ms))));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut by_task: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (path, at) in polls.into_values() {
        by_task.entry(path).or_default().push(at);
    }
    let mut pauses = Vec::new();
    for times in by_task.values_mut() {
        times.sort_unstable();
        pauses.extend(times.windows(2).map(|two| two[1] - two[0]));
    }
    pauses.sort_unstable();
    let at = |share: usize| pauses[(pauses.len() - 1) * share / 100];
    eprintln!(
        "{count} open tasks, {} looks: pause p50 {} ms, p99 {} ms, longest {} ms",
        pauses.len(),
        at(50),
        at(99),
        at(100)
    );
    // The pause, its jitter of a tenth, and a tenth for being late.
    assert!(at(99) <= PAUSE_MS * 12 / 10);
}
