//! `tollgate import litellm`: imports `LiteLLM`'s database and its configuration file.

use serde_json::{Value, json};

use super::imports::{net_worth, text_of};
use crate::harness::{Database, Key, Output, TestGateway, ask, run, run_in};

/// The tables that the import reads, with the column types of `LiteLLM`'s schema.
const TABLES: &str = r#"
CREATE TABLE "LiteLLM_BudgetTable" ("budget_id" text PRIMARY KEY, "max_budget" double precision, "soft_budget" double precision,
  "max_parallel_requests" integer, "tpm_limit" bigint, "rpm_limit" bigint, "budget_duration" text, "budget_reset_at" timestamp(3),
  "allowed_models" text[]);
CREATE TABLE "LiteLLM_TeamTable" ("team_id" text PRIMARY KEY, "team_alias" text, "organization_id" text, "max_budget" double precision,
  "spend" double precision NOT NULL DEFAULT 0, "models" text[], "blocked" boolean NOT NULL DEFAULT false, "budget_duration" text,
  "budget_reset_at" timestamp(3), "members_with_roles" jsonb NOT NULL DEFAULT '{}', "max_parallel_requests" integer, "tpm_limit" bigint,
  "rpm_limit" bigint);
CREATE TABLE "LiteLLM_UserTable" ("user_id" text PRIMARY KEY, "user_alias" text, "user_email" text, "password" text,
  "max_budget" double precision, "spend" double precision NOT NULL DEFAULT 0, "budget_duration" text, "budget_reset_at" timestamp(3),
  "models" text[]);
CREATE TABLE "LiteLLM_OrganizationTable" ("organization_id" text PRIMARY KEY, "organization_alias" text, "budget_id" text,
  "spend" double precision NOT NULL DEFAULT 0);
CREATE TABLE "LiteLLM_VerificationToken" ("token" text PRIMARY KEY, "key_name" text, "key_alias" text,
  "spend" double precision NOT NULL DEFAULT 0, "expires" timestamp(3), "models" text[], "aliases" jsonb NOT NULL DEFAULT '{}',
  "user_id" text, "team_id" text, "permissions" jsonb NOT NULL DEFAULT '{}', "max_parallel_requests" integer, "metadata" jsonb,
  "blocked" boolean, "tpm_limit" bigint, "rpm_limit" bigint, "max_budget" double precision, "budget_duration" text,
  "budget_reset_at" timestamp(3), "allowed_routes" text[] DEFAULT '{}', "model_max_budget" jsonb NOT NULL DEFAULT '{}', "budget_id" text);
CREATE TABLE "LiteLLM_DeprecatedVerificationToken" ("id" text PRIMARY KEY, "token" text, "active_token_id" text, "revoke_at" timestamp(3));
CREATE TABLE "LiteLLM_ProxyModelTable" ("model_id" text PRIMARY KEY, "model_name" text NOT NULL, "litellm_params" jsonb NOT NULL,
  "model_info" jsonb);
CREATE TABLE "LiteLLM_CredentialsTable" ("credential_id" text PRIMARY KEY, "credential_name" text NOT NULL UNIQUE,
  "credential_values" jsonb NOT NULL, "credential_info" jsonb);
CREATE TABLE "LiteLLM_Config" ("param_name" text PRIMARY KEY, "param_value" jsonb);
"#;

/// The first token is the digest of `sk-1234`, the example of a key in `LiteLLM`'s documentation.
const ROWS: &str = r#"
INSERT INTO "LiteLLM_Config" VALUES ('litellm_settings', '{"timezone": "Europe/Berlin"}');
INSERT INTO "LiteLLM_BudgetTable" ("budget_id", "max_budget", "rpm_limit") VALUES ('shared', 20, 7);
INSERT INTO "LiteLLM_TeamTable" ("team_id", "team_alias", "max_budget", "spend", "models") VALUES
  ('t-1', 'shop', 100, 12.345678901234567, '{gpt-big}'), ('t-2', 'over', 5, 6.5, NULL), ('t-3', 'free', NULL, 3, NULL);
UPDATE "LiteLLM_TeamTable" SET "tpm_limit" = 400, "rpm_limit" = 9 WHERE "team_id" = 't-3';
INSERT INTO "LiteLLM_UserTable" ("user_id", "user_email", "max_budget", "spend") VALUES
  ('u-1', 'ann@example.com', 10, 0.30000000000000004), ('u-2', 'bob@example.com', 4, 1);
