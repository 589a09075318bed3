//! A wall clock that jumps under load moves the expiry of keys, but not leases, deadlines and tasks (R6). If it is set
//! back, no key is locked out by its limits per minute. Debian's `faketime` provides the clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use crate::admin::{AdminClient, with_token};
use crate::harness::{CLOCK_FILE, GatewayBuilder, Key, TestGateway, can_play_clocks};
use crate::tasks::videos::{builder, create, video_body, wait_for_end};

/// Sets the gateway's wall clock, in the notation of `faketime`.
fn set_clock(gateway: &TestGateway, offset: &str) {
    // Rename the new file into place: the gateway reads the file whenever it reads the clock.
    let next = gateway.folder().join("clock-next");
    std::fs::write(&next, offset).unwrap();
    std::fs::rename(next, gateway.folder().join(CLOCK_FILE)).unwrap();
}

async fn status(gateway: &TestGateway, key: &Key) -> u16 {
    let body = json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": "reply with 3 words" }] });
    gateway.chat(key, &body).await.status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_under_load_moves_only_the_end_of_keys() {
    if !can_play_clocks() {
        eprintln!("not played: faketime is missing");
        return;
    }
    let gateway = builder().file(CLOCK_FILE, "+0d").start().await;
    let wallet = gateway.wallet("acme", &["--balance", "1000"]).await;
    let wallet = wallet["id"].as_str().unwrap();
    let busy = gateway.key(wallet, &[]).await;
    let counted = gateway.key(wallet, &["--concurrency", "1"]).await;
    let limited = gateway.key(wallet, &["--rpm", "3"]).await;
    let ending = gateway.key(wallet, &["--expires", "12h"]).await;
    for _ in 0..3 {
        assert_eq!(status(&gateway, &limited).await, 200);
    }
    let refused = async || {
        let body =
            json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": "more" }] });
        let answer = gateway.chat(&limited, &body).await;
        let wait: Option<u64> = answer
            .header("retry-after")
            .map(|wait| wait.parse().unwrap());
        (answer.status(), wait)
    };
    let task = create(&gateway, &busy, &video_body("a boat [polls=40]")).await;

    let (over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let load = async {
        while !over.load(Ordering::SeqCst) {
            assert_eq!(status(&gateway, &busy).await, 200);
            assert_eq!(status(&gateway, &counted).await, 200);
            calls.fetch_add(2, Ordering::SeqCst);
        }
    };
    let jumps = async {
        // Every twenty seconds, one of the three calls per minute becomes available again.
        let (code, wait) = refused().await;
        assert!(
            code == 200 || wait.is_some_and(|wait| wait <= 21),
            "{code} {wait:?}"
        );
        for offset in ["-1h", "+1d", "+23h", "+0d"] {
            let before = calls.load(Ordering::SeqCst);
            set_clock(&gateway, offset);
            assert_eq!(status(&gateway, &busy).await, 200, "{offset}");
            let expected = if offset.contains("+1d") || offset.contains("+23h") {
                401
            } else {
                200
            };
            assert_eq!(status(&gateway, &ending).await, expected, "{offset}");
            // A clock that is set forward may refill the bucket. A clock that is set back does not lock the key.
            let (code, wait) = refused().await;
            assert!(
                code == 200 || wait.is_some_and(|wait| wait <= 21),
                "{offset}: {code} {wait:?}"
            );
            while calls.load(Ordering::SeqCst) < before + 8 {
                tokio::task::yield_now().await;
            }
        }
        // The task met its deadlines and kept its claim.
        let answer = wait_for_end(&gateway, &busy, &task).await;
        assert_eq!(answer.json()["status"], "done");
        over.store(true, Ordering::SeqCst);
    };
    tokio::join!(load, jumps);
    assert_eq!(gateway.frozen(&busy).await, 0);
    gateway.verify().await;
}

/// A window that is set through the API ends at midnight of its time zone.
#[tokio::test]
async fn a_window_of_the_api_ends_at_midnight_of_its_zone() {
    /// The beginning of 2 March 2027 in India.
    const MIDNIGHT_MS: i64 = 1_803_925_800_000;
    let gateway = with_token(GatewayBuilder::default()).file(CLOCK_FILE, "2027-03-01 12:00:00");
    let gateway = gateway.start().await;
    if !can_play_clocks() || gateway.database().is_shared() {
        eprintln!("not played: faketime is missing, or the clock is the database's");
        return;
    }
    gateway.wallet("w", &["--balance", "1000"]).await;
    let admin = AdminClient::new(&gateway);
    let window = json!({ "amount": "0.0103", "per": "day", "time_zone": "Asia/Kolkata" });
    let made = json!({ "wallet": "w", "window": window });
    let made = admin.post("/keys", &made).await;
    assert_eq!(made["window"]["resets_at"], MIDNIGHT_MS);
    let key = Key {
        id: made["id"].as_str().unwrap().to_owned(),
        secret: made["secret"].as_str().unwrap().to_owned(),
    };
    let path = format!("/keys/{}", key.id);
    assert_eq!(status(&gateway, &key).await, 200);
    // Make calls until the next one no longer fits into the window.
    let mut calls = 0;
    while status(&gateway, &key).await == 200 {
        calls += 1;
        assert!(calls < 1_000, "the window has no end");
    }
    for (clock, expected) in [("2027-03-01 18:29:59", 402), ("2027-03-01 18:30:00", 200)] {
        set_clock(&gateway, clock);
        assert_eq!(status(&gateway, &key).await, expected, "{clock}");
    }
    let shown = admin.get(&path).await;
    let day_ms = 24 * 3600 * 1000;
    assert_eq!(shown["window"]["resets_at"], MIDNIGHT_MS + day_ms);
    gateway.verify().await;
}
