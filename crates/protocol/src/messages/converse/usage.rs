//! Converts usage and stop reasons from Converse to Messages.

use crate::json::write::Object;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::messages::fields::Fields;
use crate::usage::count;

/// The names of the counts in Converse and in Messages. Both count cached input separately from other input.
const COUNTS: [(&str, &str); 4] = [
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cacheReadInputTokens", "cache_read_input_tokens"),
    ("cacheWriteInputTokens", "cache_creation_input_tokens"),
];

/// Writes a usage report with the member names of Messages. Values that are not counts are kept, so that the reader of
/// Messages refuses them.
pub(super) fn write_usage(it: &mut Object<'_>, usage: Raw<'_>) {
    let Some(mut usage) = Fields::of(usage) else {
        return;
    };
    for (own, name) in COUNTS {
        if let Some(value) = usage.take(own) {
            it.raw(name, value.text());
        }
    }
    let [short, long] = cache_writes_by_lifetime(usage.take("cacheDetails"));
    if long > 0 {
        it.object("cache_creation", |it| {
            it.number("ephemeral_5m_input_tokens", short);
            it.number("ephemeral_1h_input_tokens", long);
        });
    }
}

/// The tokens that were written to caches that last five minutes and an hour.
fn cache_writes_by_lifetime(details: Option<Raw<'_>>) -> [u64; 2] {
    let mut sums = [0_u64; 2];
    let Some(details) = details.filter(|it| it.shape() == Shape::Array) else {
        return sums;
    };
    // The total is a separate member, so invalid details only lose the split.
    let _ = Cursor::new(details.text()).array(|cursor| {
        if let Some(mut detail) = Fields::of(cursor.value()?)
            && let Some(tokens) = detail.take("inputTokens").and_then(count)
        {
            let [short, long] = &mut sums;
            let sum = match detail.string("ttl").as_deref() {
                Some("1h") => long,
                _ => short,
            };
            *sum = sum.saturating_add(tokens);
        }
        Ok::<(), SyntaxError>(())
    });
    sums
}

/// The stop reason as Messages names it. `None` if the model failed.
pub(super) fn stop_reason(reason: &str) -> Option<&str> {
    match reason {
        "malformed_model_output" | "malformed_tool_use" => None,
        "content_filtered" | "guardrail_intervened" => Some("refusal"),
        "stop_sequence" | "max_tokens" | "model_context_window_exceeded" | "tool_use" => {
            Some(reason)
        }
        _ => Some("end_turn"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write;

    fn written(usage: &str) -> String {
        let mut out = Vec::new();
        write::object(&mut out, |it| {
            write_usage(it, Cursor::new(usage).value().unwrap());
        });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counts_have_the_names_of_messages() {
        for (usage, expected) in [
            (
                r#"{"inputTokens":3,"outputTokens":4,"totalTokens":7}"#,
                r#"{"input_tokens":3,"output_tokens":4}"#,
            ),
            (
                r#"{"inputTokens":3,"outputTokens":4,"cacheReadInputTokens":5,"cacheWriteInputTokens":6,
                "cacheDetails":[{"ttl":"1h","inputTokens":2},{"ttl":"5m","inputTokens":4}]}"#,
                r#"{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":5,"cache_creation_input_tokens":6,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":2}}"#,
            ),
            (
                r#"{"inputTokens":-3,"outputTokens":"4","cacheDetails":[1,{"ttl":"1h"}]}"#,
                r#"{"input_tokens":-3,"output_tokens":"4"}"#,
            ),
            ("[]", "{}"),
        ] {
            assert_eq!(written(usage), expected);
        }
    }

    #[test]
    fn every_end_has_a_word() {
        for (reason, word) in [
            ("end_turn", Some("end_turn")),
            ("max_tokens", Some("max_tokens")),
            ("stop_sequence", Some("stop_sequence")),
            ("tool_use", Some("tool_use")),
            (
                "model_context_window_exceeded",
                Some("model_context_window_exceeded"),
            ),
            ("content_filtered", Some("refusal")),
            ("guardrail_intervened", Some("refusal")),
            ("something_new", Some("end_turn")),
            ("malformed_tool_use", None),
            ("malformed_model_output", None),
        ] {
            assert_eq!(stop_reason(reason), word, "{reason}");
        }
    }
}