INSERT INTO "LiteLLM_OrganizationTable" VALUES ('o-1', 'all', 'shared', 1);
INSERT INTO "LiteLLM_VerificationToken" ("token", "key_name", "key_alias", "team_id", "user_id", "max_budget", "spend", "budget_duration", "models", "blocked", "budget_id", "expires") VALUES
  ('88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b', 'sk-...1234', 'first', 't-1', 'u-2', 10, 2.5, NULL, '{all-team-models}', NULL, NULL, NULL),
  (encode(sha256('sk-monthly'), 'hex'), 'sk-...thly', 'monthly', NULL, 'u-1', 30, 1, '30d', '{}', false, NULL, '2027-12-31 00:00:00'),
  (encode(sha256('sk-blocked'), 'hex'), 'sk-...cked', 'blocked', 't-3', NULL, NULL, 0, NULL, '{}', true, 'shared', NULL),
  (encode(sha256('sk-nobody'), 'hex'), 'sk-...body', 'nobody', NULL, NULL, NULL, 0, NULL, '{}', NULL, NULL, NULL),
  (encode(sha256('sk-console'), 'hex'), 'sk-...sole', 'session', 'litellm-dashboard', NULL, NULL, 0, NULL, '{}', NULL, NULL, NULL),
  ('neither', NULL, 'odd', 't-1', NULL, NULL, 0, NULL, '{}', NULL, NULL, NULL);
INSERT INTO "LiteLLM_DeprecatedVerificationToken" VALUES ('d', encode(sha256('sk-before'), 'hex'),
  '88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b', '2099-01-01 00:00:00');
INSERT INTO "LiteLLM_CredentialsTable" VALUES ('c-1', 'named', '{"api_key": "c2VhbGVk", "api_base": "https://named.example/v1"}', '{}');
INSERT INTO "LiteLLM_ProxyModelTable" VALUES
  ('m-0', 'by-name', '{"model": "openai/by-name-1", "litellm_credential_name": "named"}', '{}'),
  ('m-1', 'gpt-big', '{"model": "openai/gpt-large-1", "api_key": "c2VhbGVk", "input_cost_per_token": 2e-07, "output_cost_per_token": "8e-7"}',
   '{"mode": "chat", "max_input_tokens": 100000, "max_output_tokens": 8000}'),
  ('m-2', 'sealed', '{"model": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXqybowonDo4mKAsgSRpzg43XZXgNZf5w="}', '{}'),
  ('m-3', 'locked', '{"model": "BBECAwQFBgcICQoLDA0ODxAREhMUFRYXqybowonDo4mKAsgSRpzg43XZXgNZf5w="}', '{}');
"#;

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one database with everything that is carried"
)]
async fn teams_users_and_keys_of_a_database_arrive_with_what_is_left_of_their_budgets() {
    let Some(theirs) = Database::shared() else {
        return;
    };
    theirs.run(TABLES);
    theirs.run(ROWS);
    let gateway = TestGateway::start().await;
    let words = [
        "--config",
        "tollgate.toml",
        "import",
        "litellm",
        "env:DSN",
        "--json",
    ];
    let words = [
        &words[..],
        &["--credit-line", "9", "--out", "imported.toml"],
    ]
    .concat();
    let dsn = theirs.url();
    let environment = [("DSN", dsn.as_str()), ("LITELLM_SALT_KEY", "salt-key-1")];
    let output = run_in(&words, gateway.folder(), &environment).await;
    let imported = report(&output);
    assert_eq!(
        imported["keys"],
        json!({ "read": 6, "created": 4, "existing": 0, "left_out": 2 }),
        "{imported}"
    );
    assert_eq!(imported["secrets"], json!({ "adopted": 4, "new": 0 }));
    // 87.654321098765 + (-1.5) + 9.7. The negative balance of the team that overspent is not carried over.
    assert_eq!(imported["balances"]["read"], "95.854321098765");
    assert_eq!(imported["balances"]["carried"], "97.354321");
    assert_eq!(imported["balances"]["left"], "-1.5");
    assert_eq!(imported["balances"]["rounding"], "0.000000098765");
    assert_eq!(imported["limits"]["carried"], "27.5");
    let wallet = |name: &'static str| async { gateway.cli_json(&["wallet", "show", name]).await };
    assert_eq!(wallet("shop").await["balance"], "87.654321");
    assert_eq!(wallet("ann@example.com").await["balance"], "9.7");
    assert_eq!(wallet("over").await["balance"], "0");
    assert_eq!(wallet("free").await["credit_limit"], "9");
    let keys = gateway.cli_json(&["key", "list"]).await;
    let key = |name: &str| {
        let mut keys = keys.as_array().unwrap().iter();
        keys.find(|key| key["name"] == name).unwrap().clone()
    };
    assert_eq!(key("first")["limit"], "7.5");
    assert_eq!(key("first")["models"], json!(["openai/gpt-big"]));
    let window = &key("monthly")["window"];
    assert_eq!(
        (&window["amount"], &window["per"]),
        (&json!("30"), &json!("month")),
        "{window}"
    );
    assert_eq!(window["time_zone"], "Europe/Berlin");
    assert!(key("monthly")["expires_at"].is_i64());
    assert_eq!(
        (&key("blocked")["enabled"], &key("blocked")["limit"]),
        (&json!(false), &json!("20"))
    );
    assert_eq!(
        (&key("blocked")["rpm_limit"], &key("blocked")["tpm_limit"]),
        (&json!(7), &json!(400))
    );
    // A caller's current secret and its secret before the rotation are still accepted.
    for secret in ["sk-1234", "sk-before"] {
        let key = Key {
            id: String::new(),
            secret: secret.to_owned(),
        };
        assert_eq!(
            gateway.get(&key, "/v1/balance").await.status(),
            200,
            "{secret}"
        );
        let refused = gateway.chat(&key, &ask("x")).await;
        assert_eq!(refused.status(), 404, "{}", refused.text());
    }
    let file = std::fs::read_to_string(gateway.folder().join("imported.toml")).unwrap();
    for part in [
        "model = \"gpt-large-1\"",
        "input = \"0.2\"",
        "output = \"0.8\"",
        "max_output_tokens = 8000",
        "model = \"sk-test\"",
        "base_url = \"https://named.example/v1\"",
        "credential = { env = \"LITELLM_NAMED_KEY\" }",
    ] {
        assert!(file.contains(part), "{part}: {file}");
    }
    let reasons = imported["leftovers"].to_string();
    for word in [
        "console",
        "neither a digest",
        "more was spent",
        "used in this period",
        "model locked: it is sealed",
        "a budget of 4",
    ] {
        assert!(reasons.contains(word), "{word}: {reasons}");
    }
    let words: Vec<&str> = words
        .into_iter()
        .filter(|word| !["--out", "imported.toml"].contains(word))
        .collect();
    let again = report(&run_in(&words, gateway.folder(), &environment).await);
    assert_eq!(again["keys"]["existing"], 4, "{again}");
    assert_eq!(again["balances"], imported["balances"]);
    gateway.verify().await;
}

