//! `tollgate move`, `backup` and `restore`, with a gateway running before and after.

use serde_json::Value;

use crate::harness::{Database, Output, TestGateway, ask, signal};

/// The database URL in `[store]`.
fn url_of(database: &Database) -> String {
    let settings = database.settings();
    settings.split('"').nth(1).unwrap().to_owned()
}

/// The URL of a new database of the other kind, or of the same kind if there is no server.
fn other(gateway: &TestGateway) -> String {
    let server = Database::shared().filter(|_| !gateway.database().is_shared());
    server.map_or_else(|| "sqlite:other.db".to_owned(), |server| url_of(&server))
}

async fn stop(gateway: &mut TestGateway) {
    signal("TERM", gateway.pid());
    assert!(gateway.process().ended().await.success());
}

/// Restarts the gateway on another database.
async fn serve_from(gateway: &mut TestGateway, url: &str) {
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    let changed = text.replace(&url_of(gateway.database()), url);
    assert_ne!(text, changed);
    std::fs::write(gateway.config_file(), changed).unwrap();
    gateway.restart().await;
}

#[track_caller]
fn assert_refused(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains(why), "{}", output.stderr);
}

async fn heads(gateway: &TestGateway) -> Value {
    gateway.cli_json(&["ledger", "verify"]).await["heads"].clone()
}

#[tokio::test]
async fn a_moved_store_serves_the_same_keys() {
    let (mut gateway, key) = TestGateway::funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let spent = gateway.usage(&key).await;
    let to = other(&gateway);
    let running = gateway.cli(&["move", "--to", &to]).await;
    assert_refused(&running, "a server is running here");
    stop(&mut gateway).await;
    let before = heads(&gateway).await;
    let moved = gateway.cli_json(&["move", "--to", &to]).await;
    assert_eq!(
        (&moved["ok"], &moved["resumed"], &moved["abandoned"]),
        (&true.into(), &false.into(), &0.into())
    );
    assert_eq!(moved["heads"], before);
    assert_eq!(moved["charged_micro"], spent.to_string());
    assert_eq!(moved["tables"]["calls"], 1);
    let again = gateway.cli(&["move", "--to", &to]).await;
    assert!(
        again.stdout.contains("already has everything"),
        "{}",
        again.stdout
    );
    let nowhere = gateway.cli(&["move", "--from", "sqlite:none.db"]).await;
    assert_refused(&nowhere, "there is no store here");

    serve_from(&mut gateway, &to).await;
    assert_eq!(gateway.usage(&key).await, spent);
    gateway.chat(&key, &ask("hello again")).await.ok();
    assert!(gateway.usage(&key).await > spent);
    journal_rows(&gateway, 2).await;
    gateway.verify().await;
}

/// Waits until the journal has this many rows. The journal is written shortly after the answer.
async fn journal_rows(gateway: &TestGateway, count: usize) {
    crate::harness::eventually("the rows of the journal", async || {
        let logs = gateway.cli(&["logs", "--json"]).await;
        (logs.stdout.lines().count() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_backup_of_a_running_gateway_is_restored() {
    let (mut gateway, key) = TestGateway::funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let spent = gateway.usage(&key).await;
    journal_rows(&gateway, 1).await;
    let made = gateway.cli_json(&["backup", "copy"]).await;
    assert_eq!((&made["ok"], &made["wallets"]), (&true.into(), &1.into()));
    assert_refused(&gateway.cli(&["backup", "copy"]).await, "exists already");
    assert_refused(
        &gateway.cli(&["restore", "copy"]).await,
        "a server is running here",
    );
    assert_refused(
        &gateway.cli(&["restore", "data"]).await,
        "not a complete backup",
    );
    gateway.chat(&key, &ask("after the backup")).await.ok();
    stop(&mut gateway).await;
    assert_refused(
        &gateway.cli(&["restore", "copy"]).await,
        "the destination is not empty",
    );

    let to = other(&gateway);
    let text = std::fs::read_to_string(gateway.config_file()).unwrap();
    let changed = text.replace(&url_of(gateway.database()), &to);
    std::fs::write(gateway.config_file(), changed).unwrap();
    let restored = gateway.cli(&["restore", "copy"]).await;
    assert!(restored.status.success(), "{}", restored.stderr);
    assert!(
        restored.stdout.contains("restored and verified"),
        "{}",
        restored.stdout
    );
    gateway.restart().await;
    assert_eq!(gateway.usage(&key).await, spent);
    let logs = gateway.cli(&["logs", "--json"]).await;
    assert_eq!(logs.stdout.lines().count(), 1, "{}", logs.stdout);
    gateway.chat(&key, &ask("hello again")).await.ok();
    gateway.verify().await;
}
