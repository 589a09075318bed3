//! Authentication of callers: credentials of each protocol family, invalid keys, and a store that does not respond.

use std::time::Duration;

use serde_json::json;

use crate::harness::{
    Answer, Connection, GatewayBuilder, Key, Request, TestGateway, ask, eventually,
};

type Headers<'a> = &'a [(&'a str, &'a str)];

fn refused(answer: &Answer) -> bool {
    answer.status() == 401
}

#[tokio::test]
async fn each_family_takes_its_own_credentials_and_no_other() {
    let (gateway, key) = TestGateway::funded().await;
    let secret = key.secret.as_str();
    let bearer = format!("Bearer {secret}");
    let bearer = ("authorization", bearer.as_str());
    let in_query = format!("/v1beta/models?key={secret}");
    let in_query_with_more = format!("/v1beta/models?alt=json&key={secret}");
    let openai_query = format!("/v1/models?key={secret}");
    let table: &[(&str, Headers<'_>, bool)] = &[
        ("/v1/models", &[bearer], true),
        ("/v1/models", &[("Authorization", bearer.1)], true),
        ("/v1/balance", &[bearer], true),
        ("/v1/models", &[("x-api-key", secret)], false),
        ("/v1/models", &[("x-goog-api-key", secret)], false),
        (&openai_query, &[], false),
        ("/v1beta/models", &[bearer], true),
        ("/v1beta/models", &[("x-goog-api-key", secret)], true),
        ("/v1beta/models", &[("x-alpha-api-key", secret)], true),
        (
            "/v1beta/models",
            &[("x-goog-api-key", secret), bearer],
            true,
        ),
        (&in_query, &[], true),
        (&in_query_with_more, &[], true),
        ("/v1beta/models", &[("x-api-key", secret)], false),
        ("/v1/models", &[], false),
        ("/v1beta/models", &[], false),
    ];
    for (target, headers, accepted) in table {
        let request = headers
            .iter()
            .fold(Request::get(target), |it, (name, value)| {
                it.header(name, value)
            });
        let answer = gateway.send(&request).await;
        let status = if *accepted { 200 } else { 401 };
        assert_eq!(answer.status(), status, "{target} {headers:?}");
    }
}

/// If the credentials are accepted, the answer is an error about the body. Otherwise it is 401.
#[tokio::test]
async fn model_calls_of_every_family_are_let_in_by_their_own_credentials() {
    let (gateway, key) = TestGateway::funded().await;
    let secret = key.secret.as_str();
    let bearer = format!("Bearer {secret}");
    let bearer = ("authorization", bearer.as_str());
    let (api_key, goog, alpha) = ("x-api-key", "x-goog-api-key", "x-alpha-api-key");
    let generate = "/v1beta/models/maker/chat:generateContent";
    let generate_v1 = "/v1/models/maker/chat:generateContent";
    let in_query = format!("{generate}?key={secret}");
    let interactions = "/v1beta/interactions";
    let interactions_query = format!("{interactions}?key={secret}");
    let table: &[(&str, Headers<'_>, bool)] = &[
        ("/v1/chat/completions", &[bearer], true),
        ("/v1/chat/completions", &[(api_key, secret)], false),
        ("/v1/responses", &[bearer], true),
        ("/v1/responses", &[(goog, secret)], false),
        (
            "/v1/messages",
            &[(api_key, secret), ("beta-version", "2023-06-01")],
            true,
        ),
        (
            "/v1/messages",
            &[(api_key, secret), ("anthropic-version", "2023-06-01")],
            true,
        ),
        (
            "/v1/messages",
            &[bearer, ("anthropic-version", "2026-10-21")],
            true,
        ),
        ("/v1/messages", &[bearer, (api_key, secret)], true),
        ("/v1/messages", &[bearer, (api_key, "sk-tg-other")], false),
        ("/v1/messages", &[(goog, secret)], false),
        (generate, &[(goog, secret)], true),
        (generate, &[(alpha, secret)], true),
        (generate_v1, &[bearer], true),
        (&in_query, &[], true),
        (&in_query, &[(goog, "sk-tg-other")], false),
        (generate, &[(api_key, secret)], false),
        (interactions, &[(goog, secret)], true),
        (interactions, &[(alpha, secret)], true),
        (interactions, &[bearer], true),
        (&interactions_query, &[], false),
    ];
    for (target, headers, accepted) in table {
        let request = headers
            .iter()
            .fold(Request::post(target), |it, (name, value)| {
                it.header(name, value)
            });
        let answer = gateway.send(&request.body("not JSON")).await;
        let status = if *accepted { 400 } else { 401 };
        assert_eq!(
            answer.status(),
            status,
            "{target} {headers:?}: {}",
            answer.text()
        );
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

/// A request with two different credentials does not identify one caller.
#[tokio::test]
async fn credentials_that_differ_are_refused() {
    let (gateway, key) = TestGateway::funded().await;
    let other = gateway.key("w", &[]).await;
    let both = Request::get("/v1beta/models")
        .bearer(&key.secret)
        .header("x-goog-api-key", &other.secret);
    assert!(refused(&gateway.send(&both).await));
    let in_query =
        Request::get(&format!("/v1beta/models?key={}", other.secret)).bearer(&key.secret);
    assert!(refused(&gateway.send(&in_query).await));
    let twice = Request::chat(&ask("hello"))
        .bearer(&key.secret)
        .bearer(&other.secret);
    assert!(refused(&gateway.send(&twice).await));
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn a_key_that_does_not_count_is_a_401_whatever_the_reason() {
    let (gateway, _) = TestGateway::funded().await;
    let disabled = gateway.key("w", &[]).await;
    gateway.cli_json(&["key", "disable", &disabled.id]).await;
    let expired = gateway.key("w", &["--expires", "1s"]).await;
    eventually("the expiry", async || {
        refused(&gateway.get(&expired, "/v1/models").await).then_some(())
    })
    .await;
    let unknown = Key {
        id: String::new(),
        secret: format!("sk-tg-{}", "0".repeat(43)),
    };
    let odd = |secret: &str| Key {
        id: String::new(),
        secret: secret.to_owned(),
    };
    let longest = "x".repeat(10_000);
    let mut texts = Vec::new();
    for key in [
        &disabled,
        &expired,
        &unknown,
        &odd(""),
        &odd("sk tg"),
        &odd(&longest),
        &odd("' OR 1=1 --"),
    ] {
        for answer in [
            gateway.get(key, "/v1/models").await,
            gateway.get(key, "/v1/balance").await,
            gateway.chat(key, &ask("hello")).await,
        ] {
            assert_eq!(
                answer.failure(),
                (401, "invalid_api_key".to_owned()),
                "{}",
                key.secret
            );
            assert_eq!(answer.openai_error()["type"], "authentication_error");
            texts.push(answer.text().to_owned());
        }
    }
    // The message must not depend on the reason, so that nobody can probe keys.
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!(gateway.upstream_calls(), 0);
}

/// K2: a revoked key is refused at the next admission and by the balance endpoint, and by other reads within five
/// seconds.
#[tokio::test]
async fn a_revoked_key_is_refused_at_once_where_money_moves() {
    let (gateway, key) = TestGateway::funded().await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.cli_json(&["key", "disable", &key.id]).await;
    let called = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(called.failure(), (401, "invalid_api_key".to_owned()));
    assert_eq!(gateway.upstream_calls(), 1);
    assert!(refused(&gateway.get(&key, "/v1/balance").await));
    let since = std::time::Instant::now();
    eventually("a refused read", async || {
        refused(&gateway.get(&key, "/v1/models").await).then_some(())
    })
    .await;
    assert!(since.elapsed() < Duration::from_secs(30));
    gateway.cli_json(&["key", "enable", &key.id]).await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.get(&key, "/v1/balance").await.ok();
}

/// A proxy in front of the gateway may send the calls of many callers over one connection.
#[tokio::test]
async fn callers_on_one_connection_are_told_apart() {
    let (gateway, one) = TestGateway::funded().await;
    let other = gateway.key("w", &[]).await;
    let mut connection = Connection::open(gateway.address()).await;
    for (secret, status) in [
        (&one.secret, 200),
        (&one.secret, 200),
        (&other.secret, 200),
        (&"sk-tg-nobody".to_owned(), 401),
        (&one.secret, 200),
        (&other.secret, 200),
    ] {
        let request = Request::chat(&ask("hello")).bearer(secret);
        connection.send(&request).await;
        assert_eq!(connection.answer().await.status(), status);
    }
    let each = gateway.usage(&one).await / 3;
    assert!(each > 0);
    assert_eq!(gateway.usage(&one).await, 3 * each);
    assert_eq!(gateway.usage(&other).await, 2 * each);
}

/// K2: a revoked key is also refused in time on a connection that has used it before.
#[tokio::test]
async fn a_revoked_key_is_refused_in_time_on_the_connection_that_knew_it() {
    let (gateway, key) = TestGateway::funded().await;
    let mut connection = Connection::open(gateway.address()).await;
    let mut read = async || {
        let request = Request::get("/v1/models").bearer(&key.secret);
        connection.send(&request).await;
        connection.answer().await
    };
    read().await.ok();
    read().await.ok();
    gateway.cli_json(&["key", "disable", &key.id]).await;
    let since = std::time::Instant::now();
    eventually("a refused read", async || {
        refused(&read().await).then_some(())
    })
    .await;
    assert!(since.elapsed() < Duration::from_secs(30));
}

/// K2: a lookup that fails is answered with 503, never with 401.
#[tokio::test]
async fn a_store_that_cannot_be_asked_is_not_a_wrong_key() {
    let (gateway, key) = TestGateway::funded().await;
    gateway
        .database()
        .run("ALTER TABLE keys RENAME TO keys_away");
    let answer = gateway.get(&key, "/v1/models").await;
    assert_eq!(answer.failure(), (503, "service_unavailable".to_owned()));
    assert!(answer.header("retry-after").is_some());
    gateway
        .database()
        .run("ALTER TABLE keys_away RENAME TO keys");
    eventually("the store's return", async || {
        (gateway.get(&key, "/v1/models").await.status() == 200).then_some(())
    })
    .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

/// R8: while the database is locked, calls are refused within a bounded time. After that, calls succeed again.
#[tokio::test]
async fn a_locked_database_refuses_calls_for_the_moment() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("ledger", "queue_wait_ms = 2000")
        .funded()
        .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let spent = gateway.usage(&key).await;
    let lock = gateway.database().lock();
    let answer = gateway.chat(&key, &ask("hello")).await;
    assert_eq!(answer.failure(), (503, "service_unavailable".to_owned()));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(
        gateway.upstream_calls(),
        1,
        "nothing was sent for a call without a hold"
    );
    drop(lock);
    eventually("an admitted call", async || {
        (gateway.chat(&key, &ask("hello")).await.status() == 200).then_some(())
    })
    .await;
    assert_eq!(gateway.usage(&key).await, 2 * spent);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn unknown_headers_are_ignored() {
    let (gateway, key) = TestGateway::funded().await;
    let request = Request::chat(&ask("say exactly: fine"))
        .bearer(&key.secret)
        .header("x-stainless-retry-count", "1")
        .header("openai-organization", "org-caller")
        .header("cookie", "")
        .header("user-agent", "one")
        .header("user-agent", "two")
        .header("accept", "application/json");
    let answer = gateway.send(&request).await.ok().json();
    assert_eq!(answer["choices"][0]["message"]["content"], json!("fine"));
}