/// 500 teams with twenty keys each. Two of three keys have a budget of their own.
const MANY: &str = r#"
INSERT INTO "LiteLLM_TeamTable" ("team_id", "team_alias", "max_budget", "spend")
  SELECT 't-' || n, 'team ' || n, 100, n * 0.001 FROM generate_series(1, 500) AS n;
INSERT INTO "LiteLLM_VerificationToken" ("token", "key_name", "key_alias", "team_id", "max_budget", "spend", "models")
  SELECT encode(sha256(('sk-many-' || n)::bytea), 'hex'), 'sk-...' || n, 'key ' || n, 't-' || (n % 500 + 1),
         CASE WHEN n % 3 = 0 THEN NULL ELSE 10 END, n * 0.0001, '{}'
  FROM generate_series(1, 10000) AS n;
"#;

#[tokio::test]
async fn ten_thousand_keys_of_a_database_arrive_to_the_micro_credit_and_only_once() {
    let Some(theirs) = Database::shared() else {
        return;
    };
    theirs.run(TABLES);
    theirs.run(MANY);
    let gateway = TestGateway::start().await;
    let words = [
        "--config",
        "tollgate.toml",
        "import",
        "litellm",
        "env:DSN",
        "--json",
    ];
    let dsn = theirs.url();
    let import = async || report(&run_in(&words, gateway.folder(), &[("DSN", dsn.as_str())]).await);
    let imported = import().await;
    let counts = json!({ "read": 10_000, "created": 10_000, "existing": 0, "left_out": 0 });
    assert_eq!(imported["keys"], counts, "{}", imported["leftovers"][0]);
    let sum: i64 = (1..=500).map(|n| 100_000_000 - n * 1_000).sum();
    assert_eq!(imported["balances"]["read"], text_of(sum));
    assert_eq!(imported["balances"]["carried"], text_of(sum));
    assert_eq!(imported["balances"]["left"], "0");
    let limited = (1..=10_000_i64).filter(|n| n % 3 != 0);
    let limits: i64 = limited.map(|n| 10_000_000 - n * 100).sum();
    assert_eq!(imported["limits"]["carried"], text_of(limits));
    assert_eq!(net_worth(&gateway).await, sum);
    gateway.verify().await;

    let again = import().await;
    let counts = json!({ "read": 10_000, "created": 0, "existing": 10_000, "left_out": 0 });
    assert_eq!(again["keys"], counts);
    assert_eq!(again["balances"], imported["balances"]);
    assert_eq!(net_worth(&gateway).await, sum);
    gateway.verify().await;
}

