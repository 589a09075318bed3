//! The command line while a gateway runs.

use serde_json::{Value, json};

use crate::harness::{
    Channel, Output, Running, TestGateway, ask, eventually, expected_cost, micro, run, signal, with,
};

#[track_caller]
fn json_lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", output.stderr);
    output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn wallets_are_made_funded_and_shown() {
    let gateway = TestGateway::start().await;
    let made = gateway
        .wallet(
            "acme",
            &["--balance", "100", "--gift", "5", "--credit-limit", "50"],
        )
        .await;
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("wal_"));
    assert_eq!(made["name"], "acme");
    assert_eq!(
        (&made["balance"], &made["balance_micro"]),
        (&json!("100"), &json!("100000000"))
    );
    assert_eq!(made["gift_balance"], "5");
    assert_eq!(made["credit_limit"], "50");
    assert_eq!(made["total_available"], "155");

    assert_eq!(
        gateway.cli_json(&["wallet", "topup", id, "0.5"]).await["balance"],
        "100.5"
    );
    assert_eq!(
        gateway.cli_json(&["wallet", "gift", "acme", "1"]).await["gift_balance"],
        "6"
    );
    let lowered = gateway
        .cli_json(&["wallet", "credit-limit", id, "10"])
        .await;
    assert_eq!(lowered["credit_limit"], "10");
    assert_eq!(
        gateway.cli_json(&["wallet", "disable", id]).await["status"],
        "disabled"
    );
    assert_eq!(
        gateway.cli_json(&["wallet", "enable", "acme"]).await["status"],
        "active"
    );
    let shown = gateway.cli_json(&["wallet", "show", "acme"]).await;
    assert_eq!(shown["id"], id);
    let list = gateway.cli_json(&["wallet", "list"]).await;
    assert_eq!(list.as_array().unwrap().len(), 1);

    for (arguments, complaint) in [
        (vec!["wallet", "create", "acme"], "acme"),
        (vec!["wallet", "show", "nobody"], "nobody"),
        (vec!["key", "create", "--wallet", "nobody"], "nobody"),
        (
            vec!["key", "show", "key_0123456789abcdef"],
            "key_0123456789abcdef",
        ),
    ] {
        let output = gateway.cli(&arguments).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stderr.contains(complaint), "{}", output.stderr);
        assert!(output.stdout.is_empty());
    }
    gateway.verify().await;
}

/// K1: a secret is shown once and stored nowhere.
#[tokio::test]
async fn a_secret_is_shown_once() {
    let (gateway, _) = TestGateway::funded().await;
    let options = [
        "--name",
        "ci",
        "--limit",
        "10",
        "--rpm",
        "60",
        "--tpm",
        "100000",
        "--concurrency",
        "4",
        "--expires",
        "30d",
    ];
    let key = gateway.key("w", &options).await;
    assert!(key.secret.starts_with("sk-tg-"));
    assert_eq!(key.secret.len(), "sk-tg-".len() + 43);
    let other = gateway.key("w", &[]).await;
    assert_ne!(key.secret, other.secret);

    let shown = gateway
        .cli(&["key", "show", &key.id, "--json"])
        .await
        .stdout;
    let list = gateway
        .cli(&["key", "list", "--wallet", "w", "--json"])
        .await
        .stdout;
    let table = gateway.cli(&["key", "list"]).await.stdout;
    for text in [&shown, &list, &table] {
        assert!(text.contains(&key.id), "{text}");
        assert!(!text.contains(&key.secret[..20]), "{text}");
    }
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["name"], "ci");
    assert_eq!(shown["limit"], "10");
    assert_eq!(
        (
            &shown["rpm_limit"],
            &shown["tpm_limit"],
            &shown["concurrency_limit"]
        ),
        (&json!(60), &json!(100_000), &json!(4))
    );
    assert_eq!(shown["enabled"], true);
    assert!(key.secret.starts_with(shown["prefix"].as_str().unwrap()));
    // No file of the store contains the secret.
    let files = std::fs::read_dir(gateway.folder().join("data"));
    assert!(files.is_ok() || gateway.database().is_shared());
    for file in files.into_iter().flatten() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let needle = key.secret.as_bytes();
        assert!(!bytes.windows(needle.len()).any(|window| window == needle));
    }
}

