//! `tollgate move`, `backup` and `restore`, with a gateway running before and after.

use serde_json::Value;

use crate::harness::{Database, Output, Stage, ask, signal};

/// The database URL in `[store]`.
fn url_of(database: &Database) -> String {
    let settings = database.settings();
    settings.split('"').nth(1).unwrap().to_owned()
}

/// The URL of a new database of the other kind, or of the same kind if there is no server.
fn other(stage: &Stage) -> String {
    let server = Database::shared().filter(|_| !stage.database().is_shared());
    server.map_or_else(|| "sqlite:other.db".to_owned(), |server| url_of(&server))
}

async fn stop(stage: &mut Stage) {
    signal("TERM", stage.pid());
    assert!(stage.process().ended().await.success());
}

/// Restarts the gateway on another database.
async fn serve_from(stage: &mut Stage, url: &str) {
    let text = std::fs::read_to_string(stage.config_file()).unwrap();
    let changed = text.replace(&url_of(stage.database()), url);
    assert_ne!(text, changed);
    std::fs::write(stage.config_file(), changed).unwrap();
    stage.restart().await;
}

#[track_caller]
fn assert_refused(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains(why), "{}", output.stderr);
}

async fn heads(stage: &Stage) -> Value {
    stage.cli_json(&["ledger", "verify"]).await["heads"].clone()
}

#[tokio::test]
async fn a_moved_store_serves_the_same_keys() {
    let (mut stage, key) = Stage::funded().await;
    stage.chat(&key, &ask("hello")).await.ok();
    let spent = stage.usage(&key).await;
    let to = other(&stage);
    let running = stage.cli(&["move", "--to", &to]).await;
    assert_refused(&running, "a server is running here");
    stop(&mut stage).await;
    let before = heads(&stage).await;
    let moved = stage.cli_json(&["move", "--to", &to]).await;
    assert_eq!(
        (&moved["ok"], &moved["resumed"], &moved["abandoned"]),
        (&true.into(), &false.into(), &0.into())
    );
    assert_eq!(moved["heads"], before);
    assert_eq!(moved["charged_micro"], spent.to_string());
    assert_eq!(moved["tables"]["calls"], 1);
    let again = stage.cli(&["move", "--to", &to]).await;
    assert!(
        again.stdout.contains("already has everything"),
        "{}",
        again.stdout
    );
    let nowhere = stage.cli(&["move", "--from", "sqlite:none.db"]).await;
    assert_refused(&nowhere, "there is no store here");

    serve_from(&mut stage, &to).await;
    assert_eq!(stage.usage(&key).await, spent);
    stage.chat(&key, &ask("hello again")).await.ok();
    assert!(stage.usage(&key).await > spent);
    journal_rows(&stage, 2).await;
    stage.verify().await;
}

/// Waits until the journal has this many rows. It is written shortly after the answer.
async fn journal_rows(stage: &Stage, count: usize) {
    crate::harness::eventually("the rows of the journal", async || {
        let logs = stage.cli(&["logs", "--json"]).await;
        (logs.stdout.lines().count() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_backup_of_a_running_gateway_is_restored() {
    let (mut stage, key) = Stage::funded().await;
    stage.chat(&key, &ask("hello")).await.ok();
    let spent = stage.usage(&key).await;
    journal_rows(&stage, 1).await;
    let made = stage.cli_json(&["backup", "copy"]).await;
    assert_eq!((&made["ok"], &made["wallets"]), (&true.into(), &1.into()));
    assert_refused(&stage.cli(&["backup", "copy"]).await, "exists already");
    assert_refused(
        &stage.cli(&["restore", "copy"]).await,
        "a server is running here",
    );
    assert_refused(
        &stage.cli(&["restore", "data"]).await,
        "not a complete backup",
    );
    stage.chat(&key, &ask("after the backup")).await.ok();
    stop(&mut stage).await;
    assert_refused(
        &stage.cli(&["restore", "copy"]).await,
        "the destination is not empty",
    );

    let to = other(&stage);
    let text = std::fs::read_to_string(stage.config_file()).unwrap();
    let changed = text.replace(&url_of(stage.database()), &to);
    std::fs::write(stage.config_file(), changed).unwrap();
    let restored = stage.cli(&["restore", "copy"]).await;
    assert!(restored.status.success(), "{}", restored.stderr);
    assert!(
        restored.stdout.contains("restored and verified"),
        "{}",
        restored.stdout
    );
    stage.restart().await;
    assert_eq!(stage.usage(&key).await, spent);
    let logs = stage.cli(&["logs", "--json"]).await;
    assert_eq!(logs.stdout.lines().count(), 1, "{}", logs.stdout);
    stage.chat(&key, &ask("hello again")).await.ok();
    stage.verify().await;
}