#[tokio::test]
async fn a_configuration_file_becomes_channels_and_models_without_a_credential() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "config.yaml",
        "\
include: [more.yaml]
model_list:
  - model_name: gpt-big
    litellm_params: {model: openai/gpt-large-1, api_key: os.environ/MY_OPENAI, weight: 2, input_cost_per_token: 2e-07, output_cost_per_token: 0.0000008}
    model_info: &info {mode: chat, max_input_tokens: 100000, max_output_tokens: 8000}
  - model_name: gpt-big
    litellm_params: {model: openai/big, api_base: 'https://llm.example.com/v1', api_key: sk-literal-secret}
    model_info: *info
  - model_name: anything
    litellm_params: {model: 'openrouter/*'}
  - model_name: in-a-cloud
    litellm_params: {model: nobody-knows/x}
router_settings:
  model_group_alias: {best: gpt-big}
litellm_settings:
  fallbacks: [{gpt-big: [other]}]
",
    );
    write(
        "more.yaml",
        "model_list:\n  - model_name: vectors\n    litellm_params: {model: mistral/embed-1}\n    model_info: {mode: embedding}\n",
    );
    write("t.toml", "");
    let words = [
        "import",
        "litellm",
        "config.yaml",
        "--config",
        "t.toml",
        "--out",
        "out.toml",
        "--json",
    ];
    let output = run(&words, folder.path()).await;
    let imported = report(&output);
    assert_eq!(
        (&imported["channels"], &imported["models"]),
        (&json!(4), &json!(2)),
        "{imported}"
    );
    let variables = imported["variables"].as_object().unwrap();
    assert!(
        variables.contains_key("MY_OPENAI") && variables.contains_key("LITELLM_MODEL_LIST_2_KEY"),
        "{imported}"
    );
    let file = std::fs::read_to_string(folder.path().join("out.toml")).unwrap();
    for part in [
        "preset = \"openai-compatible\"",
        "base_url = \"https://llm.example.com/v1\"",
        "weight = 2",
        "price = { input = \"0.2\", output = \"0.8\" }",
        "kind = \"embedding\"",
        "credential = { env = \"LITELLM_MODEL_LIST_2_KEY\" }",
        "# The catalog knows no models of this vendor",
    ] {
        assert!(file.contains(part), "{part}: {file}");
    }
    assert!(!file.contains("sk-literal") && !output.stdout.contains("sk-literal"));
    let reasons = imported["leftovers"].to_string();
    for word in ["nobody-knows", "is a pattern", "models have one id"] {
        assert!(reasons.contains(word), "{word}: {reasons}");
    }
    let checked = run(&["check", "--config", "out.toml", "--json"], folder.path()).await;
    assert!(
        checked.status.success(),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
}

#[tokio::test]
async fn keys_of_openrouter_get_new_secrets_in_a_file_of_their_own() {
    let gateway = TestGateway::start().await;
    let write = |name: &str, text: &str| std::fs::write(gateway.folder().join(name), text).unwrap();
    write(
        "keys.json",
        r#"{"data":[{"hash":"aa","name":"shop","label":"sk-or-v1-a...b","disabled":false,"limit":10,"limit_remaining":7.5,"limit_reset":null},
                    {"hash":"bb","name":"ops","label":"x","disabled":true,"limit":null,"limit_remaining":null}]}"#,
    );
    write(
        "credits.json",
        r#"{"data":{"total_credits":100.5,"total_usage":25.75}}"#,
    );
    let words = [
        "import",
        "openrouter",
        "keys.json",
        "credits.json",
        "--json",
    ];
    let refused = gateway.cli(&words).await;
    assert!(
        refused.stderr.contains("--secrets FILE"),
        "{}",
        refused.stderr
    );
    let words = [&words[..], &["--secrets", "secrets.txt"]].concat();
    let imported = report(&gateway.cli(&words).await);
    assert_eq!(imported["secrets"], json!({ "adopted": 0, "new": 2 }));
    assert_eq!(
        gateway.cli_json(&["wallet", "show", "openrouter"]).await["balance"],
        "74.75"
    );
    let list = std::fs::read_to_string(gateway.folder().join("secrets.txt")).unwrap();
    let line = list.lines().find(|line| line.contains("\tshop\t")).unwrap();
    let secret = line.rsplit('\t').next().unwrap().to_owned();
    let id = line.split('\t').next().unwrap().to_owned();
    let key = Key { id, secret };
    gateway.chat(&key, &ask("hello")).await.ok();
    assert!(!imported.to_string().contains(&key.secret));
    // A second run creates no second secret.
    let again = report(&gateway.cli(&words).await);
    assert_eq!(again["keys"]["existing"], 2);
    assert_eq!(
        std::fs::read_to_string(gateway.folder().join("secrets.txt")).unwrap(),
        list
    );
    gateway.verify().await;
}
