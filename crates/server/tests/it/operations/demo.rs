//! `tollgate demo`: one command starts everything and prints a `curl` line that works.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Channel, Running, run, signal};

const FREE_PORTS: [&str; 7] = [
    "demo",
    "--listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
    "--data",
    "data",
];

/// Runs a command line in a shell, as a person would paste it.
fn pasted(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The `curl` commands in the output, with their continuation lines.
fn curl_lines(lines: &[String]) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = lines.iter().map(|line| line.trim());
    while let Some(line) = lines.next() {
        if line.starts_with("curl ") {
            let mut command = line.to_owned();
            while command.ends_with('\\') {
                command.pop();
                command.push_str(lines.next().unwrap());
            }
            commands.push(command);
        }
    }
    commands
}

async fn started(folder: &Path, arguments: &[&str]) -> (Running, Vec<String>) {
    let mut demo = Running::start(arguments, folder, Channel::Stdout);
    demo.line("its last line", |line| line.contains("the data stays"))
        .await;
    let lines = demo.lines();
    (demo, lines)
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok()
}

#[tokio::test]
async fn the_printed_curl_line_answers_and_streams() {
    let folder = tempfile::tempdir().unwrap();
    let (mut demo, lines) = started(folder.path(), &FREE_PORTS).await;
    let text = lines.join("\n");
    assert!(text.contains("sk-tg-"), "{text}");
    assert!(text.contains("balance before   105 credits"), "{text}");
    assert!(text.contains("/#/sign-in?code="), "{text}");
    let data = std::path::absolute(folder.path().join("data")).unwrap();
    assert!(text.contains(data.to_str().unwrap()), "{text}");
    assert!(folder.path().join("data/tollgate.db").exists());
    let commands = curl_lines(&lines);
    assert_eq!(commands.len(), 3, "{text}");
    if has_curl() {
        let answer = pasted(&commands[0].replacen("curl", "curl -sS", 1));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["model"], "sim/chat");
        assert!(answer["choices"][0]["message"]["content"].is_string());
        let stream = pasted(&commands[1].replacen("curl", "curl -sS", 1));
        assert!(stream.starts_with("data: {"), "{stream}");
        assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
        let saved = folder.path().join("hello.wav");
        let speech = commands[2].replacen("curl", "curl -sS", 1);
        pasted(&speech.replace("hello.wav", saved.to_str().unwrap()));
        assert!(std::fs::read(saved).unwrap().starts_with(b"RIFF"));
    }
    signal("INT", demo.pid());
    assert!(demo.ended().await.success());
}

/// Secrets are shown once, so each start creates a new key. The balance continues.
#[tokio::test]
async fn a_second_start_goes_on_with_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = FREE_PORTS.to_vec();
    arguments.push("--json");
    let mut balances = Vec::new();
    let mut keys = Vec::new();
    for _ in 0..2 {
        let mut demo = Running::start(&arguments, folder.path(), Channel::Stdout);
        let line = demo.line("its answer", |line| line.starts_with('{')).await;
        let shown: Value = serde_json::from_str(&line).unwrap();
        assert!(shown["base_url"].as_str().unwrap().ends_with("/v1"));
        for name in ["balance_before", "balance_after"] {
            balances.push(shown[name].as_str().unwrap().to_owned());
        }
        keys.push(shown["api_key"].as_str().unwrap().to_owned());
        // A second demo cannot use the data while the first one runs.
        let second = run(&arguments, folder.path()).await;
        assert_eq!(second.status.code(), Some(1));
        assert!(second.stderr.contains("--data"), "{}", second.stderr);
        signal("TERM", demo.pid());
        assert!(demo.ended().await.success());
    }
    assert_eq!(balances[0], "105");
    assert_ne!(balances[1], "105");
    assert_eq!(
        balances[2], balances[1],
        "the second start goes on where the first ended"
    );
    assert_ne!(keys[0], keys[1]);
}

/// Runs a command on the data of a demo that has ended, and parses its rows: one list, or one row in each line.
async fn command_rows(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = run(&[arguments, &["--json"]].concat(), folder).await;
    assert!(output.status.success(), "{}", output.stderr);
    let lines = output.stdout.lines();
    let rows = lines.flat_map(|line| match serde_json::from_str(line).unwrap() {
        Value::Array(rows) => rows,
        row => vec![row],
    });
    rows.collect()
}

fn micro(row: &Value) -> i64 {
    row["charge_micro"].as_str().unwrap().parse().unwrap()
}

