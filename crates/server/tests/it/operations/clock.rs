//! A wall clock that jumps under load: limits, leases, deadlines and tasks stay as they are, and only the end of
//! a key follows it (R6). The clock is played with Debian's `faketime`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use crate::harness::{CLOCK_FILE, Key, Stage, can_play_clocks};
use crate::tasks::videos::{create, ended, film, plot};

/// What the gateway's wall clock shows from now on, as `faketime` reads it.
fn set_clock(stage: &Stage, offset: &str) {
    // Replaced as a whole: the gateway reads the file whenever it looks at the clock.
    let next = stage.folder().join("clock-next");
    std::fs::write(&next, offset).unwrap();
    std::fs::rename(next, stage.folder().join(CLOCK_FILE)).unwrap();
}

async fn status(stage: &Stage, key: &Key) -> u16 {
    let body = json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": "reply with 3 words" }] });
    stage.chat(key, &body).await.status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_under_load_moves_only_the_end_of_keys() {
    if !can_play_clocks() {
        eprintln!("not played: faketime is missing");
        return;
    }
    let stage = plot().file(CLOCK_FILE, "+0d").open().await;
    let wallet = stage.wallet("acme", &["--balance", "1000"]).await;
    let wallet = wallet["id"].as_str().unwrap();
    let busy = stage.key(wallet, &[]).await;
    let counted = stage.key(wallet, &["--concurrency", "1"]).await;
    let limited = stage.key(wallet, &["--rpm", "3"]).await;
    let ending = stage.key(wallet, &["--expires", "12h"]).await;
    for _ in 0..3 {
        assert_eq!(status(&stage, &limited).await, 200);
    }
    let refused = async || {
        let body =
            json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": "more" }] });
        let answer = stage.chat(&limited, &body).await;
        let wait: Option<u64> = answer
            .header("retry-after")
            .map(|wait| wait.parse().unwrap());
        (answer.status(), wait)
    };
    let task = create(&stage, &busy, &film("a boat [polls=40]")).await;

    let (over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let load = async {
        while !over.load(Ordering::SeqCst) {
            assert_eq!(status(&stage, &busy).await, 200);
            assert_eq!(status(&stage, &counted).await, 200);
            calls.fetch_add(2, Ordering::SeqCst);
        }
    };
    let jumps = async {
        // A third comes back every twenty seconds, whatever the clock says.
        let (code, wait) = refused().await;
        assert!(
            code == 200 || wait.is_some_and(|wait| wait <= 21),
            "{code} {wait:?}"
        );
        for offset in ["-1h", "+1d", "+23h", "+0d"] {
            let before = calls.load(Ordering::SeqCst);
            set_clock(&stage, offset);
            assert_eq!(status(&stage, &busy).await, 200, "{offset}");
            let expected = if offset.contains("+1d") || offset.contains("+23h") {
                401
            } else {
                200
            };
            assert_eq!(status(&stage, &ending).await, expected, "{offset}");
            // A clock that is set ahead fills the bucket; none that is set back locks the key.
            let (code, wait) = refused().await;
            assert!(
                code == 200 || wait.is_some_and(|wait| wait <= 21),
                "{offset}: {code} {wait:?}"
            );
            while calls.load(Ordering::SeqCst) < before + 8 {
                tokio::task::yield_now().await;
            }
        }
        // The task was not late, and its claim was not lost.
        let answer = ended(&stage, &busy, &task).await;
        assert_eq!(answer.json()["status"], "done");
        over.store(true, Ordering::SeqCst);
    };
    tokio::join!(load, jumps);
    assert_eq!(stage.frozen(&busy).await, 0);
    stage.verify().await;
}
