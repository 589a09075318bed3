//! Tests a power cut, which loses unsynced writes. `kill -9` cannot show this, because the page cache survives it.

use std::process::Stdio;

use store::Store;

use crate::trace::Trace;
use crate::{ANSWERS, Scene, assert_clean, fund};

const CUTS: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_promised_survives_a_power_cut_and_the_rest_is_a_clean_prefix() {
    if !Trace::is_possible() {
        eprintln!("not played: strace is missing, or may not watch here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene {
        folder: folder.path().join("before"),
        server: None,
        node: None,
    };
    std::fs::create_dir(&scene.folder).unwrap();
    let key = fund(&scene).await;
    let found: Vec<_> = std::fs::read_dir(&scene.folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    let traced = folder.path().join("trace");
    let mut victim = Trace::command(&traced);
    victim.arg(std::env::current_exe().unwrap());
    scene.play_victim(&mut victim);
    let status = victim.env(ANSWERS, "150").stdout(Stdio::null()).status();
    assert!(status.unwrap().success());

    let trace = Trace::read(&traced);
    let first = (0..trace.len())
        .find(|by| trace.said(*by, "spent ").is_some())
        .expect("the victim has answered");
    // The seed is arbitrary, but fixed, so that a failure can be repeated.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut chance = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    for cut in 0..CUTS {
        let by = first + chance() % (trace.len() - first);
        let promised: i64 = trace.said(by, "spent ").unwrap().parse().unwrap();
        let after = Scene {
            folder: folder.path().join(format!("after-{cut}")),
            ..scene.clone()
        };
        std::fs::create_dir(&after.folder).unwrap();
        // The index of the log is left out: SQLite never syncs it, and rebuilds it.
        let left = trace.after_a_power_cut(by, &found, &mut chance);
        for (path, bytes) in left {
            if path.starts_with(&scene.folder) && !path.to_string_lossy().ends_with("-shm") {
                std::fs::write(after.folder.join(path.file_name().unwrap()), bytes).unwrap();
            }
        }
        let (store, _) = Store::open(&after.settings()).unwrap();
        assert_clean(&store).await;
        let (_, spent) = store.balance(&key).await.unwrap();
        assert!(
            spent.usage.get() >= promised,
            "cut {cut} at {by}: {promised} was promised, {} is there",
            spent.usage
        );
    }
}
