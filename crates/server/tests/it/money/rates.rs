//! Limits per minute in every dialect: exact headers, and errors in the envelope of the called protocol.

use crate::harness::{Dialect, TestGateway};

#[tokio::test]
async fn every_dialect_tells_the_limits_and_refuses_in_its_own_words() {
    let (gateway, _) = TestGateway::funded().await;
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let key = gateway.key("w", &["--rpm", "2", "--tpm", "100000"]).await;
            let call = || dialect.call(&key.secret, "maker/chat", dialect.ask("hello"), stream);
            let calls = gateway.upstream_calls();
            for left in ["1", "0"] {
                let answer = gateway.send(&call()).await.ok();
                for (name, value) in [
                    ("x-ratelimit-limit-requests", "2"),
                    ("x-ratelimit-remaining-requests", left),
                    ("x-ratelimit-limit-tokens", "100000"),
                ] {
                    assert_eq!(answer.header(name), Some(value), "{dialect:?} {name}");
                }
                assert!(answer.header("x-ratelimit-reset-requests").is_some());
                assert!(answer.header("x-ratelimit-reset-tokens").is_some());
                assert_eq!(answer.header("retry-after"), None);
            }
            let spent = gateway.usage(&key).await;
            let refused = gateway.send(&call()).await;
            let failure = dialect.failure(&refused);
            assert_eq!(
                failure,
                (429, "rate_limit_exceeded".to_owned()),
                "{dialect:?}"
            );
            let pause: u64 = refused.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=30).contains(&pause), "{pause}");
            assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("0"));
            // The refused call was not charged and froze nothing.
            assert_eq!(
                (gateway.usage(&key).await, gateway.frozen(&key).await),
                (spent, 0)
            );
            assert_eq!(gateway.upstream_calls(), calls + 2);
        }
    }
    gateway.verify().await;
}

#[tokio::test]
async fn spent_limits_and_dead_keys_are_refused_in_every_dialect() {
    let (gateway, _) = TestGateway::funded().await;
    for (options, status, code) in [
        (["--limit", "0"], 402, "key_limit_reached"),
        (["--tpm", "5"], 429, "rate_limit_exceeded"),
        (
            ["--expires", "2020-01-01T00:00:00Z"],
            401,
            "invalid_api_key",
        ),
    ] {
        let key = gateway.key("w", &options).await;
        for dialect in Dialect::ALL {
            let call = dialect.call(&key.secret, "maker/chat", dialect.ask("hello"), false);
            let refused = gateway.send(&call).await;
            assert_eq!(
                dialect.failure(&refused),
                (status, code.to_owned()),
                "{dialect:?} {options:?}"
            );
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
    gateway.verify().await;
}
