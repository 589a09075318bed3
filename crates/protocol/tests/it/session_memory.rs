//! The memory that a watch takes for a large frame of a session.

use std::process::Command;

use protocol::voice::{Frame, Verdict, Watch};

const MIB: u64 = 1 << 20;

/// Set in the process that measures.
const ALONE: &str = "SESSION_MEMORY_ALONE";

/// From now on, the peak is that of what follows.
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// The most memory that this process has used since the peak was forgotten.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = peak.and_then(|line| line.split_whitespace().nth(1));
    kib.unwrap().parse::<u64>().unwrap() << 10
}

/// Three bytes of a list can be an object, and a frame may have 16 MiB.
#[test]
fn a_frame_full_of_objects_takes_little_memory() {
    // Other tests take memory of this process at the same time, so another one measures.
    if std::env::var_os(ALONE).is_none() {
        let own = std::env::current_exe().unwrap();
        let test = "session_memory::a_frame_full_of_objects_takes_little_memory";
        let mut command = Command::new(own);
        let output = command
            .args([test, "--exact", "--nocapture"])
            .env(ALONE, "1");
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("1 passed"), "{said}{failed}");
        return;
    }
    let objects = vec!["{}"; 1_000_000].join(",");
    for frame in [
        format!(r#"{{"type":"conversation.item.create","item":{{"content":[{objects}]}}}}"#),
        format!(r#"{{"type":"response.create","response":{{"input":[{objects}]}}}}"#),
        format!(r#"{{"type":"session.update","session":{{"tools":[{objects}]}}}}"#),
    ] {
        forget_peak();
        let before = peak_bytes();
        let verdict = Watch::realtime("maker/voice", None).on_client(Frame::Text(&frame));
        assert_eq!(verdict, Verdict::Relay);
        let grown = (peak_bytes() - before) / MIB;
        assert!(grown < 64, "{grown} MiB");
    }
}
