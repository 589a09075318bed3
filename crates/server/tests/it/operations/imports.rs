//! `tollgate import`: accounts of other gateways are imported completely and only once.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::harness::{Channel, Key, Running, TestGateway, ask, eventually, run};

/// The tables of new-api, as it creates them in `SQLite`.
const NEW_API: &str = "
CREATE TABLE `users` (`id` integer PRIMARY KEY AUTOINCREMENT, `username` text UNIQUE, `password` text NOT NULL,
  `display_name` text, `role` int DEFAULT 1, `status` int DEFAULT 1, `email` text, `access_token` char(32),
  `quota` int DEFAULT 0, `used_quota` int DEFAULT 0, `request_count` int DEFAULT 0, `group` varchar(64) DEFAULT 'default',
  `aff_quota` int DEFAULT 0, `deleted_at` datetime);
CREATE TABLE `tokens` (`id` integer PRIMARY KEY AUTOINCREMENT, `user_id` integer, `key` varchar(128) UNIQUE,
  `status` integer DEFAULT 1, `name` text, `created_time` bigint, `accessed_time` bigint, `expired_time` bigint DEFAULT -1,
  `remain_quota` integer DEFAULT 0, `unlimited_quota` numeric, `model_limits_enabled` numeric, `model_limits` text,
  `allow_ips` text DEFAULT '', `used_quota` integer DEFAULT 0, `group` text DEFAULT '', `deleted_at` datetime);
CREATE TABLE `channels` (`id` integer PRIMARY KEY AUTOINCREMENT, `type` integer DEFAULT 0, `key` text NOT NULL,
  `status` integer DEFAULT 1, `name` text, `weight` integer DEFAULT 0, `base_url` text DEFAULT '', `other` text,
  `models` text, `group` varchar(64) DEFAULT 'default', `model_mapping` text, `priority` bigint DEFAULT 0,
  `channel_info` json, `setting` text, `param_override` text);
CREATE TABLE `abilities` (`group` varchar(64), `model` varchar(255), `channel_id` integer, `enabled` numeric,
  `priority` bigint DEFAULT 0, `weight` integer DEFAULT 0, PRIMARY KEY (`group`, `model`, `channel_id`));
CREATE TABLE `options` (`key` text PRIMARY KEY, `value` text);
CREATE TABLE `redemptions` (`id` integer PRIMARY KEY, `key` char(32), `status` integer DEFAULT 1, `quota` integer,
  `deleted_at` datetime);
";

/// The key of a token as the database stores it.
fn token_key(number: i64) -> String {
    format!("{number:048}").replace('0', "a")
}

/// Creates a database with this many users and tokens. Returns the sum of the users' balances in micro-credits.
fn new_api(path: &Path, users: i64, tokens: i64) -> i64 {
    let mut on = Connection::open(path).unwrap();
    on.execute_batch(NEW_API).unwrap();
    let all = on.transaction().unwrap();
    let mut sum = 0;
    for number in 1..=users {
        // Some users are in debt.
        let quota = number * 7919 % 100_003 - 1_000;
        sum += quota * 2;
        let insert = "INSERT INTO users (id, username, password, quota) VALUES (?1, ?2, 'x', ?3)";
        all.execute(insert, params![number, format!("user{number}"), quota])
            .unwrap();
    }
    for number in 1..=tokens {
        let insert = "INSERT INTO tokens (id, user_id, key, name, remain_quota, unlimited_quota)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (user, unlimited) = (number % users + 1, number % 3 == 0);
        let values = params![
            number,
            user,
            token_key(number),
            format!("token {number}"),
            number,
            unlimited
        ];
        all.execute(insert, values).unwrap();
    }
    all.commit().unwrap();
    sum
}

