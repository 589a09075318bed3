//! `tollgate init`: from API keys in the environment to a call that is answered and billed.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sim::Sim;

use crate::harness::{Channel, Running, eventually, micro, run_in, signal};

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs a printed call in a shell, and returns its answer.
async fn answer_of(call: &str) -> Value {
    let line = call.replacen("curl", "curl -sS", 1);
    let mut shell = tokio::process::Command::new("sh");
    let output = shell.args(["-c", &line]).output().await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The charge of a usage without cached tokens.
fn charge_micro(usage: &Value, price: &Value) -> u64 {
    // Prices are in credits per million tokens, which are micro-credits per token.
    let cost = |tokens: &str, price_of: &str| {
        let price: ledger::Micro = price[price_of].as_str().unwrap().parse().unwrap();
        usage[tokens].as_u64().unwrap() * u64::try_from(price.get()).unwrap()
    };
    let cost = cost("prompt_tokens", "input") + cost("completion_tokens", "output");
    assert!(cost > 0, "{usage} {price}");
    cost.div_ceil(1_000_000)
}

const SECRETS: [(&str, &str); 2] = [
    ("OPENAI_API_KEY", "sk-openai-secret"),
    ("ANTHROPIC_API_KEY", "sk-anthropic-secret"),
];

#[tokio::test]
async fn the_keys_of_two_vendors_make_a_gateway_whose_printed_call_is_answered_and_billed() {
    let upstream = Sim::start((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (openai, anthropic) = (
        format!("http://{}/v1", upstream.address()),
        format!("http://{}", upstream.address()),
    );
    let mut environment = SECRETS.to_vec();
    environment.push(("OPENAI_BASE_URL", &openai));
    environment.push(("ANTHROPIC_BASE_URL", &anthropic));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (listen, admin) = (
        format!("127.0.0.1:{}", free_port()),
        format!("127.0.0.1:{}", free_port()),
    );
    let words = [
        "init",
        "--yes",
        "--markup",
        "1.5",
        "--listen",
        &listen,
        "--admin-listen",
        &admin,
    ];

    let ran = run_in(&[&words[..], &["--dry-run"]].concat(), path, &environment).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    assert!(ran.stdout.contains("models = \"all\""), "{}", ran.stdout);
    assert_eq!(names(path), [""; 0]);

    let ran = run_in(&[&words[..], &["--json"]].concat(), path, &environment).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    let created: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(names(path), ["tollgate-data", "tollgate.toml"]);
    let text = std::fs::read_to_string(path.join("tollgate.toml")).unwrap();
    for (name, secret) in SECRETS {
        assert!(
            text.contains(&format!("credential = {{ env = \"{name}\" }}")),
            "{text}"
        );
        assert!(!text.contains(secret), "{text}");
    }
    assert!(created["models"].as_u64().unwrap() >= 36, "{created}");

    // Existing files are kept.
    let again = run_in(&words, path, &environment).await;
    assert!(!again.status.success());
    assert!(
        again.stderr.contains("tollgate.toml exists already"),
        "{}",
        again.stderr
    );
    assert_eq!(
        std::fs::read_to_string(path.join("tollgate.toml")).unwrap(),
        text
    );

    let checked = run_in(&["check", "--strict", "--json"], path, &environment).await;
    assert!(
        checked.status.success(),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(checked["unlisted"], serde_json::json!([]));
    assert_eq!(
        checked["models"].as_array().unwrap().len() as u64,
        created["models"].as_u64().unwrap()
    );
    assert!(checked["models"].as_array().unwrap().iter().all(|model| {
        model["source"]["price"] == "catalog" && model["source"]["markup"] == "1.5"
    }));

    let mut gateway = Running::start_in(&["serve"], path, Channel::Stderr, &environment);
    gateway
        .line("\"serving\"", |line| line.contains("\"serving\""))
        .await;
    let call = created["curl"].as_str().unwrap();
    let body = call.split_once("-d '").unwrap().1.trim_end_matches('\'');
    let body: Value = serde_json::from_str(body).unwrap();
    let key = created["api_key"].as_str().unwrap();
    assert_eq!(body["model"], created["model"]);
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("the call is not made: curl is missing");
        return;
    }
    let answer = answer_of(call).await;
    assert_eq!(answer["model"], created["model"], "{answer}");
    assert!(
        answer["choices"][0]["message"]["content"].is_string(),
        "{answer}"
    );
    assert!(key.starts_with("sk-tg-"));

    // The wallet began with 10 credits.
    let wallet = eventually("the call is billed", async || {
        let shown = run_in(&["wallet", "show", "main", "--json"], path, &environment).await;
        let wallet: Value = serde_json::from_str(&shown.stdout).unwrap();
        (wallet["balance"] != "10").then_some(wallet)
    })
    .await;
    let mut models = checked["models"].as_array().unwrap().iter();
    let model = models.find(|it| it["id"] == created["model"]).unwrap();
    let charge = charge_micro(&answer["usage"], &model["price"]);
    assert_eq!(micro(&wallet, "balance"), 10_000_000 - charge, "{answer}");
}

#[tokio::test]
async fn without_a_key_or_a_terminal_nothing_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let output = run_in(&["init", "--yes"], path, &[]).await;
    assert!(!output.status.success());
    assert!(
        output.stderr.contains("no vendor's key was found"),
        "{}",
        output.stderr
    );
    let output = run_in(&["init"], path, &SECRETS).await;
    assert!(!output.status.success());
    assert!(output.stderr.contains("Say --yes"), "{}", output.stderr);
    std::fs::create_dir(path.join("tollgate-data")).unwrap();
    let output = run_in(&["init", "--yes"], path, &SECRETS).await;
    assert!(!output.status.success());
    assert!(
        output.stderr.contains("tollgate-data exists already"),
        "{}",
        output.stderr
    );
    assert_eq!(names(path), ["tollgate-data"]);
}

#[tokio::test]
async fn ctrl_c_leaves_everything_or_nothing() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut init = Running::start_in(&["init", "--yes"], path, Channel::Stderr, &SECRETS);
        eventually("the first file", async || {
            (!names(path).is_empty()).then_some(())
        })
        .await;
        signal("INT", init.pid());
        let is_created = init.ended().await.success();
        let expected: &[&str] = if is_created {
            &["tollgate-data", "tollgate.toml"]
        } else {
            &[]
        };
        assert_eq!(names(path), expected);
    }
}