#[tokio::test]
async fn limits_of_a_key_change_while_the_server_runs() {
    let (gateway, key) = TestGateway::funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway
        .cli_json(&["key", "update", &key.id, "--limit", "0.000001"])
        .await;
    let refused = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(refused.failure(), (402, "key_limit_reached".to_owned()));
    let lifted = gateway
        .cli_json(&["key", "update", &key.id, "--limit", "none", "--rpm", "1000"])
        .await;
    assert_eq!(
        (&lifted["limit"], &lifted["rpm_limit"]),
        (&Value::Null, &json!(1000))
    );
    let answer = gateway.chat(&key, &ask("hello")).await.ok();
    assert_eq!(answer.header("x-ratelimit-limit-requests"), Some("1000"));
    gateway.verify().await;
}

#[tokio::test]
async fn the_journal_shows_the_calls() {
    let (gateway, key) = TestGateway::funded().await;
    let good = gateway.chat(&key, &ask("reply with 5 words")).await.ok();
    let streamed = with(ask("reply with 5 words"), &json!({ "stream": true }));
    gateway.chat(&key, &streamed).await.ok();
    gateway
        .chat(&key, &with(ask("x"), &json!({ "messages": [] })))
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "status=500", 1)
        .unwrap();
    gateway.chat(&key, &ask("hello")).await;

    let rows = eventually("the journal's rows", async || {
        let output = gateway.cli(&["logs", "--key", &key.id, "--json"]).await;
        let rows = json_lines(&output);
        (rows.len() == 4).then_some(rows)
    })
    .await;
    let row = &rows[0];
    let id = good.header("x-request-id").unwrap();
    assert_eq!(row["request_id"], id);
    assert_eq!(row["model"], "maker/chat");
    assert_eq!(row["endpoint"], "/v1/chat/completions");
    assert_eq!(
        (&row["status"], &row["outcome"]),
        (&json!(200), &json!("settled"))
    );
    let usage = good.json()["usage"].clone();
    assert_eq!(micro(row, "charge"), expected_cost(&usage));
    assert_eq!(row["usage"]["input"], usage["prompt_tokens"]);
    assert_eq!(row["usage"]["output"], usage["completion_tokens"]);
    assert_eq!(
        (&row["channel"], &row["upstream_model"]),
        (&json!("main"), &json!("sim-chat"))
    );
    assert!(row["total_us"].as_u64().unwrap() >= row["first_byte_us"].as_u64().unwrap());
    assert_eq!(
        row["request_body"],
        Value::Null,
        "bodies are off by default"
    );
    assert_eq!(rows[1]["stream"], true);
    assert_eq!(
        (&rows[2]["status"], &rows[2]["code"]),
        (&json!(400), &json!("invalid_request"))
    );
    assert_eq!(rows[2]["outcome"], Value::Null);
    assert_eq!(
        (&rows[3]["status"], &rows[3]["outcome"]),
        (&json!(502), &json!("released"))
    );
    assert_eq!(rows[3]["channel"], "main");

    let one = gateway.cli_json(&["logs", "show", id]).await;
    assert_eq!(one["request_id"], id);
    for (filter, count) in [
        (["--status", "5xx"], 1),
        (["--status", "200"], 2),
        (["--model", "maker/chat"], 3),
        (["--wallet", "w"], 4),
        (["--since", "1h"], 4),
        (["--limit", "2"], 2),
    ] {
        let output = gateway.cli(&["logs", filter[0], filter[1], "--json"]).await;
        assert_eq!(json_lines(&output).len(), count, "{filter:?}");
    }
    let table = gateway.cli(&["logs"]).await.stdout;
    assert!(
        table.contains(id) && table.contains("upstream_error"),
        "{table}"
    );
}

/// `logs --follow` shows calls as they end.
#[tokio::test]
async fn the_journal_can_be_followed() {
    let (gateway, key) = TestGateway::funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let arguments = ["--config", "tollgate.toml", "logs", "--follow", "--json"];
    let mut follower = Running::start(&arguments, gateway.folder(), Channel::Stdout);
    follower
        .line("the call before", |line| line.contains("maker/chat"))
        .await;
    let answer = gateway.chat(&key, &ask("hello again")).await.ok();
    let id = answer.header("x-request-id").unwrap();
    let line = follower
        .line("the next call", |line| line.contains(id))
        .await;
    let row: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(row["outcome"], "settled");
    // Send SIGTERM, because programs that a shell runs in the background ignore SIGINT.
    signal("TERM", follower.pid());
    follower.ended().await;
}

