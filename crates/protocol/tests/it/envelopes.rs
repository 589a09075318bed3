//! Tests the bytes of the four error envelopes and of the events that end a failed stream.

use std::fmt::Write;
use std::time::Duration;

use protocol::failure::Detail;
use protocol::native::terminal_failure;
use protocol::{Code, Dialect, Failure, Family};

fn failures() -> Vec<Failure> {
    vec![
        Failure::invalid("`messages` must be an array with at least one message.")
            .param("messages"),
        Failure::invalid_api_key(),
        Failure::insufficient_quota(),
        Failure::wallet_disabled(),
        Failure::stateful_not_supported("No threads.")
            .param("thread")
            .detail(&Detail {
                error_code: "thread_unsupported_request",
                unsupported: &["thread", "other"],
            }),
        Failure::model_not_found("maker/\"odd\"\u{2028}\n"),
        Failure::task_running(),
        Failure::request_too_large(33_554_432),
        Failure::rate_limit_exceeded("Too many requests this minute.")
            .retry_after(Duration::from_secs(7)),
        Failure::upstream_rejected(422, "`n` is too large.").param("n"),
        Failure::context_length_exceeded(400, None),
        Failure::context_length_exceeded(
            413,
            Some("prompt is too long: 209001 tokens > 200000 maximum".to_owned()),
        ),
        Failure::context_length_exceeded(
            400,
            Some(
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
                    .to_owned(),
            ),
        ),
        Failure::internal().because("never shown"),
        Failure::upstream_error(),
        Failure::upstream_overloaded(),
        Failure::upstream_timeout(),
    ]
}

fn written(family: Family) -> String {
    let mut lines = String::new();
    for failure in failures() {
        let body = failure.write(family, "req_1");
        let body = String::from_utf8(body).unwrap();
        serde_json::from_str::<serde_json::Value>(&body).unwrap();
        writeln!(lines, "{} {body}", failure.status()).unwrap();
    }
    lines
}

#[test]
fn the_openai_envelope() {
    insta::assert_snapshot!(written(Family::OpenAi));
}

#[test]
fn the_messages_envelope() {
    insta::assert_snapshot!(written(Family::Messages));
}

#[test]
fn the_google_envelope() {
    insta::assert_snapshot!(written(Family::Google));
}

#[test]
fn the_interactions_envelope() {
    insta::assert_snapshot!(written(Family::Interactions));
}

#[test]
fn the_events_that_end_a_failed_stream() {
    let failure = Failure::upstream_error();
    let mut events = String::new();
    for dialect in Dialect::ALL {
        let event = terminal_failure(dialect, &failure, "req_1");
        let event = std::str::from_utf8(&event).unwrap();
        assert!(event.ends_with("\n\n") && !event.contains("[DONE]"));
        writeln!(events, "{dialect}:\n{event}").unwrap();
    }
    insta::assert_snapshot!(events);
}

#[test]
fn every_code_has_its_own_text_and_an_error_status() {
    let mut texts: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), Code::ALL.len());
    for code in Code::ALL {
        assert!((400..600).contains(&code.status()), "{code}");
    }
}