/// The simulated past day is booked like real calls, so that the figures in the console add up.
#[tokio::test]
async fn the_past_day_of_the_customers_is_in_the_ledger_and_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[store]\nurl = \"sqlite:data/tollgate.db\"\n";
    std::fs::write(folder.path().join("tollgate.toml"), config).unwrap();
    let mut customers = Vec::new();
    for _ in 0..2 {
        let (mut demo, lines) = started(folder.path(), &FREE_PORTS).await;
        assert!(lines.join("\n").contains("--no-customers"), "{lines:?}");
        signal("INT", demo.pid());
        assert!(demo.ended().await.success());
        let verified = run(&["ledger", "verify"], folder.path()).await;
        assert!(verified.status.success(), "{}", verified.stdout);
        let wallets = command_rows(folder.path(), &["wallet", "list"]).await;
        customers.push(wallets.len());
    }
    assert_eq!(customers, [4, 4], "the day is not invented twice");
    let calls = command_rows(
        folder.path(),
        &["logs", "--wallet", "support-bot", "--limit", "1000"],
    )
    .await;
    assert!(calls.len() > 40, "{}", calls.len());
    let journaled: i64 = calls.iter().map(micro).sum();
    let booked: i64 = command_rows(
        folder.path(),
        &[
            "ledger",
            "report",
            "--wallet",
            "support-bot",
            "--by",
            "wallet",
        ],
    )
    .await
    .iter()
    .map(micro)
    .sum();
    assert!(journaled > 0);
    assert_eq!(journaled, booked);
}

/// A user of the demo may rename its wallets. The next start creates the wallets that are then missing.
#[tokio::test]
async fn a_demo_whose_wallet_was_renamed_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[store]\nurl = \"sqlite:data/tollgate.db\"\n";
    std::fs::write(folder.path().join("tollgate.toml"), config).unwrap();
    for renamed in [Some("web-shop"), Some("research"), None] {
        let (mut demo, _) = started(folder.path(), &FREE_PORTS).await;
        signal("INT", demo.pid());
        assert!(demo.ended().await.success());
        if let Some(name) = renamed {
            let other = format!("my {name}");
            let words = ["wallet", "rename", name, &other];
            let output = run(&words, folder.path()).await;
            assert!(output.status.success(), "{}", output.stderr);
        }
    }
    let wallets = command_rows(folder.path(), &["wallet", "list"]).await;
    let mut names: Vec<_> = wallets.iter().map(|it| it["name"].as_str()).collect();
    names.sort_unstable();
    let expected = [
        "demo",
        "my research",
        "my web-shop",
        "research",
        "support-bot",
        "web-shop",
    ];
    assert_eq!(names, expected.map(Some));
    let verified = run(&["ledger", "verify"], folder.path()).await;
    assert!(verified.status.success(), "{}", verified.stdout);
}

#[tokio::test]
async fn a_demo_without_customers_has_its_own_wallet_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[store]\nurl = \"sqlite:data/tollgate.db\"\n";
    std::fs::write(folder.path().join("tollgate.toml"), config).unwrap();
    let arguments = [&FREE_PORTS[..], &["--no-customers"]].concat();
    let (mut demo, lines) = started(folder.path(), &arguments).await;
    assert!(!lines.join("\n").contains("customers"), "{lines:?}");
    signal("INT", demo.pid());
    assert!(demo.ended().await.success());
    let wallets = command_rows(folder.path(), &["wallet", "list"]).await;
    let names: Vec<_> = wallets.iter().map(|wallet| &wallet["name"]).collect();
    assert_eq!(names, ["demo"]);
}

#[tokio::test]
async fn a_taken_port_is_told_with_the_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let output = run(
        &[
            "demo",
            "--listen",
            &address,
            "--admin-listen",
            "127.0.0.1:0",
        ],
        folder.path(),
    )
    .await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains("--listen 127.0.0.1:0"),
        "{}",
        output.stderr
    );
}

/// `tollgate sim` runs the simulated upstream as a separate process, which a configuration can name.
#[tokio::test]
async fn the_simulated_upstream_runs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["sim", "--listen", "127.0.0.1:0", "--json"];
    let mut upstream = Running::start(&arguments, folder.path(), Channel::Stdout);
    let line = upstream
        .line("its address", |line| line.starts_with('{'))
        .await;
    let shown: Value = serde_json::from_str(&line).unwrap();
    let address = shown["address"].as_str().unwrap().parse().unwrap();
    let mut connection = crate::harness::Connection::open(address).await;
    let request = crate::harness::Request::get("/v1/models").bearer("any");
    connection.send(&request).await;
    let models = connection.answer().await.ok().json();
    assert_eq!(models["object"], "list");
    signal("TERM", upstream.pid());
    assert!(upstream.ended().await.success());
}