/// V1, V2, V4, V5: a planted difference is found and named, and the exit code is 1.
#[tokio::test]
async fn verify_finds_what_does_not_add_up() {
    let (mut gateway, key) = TestGateway::funded().await;
    for _ in 0..3 {
        gateway.chat(&key, &ask("reply with 9 words")).await.ok();
    }
    // `/v1/balance` returns durable state, so the kill leaves no hold open.
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.kill();
    let report = gateway.cli_json(&["ledger", "verify"]).await;
    assert_eq!(report["ok"], true);
    assert_eq!(report["differences"], json!([]));
    let database = gateway.database();
    let key_states = if database.is_shared() {
        "keys"
    } else {
        "key_states"
    };
    for (plant, rules, undo) in [
        (
            "UPDATE wallets SET balance = balance + 1",
            &["V2 entries = amounts"][..],
            "UPDATE wallets SET balance = balance - 1",
        ),
        (
            "UPDATE wallets SET frozen = 7",
            &["V1 open holds = frozen"],
            "UPDATE wallets SET frozen = 0",
        ),
        (
            &format!("UPDATE {key_states} SET usage = usage + 1"),
            &["V5 key usage = its entries"],
            &format!("UPDATE {key_states} SET usage = usage - 1"),
        ),
        (
            "UPDATE wallets SET holds_opened = holds_opened + 1",
            &["V4 one close per hold, no gap"],
            "UPDATE wallets SET holds_opened = holds_opened - 1",
        ),
        (
            "INSERT INTO holds (id, wallet, key, amount, tokens, counts, request_id, opened_at)
             SELECT 99, w.n, k.n, 5, 5, true, 'req_x', 0 FROM wallets w, keys k LIMIT 1",
            &[
                "V6 holds have a live owner",
                "V1 open holds = frozen",
                "V4 one close per hold, no gap",
            ],
            "DELETE FROM holds",
        ),
    ] {
        database.run(plant);
        let output = gateway.cli(&["ledger", "verify", "--json"]).await;
        assert_eq!(output.status.code(), Some(1), "{plant}: {}", output.stdout);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(report["ok"], false);
        let differences = report["differences"].as_array().unwrap();
        for member in ["wallet", "expected", "found"] {
            let is_text = |difference: &Value| difference[member].is_string();
            assert!(differences.iter().all(is_text), "{plant}: {report}");
        }
        let mut found: Vec<_> = differences.iter().map(|it| &it["rule"]).collect();
        found.dedup();
        assert_eq!(found, rules, "{plant}: {report}");
        let people = gateway.cli(&["ledger", "verify"]).await;
        assert_eq!(people.status.code(), Some(1));
        assert!(people.stdout.contains("EXPECTED"), "{}", people.stdout);
        database.run(undo);
    }
    gateway.verify().await;
    // W10: the database refuses every change of an entry.
    assert!(database.try_run("UPDATE entries SET charge = 0").is_err());
    assert!(database.try_run("DELETE FROM entries").is_err());
}

#[tokio::test]
async fn check_shows_the_catalog_or_every_problem_at_once() {
    let gateway = TestGateway::start().await;
    let checked = gateway.cli_json(&["check"]).await;
    let text = checked.to_string();
    for part in ["maker/chat", "sim-chat", "1.25"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains(crate::harness::UPSTREAM_KEY));
    let wrong =
        "[server]\nlisten = \"nowhere\"\ncolour = 1\n[[model]]\nid = \"x\"\nkind = \"smell\"\n";
    std::fs::write(gateway.folder().join("wrong.toml"), wrong).unwrap();
    let output = run(&["check", "--config", "wrong.toml"], gateway.folder()).await;
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "wrong.toml:2",
        "wrong.toml:3",
        "server.listen",
        "colour",
        "wrong.toml:5",
        "kind",
    ] {
        assert!(output.stderr.contains(part), "{part} in {}", output.stderr);
    }
}

#[tokio::test]
async fn a_wrong_command_line_is_told_as_usage() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["wallet"][..],
        &["nonsense"],
        &["wallet", "topup", "w", "-1"],
        &["key", "create"],
    ] {
        let output = run(arguments, folder.path()).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let output = run(&["serve"], folder.path()).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.contains("tollgate demo"), "{}", output.stderr);
    let version = run(&["--version"], folder.path()).await;
    assert!(version.stdout.starts_with("tollgate "));
}
