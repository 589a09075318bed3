use super::*;

const TEAMS: &str = r#"
        CREATE TABLE "LiteLLM_VerificationToken" (token, team_id, user_id, models, expires, max_budget, spend);
        CREATE TABLE "LiteLLM_TeamTable" (team_id, models, max_budget, spend);
        CREATE TABLE "LiteLLM_UserTable" (user_id, models);
        INSERT INTO "LiteLLM_TeamTable" VALUES
          ('limited', '["gpt-mini","openai/*"]', 10, 0), ('open', '[]', 10, 0), ('broken', 'x', 10, 0),
          ('nan', '[]', 'NaN', 0);
        INSERT INTO "LiteLLM_UserTable" VALUES ('ann', '["gpt-mini"]'), ('bob', '[]');
    "#;

/// Reads keys with these teams, users, model lists, expiries and budgets.
async fn read_keys(keys: &[[Option<&str>; 5]]) -> ImportPlan {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("litellm.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(TEAMS).unwrap();
    for (number, [team, user, models, expires, budget]) in keys.iter().enumerate() {
        let token = format!("sk-{number}");
        let insert = r#"INSERT INTO "LiteLLM_VerificationToken" VALUES (?, ?, ?, ?, ?, ?, 0)"#;
        let values = (token, team, user, models, expires, budget);
        database.execute(insert, values).unwrap();
    }
    plan_of(&path, Choices::default()).await
}

async fn plan_of(path: &std::path::Path, choices: Choices) -> ImportPlan {
    let mut config = crate::import::litellm::config::Config::default();
    let place = path.to_str().unwrap();
    let tables = crate::import::litellm::database::read(place, &mut config);
    let tables = tables.await.unwrap();
    let mut plan = ImportPlan::of(SYSTEM);
    let now = UnixMs::new(0);
    read(&tables, "UTC", choices, now, &mut plan);
    plan
}

/// A team, a user, the key's list, and the models that the key may call. `None` if the key is disabled.
type Case<'c> = (
    Option<&'c str>,
    Option<&'c str>,
    &'c str,
    Option<&'c [&'c str]>,
);