pub(super) fn text_of(micro: i64) -> String {
    let sign = if micro < 0 { "-" } else { "" };
    let (whole, rest) = (micro.abs() / 1_000_000, micro.abs() % 1_000_000);
    let text = format!("{sign}{whole}.{rest:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The paid balances of all wallets less their debts, in micro-credits.
pub(super) async fn net_worth(gateway: &TestGateway) -> i64 {
    let wallets = gateway.cli_json(&["wallet", "list"]).await;
    let micro =
        |wallet: &Value, member: &str| -> i64 { wallet[member].as_str().unwrap().parse().unwrap() };
    let wallets = wallets.as_array().unwrap().iter();
    wallets
        .map(|it| micro(it, "balance_micro") - micro(it, "credit_used_micro"))
        .sum()
}

#[tokio::test]
async fn ten_thousand_keys_arrive_to_the_micro_credit_and_only_once() {
    let gateway = TestGateway::start().await;
    let source = gateway.folder().join("one-api.db");
    let sum = new_api(&source, 2_000, 10_000);
    let dry = gateway
        .cli_json(&["import", "new-api", "one-api.db", "--dry-run"])
        .await;
    assert_eq!(dry["wallets"]["created"], 2_000, "{dry}");
    assert_eq!(gateway.cli_json(&["wallet", "list"]).await, json!([]));

    let begun = Instant::now();
    let first = gateway.cli_json(&["import", "new-api", "one-api.db"]).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    let counts = json!({ "read": 10_000, "created": 10_000, "existing": 0, "left_out": 0 });
    assert_eq!(first["keys"], counts);
    assert_eq!(first["balances"]["read"], text_of(sum));
    assert_eq!(first["balances"]["carried"], text_of(sum));
    assert_eq!(first["balances"]["left"], "0");
    let limits: i64 = (1..=10_000)
        .filter(|number| number % 3 != 0)
        .map(|number| number * 2)
        .sum();
    assert_eq!(first["limits"]["carried"], text_of(limits));
    assert_eq!(net_worth(&gateway).await, sum);
    gateway.verify().await;

    let again = gateway.cli_json(&["import", "new-api", "one-api.db"]).await;
    let counts = json!({ "read": 10_000, "created": 0, "existing": 10_000, "left_out": 0 });
    assert_eq!(again["keys"], counts);
    assert_eq!(again["wallets"]["existing"], 2_000);
    assert_eq!(again["balances"], first["balances"]);
    assert_eq!(net_worth(&gateway).await, sum);
    let actions = gateway.cli_json(&["audit", "--action", "import"]).await;
    assert_eq!(actions.as_array().unwrap().len(), 1, "{actions}");

    // If a balance has changed at the source, a second import reports the difference and does not book it.
    Connection::open(&source)
        .unwrap()
        .execute("UPDATE users SET quota = quota + 5 WHERE id = 7", [])
        .unwrap();
    let changed = gateway.cli_json(&["import", "new-api", "one-api.db"]).await;
    assert_eq!(changed["balances"]["left"], "0.00001", "{changed}");
    assert_eq!(changed["leftovers"][0]["origin"], "users:7");
    assert_eq!(net_worth(&gateway).await, sum);
}

#[tokio::test]
async fn an_imported_secret_is_accepted_in_both_forms_and_pays() {
    let gateway = TestGateway::start().await;
    new_api(&gateway.folder().join("one-api.db"), 1, 1);
    let on = Connection::open(gateway.folder().join("one-api.db")).unwrap();
    on.execute("UPDATE users SET quota = 5000000", []).unwrap();
    on.execute("UPDATE tokens SET remain_quota = 1000000", [])
        .unwrap();
    let imported = gateway.cli_json(&["import", "new-api", "one-api.db"]).await;
    assert_eq!(imported["secrets"], json!({ "adopted": 1, "new": 0 }));
    for secret in [format!("sk-{}", token_key(1)), token_key(1)] {
        let id = String::new();
        let key = Key { id, secret };
        gateway.chat(&key, &ask("hello")).await.ok();
        // `/v1/balance` returns durable state, so commands see the charge too.
        assert!(gateway.usage(&key).await > 0);
    }
    let wallet = gateway.cli_json(&["wallet", "show", "user1"]).await;
    let left: i64 = wallet["balance_micro"].as_str().unwrap().parse().unwrap();
    assert!((1..10_000_000).contains(&left), "{wallet}");
    let keys = gateway.cli_json(&["key", "list"]).await;
    assert_eq!(keys[0]["limit"], "2");
    assert!(!keys.to_string().contains(&token_key(1)), "{keys}");
    gateway.verify().await;
}

#[tokio::test]
async fn an_import_that_was_killed_is_continued() {
    let gateway = TestGateway::start().await;
    let sum = new_api(&gateway.folder().join("one-api.db"), 3_000, 6_000);
    let words = [
        "--config",
        "tollgate.toml",
        "import",
        "new-api",
        "one-api.db",
        "--json",
    ];
    let process = Running::start(&words, gateway.folder(), Channel::Stderr);
    eventually("the first wallets", async || {
        (gateway.cli_json(&["wallet", "list"]).await != json!([])).then_some(())
    })
    .await;
    process.kill();
    let rest = gateway.cli_json(&["import", "new-api", "one-api.db"]).await;
    let number = |of: &str, what: &str| rest[of][what].as_u64().unwrap();
    assert_eq!(
        number("wallets", "created") + number("wallets", "existing"),
        3_000,
        "{rest}"
    );
    assert_eq!(
        number("keys", "created") + number("keys", "existing"),
        6_000,
        "{rest}"
    );
    assert!(number("wallets", "existing") > 0, "{rest}");
    assert!(number("keys", "created") > 0, "it had ended: {rest}");
    assert_eq!(net_worth(&gateway).await, sum);
    gateway.verify().await;
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one database with everything that is not carried"
)]
async fn what_cannot_be_carried_is_listed_and_what_would_be_more_powerful_is_off() {
    let gateway = TestGateway::start().await;
    let path = gateway.folder().join("one-api.db");
    new_api(&path, 4, 6);
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            r#"UPDATE users SET quota = 500000, aff_quota = 250000 WHERE id = 1;
            UPDATE users SET quota = 1000, deleted_at = '2026-01-01 00:00:00' WHERE id = 2;
            UPDATE users SET quota = -3 WHERE id = 3;
            UPDATE users SET quota = 0, status = 2 WHERE id = 4;
            UPDATE tokens SET user_id = 1, unlimited_quota = 0, remain_quota = 10;
            UPDATE tokens SET user_id = 2 WHERE id = 2;
            UPDATE tokens SET key = 'with-dash' WHERE id = 3;
            UPDATE tokens SET allow_ips = '10.0.0.1' WHERE id = 4;
            UPDATE tokens SET model_limits_enabled = 1, model_limits = 'gpt-big,other/model' WHERE id = 5;
            UPDATE tokens SET remain_quota = -7 WHERE id = 6;
            INSERT INTO redemptions VALUES (1, 'code', 1, 100, NULL), (2, 'used', 3, 100, NULL);
            INSERT INTO channels (id, type, key, name, models, model_mapping, channel_info, priority, weight) VALUES
              (1, 1, 'sk-vendor-1' || char(10) || 'sk-vendor-2', 'main', 'gpt-big,gpt-small', '{"gpt-big":"gpt-large-1"}', '{"is_multi_key":true}', 10, 3),
              (2, 18, 'a|b|c', 'split', 'spark', NULL, NULL, 0, 0),
              (3, 1, 'sk-vendor-3', 'other', 'gpt-big', NULL, NULL, 0, 0);
            UPDATE channels SET base_url = 'https://llm.example.com' WHERE id = 3;
            INSERT INTO options VALUES ('ModelRatio', '{"gpt-big":1.25,"gpt-small":0.075}'), ('CompletionRatio', '{"gpt-big":4}');
            "#,
        )
        .unwrap();
    let out = gateway
        .cli(&[
            "import",
            "new-api",
            "one-api.db",
            "--out",
            "imported.toml",
            "--json",
        ])
        .await;
    assert!(out.status.success(), "{}", out.stderr);
    let report: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        report["wallets"],
        json!({ "read": 4, "created": 3, "existing": 0, "left_out": 1 })
    );
    assert_eq!(
        report["keys"],
        json!({ "read": 6, "created": 4, "existing": 0, "left_out": 2 })
    );
    // 1 + 0.5 invitation + 0.002 deleted - 0.000006 debt + 0.0002 code.
    assert_eq!(report["balances"]["read"], "1.502194");
    assert_eq!(report["balances"]["carried"], "0.999994");
    assert_eq!(report["balances"]["left"], "0.5022");
    let reasons = report["leftovers"].to_string();
    for word in [
        "invitation",
        "deleted",
        "redeemed",
        "limited to addresses",
        "contains `-`",
        "several parts",
    ] {
        assert!(reasons.contains(word), "{word}: {reasons}");
    }
    let keys = gateway.cli_json(&["key", "list"]).await;
    let named = |name: &str| {
        let mut keys = keys.as_array().unwrap().iter();
        keys.find(|key| key["name"] == name).unwrap().clone()
    };
    assert_eq!(named("token 4")["enabled"], false);
    assert_eq!(
        named("token 5")["models"],
        json!(["openai/gpt-big", "other/model"])
    );
    assert_eq!(named("token 6")["limit"], "0");
    let owing = gateway.cli_json(&["wallet", "show", "user3"]).await;
    assert_eq!(
        (&owing["credit_used"], &owing["credit_limit"]),
        (&json!("0.000006"), &json!("0"))
    );
    assert_eq!(
        gateway.cli_json(&["wallet", "show", "user4"]).await["status"],
        "disabled"
    );

    let file = std::fs::read_to_string(gateway.folder().join("imported.toml")).unwrap();
    for part in [
        "name = \"main-1\"",
        "credential = { env = \"NEW_API_CHANNEL_1_KEY_2\" }",
        "base_url = \"https://llm.example.com/v1\"",
        "id = \"openai/gpt-big\"",
        "model = \"gpt-large-1\"",
        "input = \"2.5\"",
        "output = \"10\"",
    ] {
        assert!(file.contains(part), "{part}: {file}");
    }
    for output in [&file, &out.stdout, &out.stderr] {
        assert!(
            !output.contains("sk-vendor") && !output.contains(&token_key(1)),
            "{output}"
        );
    }
    let checked = run(
        &["check", "--config", "imported.toml", "--json"],
        gateway.folder(),
    )
    .await;
    assert!(
        checked.status.success(),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
    // An existing file is not overwritten: the import is refused before it writes anything.
    let refused = gateway
        .cli(&["import", "new-api", "one-api.db", "--out", "imported.toml"])
        .await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("exists already"),
        "{}",
        refused.stderr
    );
    gateway.verify().await;
}

