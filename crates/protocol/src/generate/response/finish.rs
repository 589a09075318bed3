//! Converts the finish reasons of this dialect.

use crate::canon::Stop;
use crate::failure::Failure;

/// Reasons for which output or prompt is withheld.
const FILTERS: [&str; 12] = [
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "OTHER",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "NO_IMAGE",
];

/// Reasons that mean malformed output. An answer that ends with one has failed.
const MALFORMED: [&str; 4] = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
];

/// Reads a finish reason. This dialect has none for tool calls.
pub(in crate::generate) fn read(reason: &str, calls: bool) -> Result<Stop, Failure> {
    if MALFORMED.contains(&reason) {
        let cause = format!("finish reason {reason}");
        return Err(Failure::upstream_error().because(cause));
    }
    Ok(match reason {
        // Other dialects have no token with which to continue, so the answer counts as truncated.
        "MAX_TOKENS" | "CONTINUATION" => Stop::Length,
        reason if FILTERS.contains(&reason) => Stop::Filter(Some(reason.to_owned())),
        _ if calls => Stop::ToolCalls,
        _ => Stop::End,
    })
}

pub(in crate::generate) fn reason_for(stop: &Stop) -> &str {
    match stop {
        Stop::End | Stop::Sequence(_) | Stop::ToolCalls | Stop::Paused => "STOP",
        Stop::Length | Stop::ContextFull => "MAX_TOKENS",
        Stop::Filter(Some(reason)) if FILTERS.contains(&reason.as_str()) => reason,
        Stop::Filter(_) | Stop::Refusal { .. } => "SAFETY",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons_are_read_and_written() {
        let filter = |reason: &str| Stop::Filter(Some(reason.to_owned()));
        for (reason, calls, stop, back) in [
            ("STOP", false, Stop::End, "STOP"),
            ("STOP", true, Stop::ToolCalls, "STOP"),
            ("NEW_REASON", false, Stop::End, "STOP"),
            ("MAX_TOKENS", true, Stop::Length, "MAX_TOKENS"),
            ("CONTINUATION", false, Stop::Length, "MAX_TOKENS"),
            ("SPII", false, filter("SPII"), "SPII"),
        ] {
            let read = read(reason, calls).unwrap();
            assert_eq!(read, stop);
            assert_eq!(reason_for(&read), back);
        }
        assert!(MALFORMED.iter().all(|reason| read(reason, true).is_err()));
        let refusal = Stop::Refusal { category: None };
        for stop in [filter("content_filter"), Stop::Filter(None), refusal] {
            assert_eq!(reason_for(&stop), "SAFETY");
        }
    }
}