#[tokio::test]
async fn a_key_may_call_what_both_it_and_its_team_allow() {
    let cases: [Case<'_>; 14] = [
        (Some("limited"), None, "[]", Some(&["gpt-mini", "openai/*"])),
        (
            Some("limited"),
            None,
            r#"["*"]"#,
            Some(&["gpt-mini", "openai/*"]),
        ),
        (
            Some("limited"),
            None,
            r#"["all-proxy-models"]"#,
            Some(&["gpt-mini", "openai/*"]),
        ),
        (
            Some("limited"),
            None,
            r#"["all-team-models"]"#,
            Some(&["gpt-mini", "openai/*"]),
        ),
        (
            Some("limited"),
            None,
            r#"["gpt-mini","gpt-big"]"#,
            Some(&["gpt-mini"]),
        ),
        (
            Some("limited"),
            None,
            r#"["openai/a"]"#,
            Some(&["openai/a"]),
        ),
        (Some("limited"), None, r#"["gpt-big"]"#, None),
        (Some("open"), None, r#"["gpt-big"]"#, Some(&["gpt-big"])),
        (Some("open"), Some("ann"), "[]", Some(&[])),
        (Some("broken"), None, "[]", None),
        (Some("gone"), None, "[]", None),
        (None, Some("ann"), "[]", Some(&["gpt-mini"])),
        (None, Some("bob"), "broken", None),
        (None, None, r#"["all-team-models"]"#, None),
    ];
    let keys = cases.map(|(team, user, models, _)| [team, user, Some(models), None, None]);
    let plan = read_keys(&keys).await;
    assert_eq!(plan.keys.len(), cases.len());
    for ((team, user, models, expected), key) in cases.into_iter().zip(&plan.keys) {
        let case = format!("{team:?} {user:?} {models}");
        assert_eq!(key.is_enabled, expected.is_some(), "{case}");
        let is_reported = plan
            .leftovers
            .iter()
            .any(|it| it.origin == key.origin && it.reason.contains("created disabled"));
        assert_eq!(is_reported, expected.is_none(), "{case}");
        let ids = expected.unwrap_or_default().iter();
        let ids = ids.map(|name| plan.catalog.known_id(SYSTEM, name));
        assert_eq!(key.limits.models, ModelList::new(ids).unwrap(), "{case}");
    }
}

#[tokio::test]
async fn a_key_whose_limits_cannot_be_read_is_disabled() {
    let open = Some("open");
    let plan = read_keys(&[
        [open, None, None, Some("2030-01-01 00:00:00"), Some("5")],
        [open, None, None, Some("soon"), None],
        [open, None, None, None, Some("NaN")],
        [open, None, None, None, Some("-1")],
    ])
    .await;
    let enabled: Vec<bool> = plan.keys.iter().map(|key| key.is_enabled).collect();
    assert_eq!(enabled, [true, false, false, false]);
    for key in plan.keys.iter().filter(|key| !key.is_enabled) {
        let mut leftovers = plan.leftovers.iter();
        assert!(
            leftovers.any(|it| it.origin == key.origin && it.reason.contains("cannot be read"))
        );
    }
    let wallet = plan.wallets.iter().find(|it| it.origin == "teams:nan");
    assert!(wallet.is_some_and(|it| !it.is_enabled && it.balance == Micro::ZERO));
}

/// Each token names its team and its user: `sk-one-ann` belongs to the team `one` and to the user `ann`.
const RATES: &str = r#"
        CREATE TABLE "LiteLLM_VerificationToken" (token, key_alias, team_id, user_id, rpm_limit, tpm_limit, max_parallel_requests);
        CREATE TABLE "LiteLLM_TeamTable" (team_id, rpm_limit, tpm_limit, max_parallel_requests);
        CREATE TABLE "LiteLLM_UserTable" (user_id, rpm_limit, tpm_limit, max_parallel_requests);
        INSERT INTO "LiteLLM_TeamTable" VALUES ('one', 60, 1000, 4), ('two', 30, NULL, NULL), ('none', 0, NULL, NULL),
          ('empty', 5, NULL, NULL), ('open', NULL, NULL, NULL);
        INSERT INTO "LiteLLM_UserTable" VALUES ('ann', NULL, 500, NULL), ('bob', 7, NULL, 2);
        INSERT INTO "LiteLLM_VerificationToken" VALUES
          ('sk-1', 'own', 'one', NULL, 100, 200, NULL), ('sk-2', 'first', 'two', NULL, 10, NULL, NULL),
          ('sk-3', 'second', 'two', 'ann', NULL, NULL, NULL), ('sk-4', 'shut', 'none', NULL, NULL, NULL, NULL),
          ('sk-5', 'alone', NULL, 'bob', NULL, 9, NULL), ('sk-6', 'free', 'open', NULL, NULL, NULL, NULL),
          ('sk-7', 'session', 'litellm-dashboard', 'bob', NULL, NULL, NULL);
    "#;

#[tokio::test]
async fn a_key_gets_no_higher_rates_than_its_team_and_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("litellm.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(RATES).unwrap();
    let plan = plan_of(&path, Choices::default()).await;
    let rates = plan.keys.iter().map(|key| {
        let limits = &key.limits;
        let name = key.name.as_deref().unwrap_or_default();
        (name, limits.rpm, limits.tpm, limits.concurrency)
    });
    assert_eq!(
        rates.collect::<Vec<_>>(),
        [
            ("own", Some(60), Some(200), Some(4)),
            ("first", Some(10), None, None),
            ("second", Some(30), Some(500), None),
            ("shut", None, None, None),
            ("alone", Some(7), Some(9), Some(2)),
            ("free", None, None, None),
        ]
    );
    let enabled = plan.keys.iter().map(|key| key.is_enabled);
    let enabled: Vec<_> = enabled.collect();
    assert_eq!(enabled, [true, true, true, false, true, true]);
    // A limit that several keys shared, or that no key has, cannot be carried exactly.
    let reports = |origin: &str| {
        let leftovers = plan.leftovers.iter().filter(|it| it.origin == origin);
        let rates = leftovers.filter(|it| it.reason.contains("pm_limit"));
        rates.map(|it| it.reason.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        reports("teams:two"),
        ["its 2 keys shared one rpm_limit of 30; here each of them may use it alone"]
    );
    assert_eq!(
        reports("teams:empty"),
        ["its rpm_limit of 5 is not carried: only keys have such limits here, and it has none"]
    );
    for origin in ["teams:one", "teams:open", "users:ann", "users:bob"] {
        assert_eq!(reports(origin), [""; 0], "{origin}");
    }
}

#[tokio::test]
async fn the_note_about_budgets_says_how_they_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("litellm.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(TEAMS).unwrap();
    for (budgets_as, word, other) in [
        (BudgetsAs::Balance, "read as balances", "credit lines"),
        (BudgetsAs::CreditLine, "read as credit lines", "balances"),
    ] {
        let choices = Choices {
            budgets_as,
            ..Choices::default()
        };
        let notes = plan_of(&path, choices).await.notes.join(" ");
        assert!(
            notes.contains(word) && !notes.contains(other),
            "{budgets_as:?}: {notes}"
        );
    }
}

#[test]
fn a_token_is_the_digest_of_the_key() {
    let stored = "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b";
    assert_eq!(digest(stored), Some(Digest::of(b"sk-1234")));
    assert_eq!(digest("sk-1234"), Some(Digest::of(b"sk-1234")));
    for other in ["", "hashed", &stored[1..], &stored.replace('8', "x")] {
        assert_eq!(digest(other), None, "{other}");
    }
}