#[tokio::test]
async fn a_dump_of_mysql_is_the_same_as_the_database() {
    let gateway = TestGateway::start().await;
    let mut dump = "-- MySQL dump 10.13  Distrib 8.0.36\n/*!40101 SET NAMES utf8mb4 */;\n\
        CREATE TABLE `users` (\n  `id` bigint NOT NULL AUTO_INCREMENT,\n  `username` varchar(191) DEFAULT NULL,\n\
        `password` longtext NOT NULL,\n  `status` int DEFAULT '1',\n  `quota` int DEFAULT '0',\n  `group` varchar(64) DEFAULT 'default',\n\
        `deleted_at` datetime(3) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `uni_users_username` (`username`)\n) ENGINE=InnoDB;\n"
        .to_owned();
    dump.push_str("INSERT INTO `users` VALUES (1,'o\\'neill; DROP','$2a$10$x',1,123456789,'default',NULL),(2,'zoë','y',1,-4,'vip',NULL);\n");
    dump.push_str(
        "CREATE TABLE `tokens` (\n  `id` bigint NOT NULL,\n  `user_id` bigint DEFAULT NULL,\n  `key` varchar(128) DEFAULT NULL,\n\
        `status` bigint DEFAULT '1',\n  `name` varchar(191) DEFAULT NULL,\n  `expired_time` bigint DEFAULT '-1',\n  `remain_quota` bigint,\n\
        `unlimited_quota` tinyint(1) DEFAULT NULL,\n  `model_limits_enabled` tinyint(1),\n  `model_limits` varchar(1024),\n  PRIMARY KEY (`id`)\n);\n",
    );
    let _ = writeln!(
        dump,
        "INSERT INTO `tokens` VALUES (1,1,'{}',1,'a \"b\" \\\\ c',-1,500000,0,0,''),(2,2,'{}',2,NULL,1893456000,0,1,0,NULL);",
        token_key(1),
        token_key(2)
    );
    dump.push_str("INSERT INTO `logs` VALUES (1,'never; read');\n");
    std::fs::write(gateway.folder().join("dump.sql"), &dump).unwrap();
    let report = gateway.cli_json(&["import", "new-api", "dump.sql"]).await;
    assert_eq!(report["balances"]["carried"], "246.91357");
    assert_eq!(report["limits"]["carried"], "1");
    let keys = gateway.cli_json(&["key", "list"]).await;
    assert_eq!(keys[0]["name"], "a \"b\" \\ c");
    assert_eq!(keys[1]["enabled"], false);
    assert_eq!(keys[1]["expires_at"], 1_893_456_000_000_i64);
    assert_eq!(
        gateway.cli_json(&["wallet", "show", "o'neill; DROP"]).await["balance"],
        "246.913578"
    );
    let refused = gateway.cli(&["import", "new-api", "tollgate.toml"]).await;
    assert!(
        refused
            .stderr
            .contains("neither a SQLite database nor a dump"),
        "{}",
        refused.stderr
    );
    gateway.verify().await;
}
