//! The memory that a watch takes for a large frame of a session.

use protocol::voice::{Frame, Verdict, Watch};

const MIB: u64 = 1 << 20;

/// The most memory that this process has used so far.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = peak.and_then(|line| line.split_whitespace().nth(1));
    kib.unwrap().parse::<u64>().unwrap() << 10
}

/// Three bytes of a list can be an object, and a frame may have 16 MiB.
#[test]
fn a_frame_full_of_objects_takes_little_memory() {
    let objects = vec!["{}"; 1_000_000].join(",");
    for frame in [
        format!(r#"{{"type":"conversation.item.create","item":{{"content":[{objects}]}}}}"#),
        format!(r#"{{"type":"response.create","response":{{"input":[{objects}]}}}}"#),
        format!(r#"{{"type":"session.update","session":{{"tools":[{objects}]}}}}"#),
    ] {
        let before = peak_bytes();
        let verdict = Watch::realtime("maker/voice", None).on_client(Frame::Text(&frame));
        assert_eq!(verdict, Verdict::Relay);
        let grown = (peak_bytes() - before) / MIB;
        assert!(grown < 256, "{grown} MiB");
    }
}
