//! Tests the guarantees of the convert path's public functions for all dialects.

use std::sync::Arc;

use bytes::Bytes;
use protocol::canon::{AnswerContext, Request};
use protocol::convert::{Transcoder, convert_answer};
use protocol::native::{Rewriter, UnusableAnswer};
use protocol::{ByteQueue, Dialect, Failure, Translator};

fn context() -> AnswerContext {
    AnswerContext {
        id: "chatcmpl_1".into(),
        model: "maker/m".into(),
        created: 1_760_000_000,
        input_tokens: 40,
        request: Arc::new(Request {
            include_usage: true,
            ..Request::default()
        }),
    }
}

fn transcoder() -> Transcoder {
    Transcoder::new(Dialect::Chat, Dialect::Chat, context())
}

const TEXT: &str = "data: {\"id\":\"theirs\",\"model\":\"up-2026\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello there\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn usage(prompt: &str) -> String {
    format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":7}}}}\n\n"
    )
}

fn push(transcoder: &mut Transcoder, text: &str) -> (String, Result<(), UnusableAnswer>) {
    let mut out = ByteQueue::new();
    let result = transcoder.push(Bytes::copy_from_slice(text.as_bytes()), &mut out);
    let out = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    (out, result)
}

#[test]
fn each_event_goes_out_when_it_comes() {
    let mut transcoder = transcoder();
    let (out, _) = push(&mut transcoder, TEXT);
    assert!(out.contains("Hello there") && !out.contains("up-2026") && !out.contains("theirs"));
    assert!(transcoder.summary().content && !transcoder.summary().ended);
    assert!((1..=6).contains(&transcoder.summary().output_tokens_counted));
    let (out, _) = push(&mut transcoder, FINISH);
    assert_eq!(out, "");
    let (out, _) = push(&mut transcoder, &format!("{}{DONE}garbage", usage("9")));
    assert!(out.contains("\"prompt_tokens\":9") && out.ends_with(DONE));
    assert!(transcoder.summary().ended && !transcoder.summary().usage_malformed);
    assert_eq!(transcoder.summary().usage.unwrap().input, 9);
    assert_eq!(transcoder.end(&mut ByteQueue::new()), Ok(()));
}

#[test]
fn usage_before_the_end_is_not_yet_what_is_charged() {
    let mut transcoder = transcoder();
    let (_, result) = push(&mut transcoder, &format!("{TEXT}{FINISH}{}", usage("9")));
    assert_eq!(result, Ok(()));
    assert_eq!(transcoder.summary().usage, None);
    assert_eq!(transcoder.summary().interim_usage.unwrap().input, 9);
    assert_eq!(
        transcoder.end(&mut ByteQueue::new()),
        Err(UnusableAnswer::Unfinished)
    );
}

#[test]
fn an_answer_without_usage_shows_the_charged_count() {
    let mut transcoder = transcoder();
    let (out, _) = push(&mut transcoder, &format!("{TEXT}{FINISH}{DONE}"));
    assert!(out.contains("\"prompt_tokens\":40"));
    assert_eq!(transcoder.summary().usage, None);

    let body = br#"{"choices":[{"message":{"content":"Hello there"}}]}"#;
    let answer = convert_answer(Dialect::Chat, Dialect::Chat, body, &context()).unwrap();
    assert_eq!((answer.usage, answer.usage_malformed), (None, false));
    assert!((1..=6).contains(&answer.output_tokens_counted));
    let pieces = answer.pieces.into_bytes();
    let text = std::str::from_utf8(&pieces).unwrap();
    assert!(text.contains("\"prompt_tokens\":40"), "{text}");
}

#[test]
fn usage_of_a_step_is_not_that_of_the_interaction() {
    let usage = |output: u64| {
        format!(",\"usage\":{{\"total_input_tokens\":9,\"total_output_tokens\":{output}}}")
    };
    for (of_step, of_all, expected) in [
        (usage(1), usage(3), Some(3)),
        (String::new(), usage(3), Some(3)),
        (usage(1), String::new(), None),
    ] {
        let stream = format!(
            "data: {{\"event_type\":\"interaction.created\",\"interaction\":{{\"id\":\"x\"}}}}\n\n\
             data: {{\"event_type\":\"step.start\",\"index\":0,\"step\":{{\"type\":\"model_output\"}}}}\n\n\
             data: {{\"event_type\":\"step.delta\",\"index\":0,\"delta\":{{\"type\":\"text\",\"text\":\"one two three four five six\"}}}}\n\n\
             data: {{\"event_type\":\"step.stop\",\"index\":0{of_step}}}\n\n\
             data: {{\"event_type\":\"interaction.completed\",\"interaction\":{{\"id\":\"x\",\"status\":\"completed\"{of_all}}}}}\n\n"
        );
        let mut transcoder = Transcoder::new(Dialect::Interactions, Dialect::Chat, context());
        let (_, result) = push(&mut transcoder, &stream);
        assert_eq!(result, Ok(()), "{stream}");
        let summary = transcoder.summary();
        assert_eq!(summary.usage.map(|usage| usage.output), expected);
        if expected.is_none() {
            assert!((6..=8).contains(&summary.counted(40).output));
        }
    }
}

/// A Messages stream knows its output only at the end. Some engines report usage only at the start.
#[test]
fn usage_at_the_start_of_a_message_is_never_final() {
    let stream = |start: &str, end: &str| {
        format!(
            "data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"x\",\"model\":\"up\",\"content\":[]{start}}}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"one two three four five six\"}}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\n\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}}{end}}}\n\n\
             data: {{\"type\":\"message_stop\"}}\n\n"
        )
    };
    let usage =
        |output: u64| format!(",\"usage\":{{\"input_tokens\":9,\"output_tokens\":{output}}}");
    // `None` means that the larger of our count and the report at the start is charged.
    for (start, end, input, output) in [
        (usage(1), usage(3), 9, Some(3)),
        (String::new(), usage(3), 9, Some(3)),
        (
            usage(1),
            ",\"usage\":{\"output_tokens\":3}".to_owned(),
            9,
            Some(3),
        ),
        (usage(1), String::new(), 9, None),
        (usage(1), ",\"usage\":null".to_owned(), 9, None),
        // A report without the output says nothing about it.
        (usage(1), ",\"usage\":{}".to_owned(), 9, None),
        (
            usage(1),
            ",\"usage\":{\"cache_read_input_tokens\":0,\"output_tokens\":null}".to_owned(),
            9,
            None,
        ),
        (
            usage(1),
            ",\"usage\":{\"input_tokens\":12}".to_owned(),
            12,
            None,
        ),
        (usage(30), String::new(), 9, None),
        (String::new(), String::new(), 40, None),
    ] {
        let mut transcoder = Transcoder::new(Dialect::Messages, Dialect::Chat, context());
        let (out, result) = push(&mut transcoder, &stream(&start, &end));
        assert_eq!(result, Ok(()), "{start} {end}");
        let summary = transcoder.summary();
        assert!(summary.ended);
        assert_eq!(summary.usage.is_some(), output.is_some(), "{start} {end}");
        let counted = summary.output_tokens_counted;
        assert!((6..=8).contains(&counted), "{counted}");
        // The charge is never below the report of the upstream.
        let interim = if start == usage(30) { 30 } else { 1 };
        let output = output.unwrap_or(counted.max(interim));
        let charged = summary.completed_report(40);
        let charged = charged.unwrap_or_else(|| summary.counted(40));
        assert_eq!(
            (charged.input, charged.output),
            (input, output),
            "{start} {end}"
        );
        let shown = format!("\"prompt_tokens\":{input},\"completion_tokens\":{output},");
        assert!(out.contains(&shown), "{shown} {out}");
    }
}

#[test]
fn usage_that_cannot_be_billed_by_is_worth_an_alarm() {
    for (prompt, malformed) in [("9", false), ("-1", true), ("\"9\"", true)] {
        let mut transcoder = transcoder();
        let stream = format!("{TEXT}{FINISH}{}{DONE}", usage(prompt));
        let (_, result) = push(&mut transcoder, &stream);
        assert_eq!(result, Ok(()));
        assert_eq!(transcoder.summary().usage_malformed, malformed, "{prompt}");
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"\"usage\":{{"}}}}],"usage":{{"prompt_tokens":{prompt},"completion_tokens":1}}}}"#
        );
        let answer =
            convert_answer(Dialect::Chat, Dialect::Chat, body.as_bytes(), &context()).unwrap();
        assert_eq!(answer.usage_malformed, malformed, "{prompt}");
    }
}

#[test]
fn events_before_a_break_are_sent() {
    let mut transcoder = transcoder();
    let (out, result) = push(
        &mut transcoder,
        &format!("{TEXT}data: {{\"error\":\"x\"}}\n\n"),
    );
    assert!(out.contains("Hello there"));
    assert!(matches!(result, Err(UnusableAnswer::Failure(_))));
    let mut out = ByteQueue::new();
    transcoder.fail(&Failure::upstream_error(), "req_1", &mut out);
    let out = out.into_bytes();
    assert!(out.starts_with(b"data: {\"error\":{") && out.ends_with(b"}}\n\n"));
}

#[test]
fn an_end_mark_needs_no_blank_line() {
    for (end, at_once) in [("data: [DONE]\n", true), ("data: [DONE]", false)] {
        let mut transcoder = transcoder();
        let (out, _) = push(&mut transcoder, &format!("{TEXT}{FINISH}{end}"));
        assert_eq!(out.ends_with(DONE), at_once);
        let mut rest = ByteQueue::new();
        assert_eq!(transcoder.end(&mut rest), Ok(()));
        assert_eq!(rest.into_bytes().ends_with(DONE.as_bytes()), !at_once);
    }
    let mut transcoder = transcoder();
    let (_, result) = push(&mut transcoder, &format!("{TEXT}{FINISH}data: {{\"cut"));
    assert_eq!(result, Ok(()));
    assert_eq!(
        transcoder.end(&mut ByteQueue::new()),
        Err(UnusableAnswer::Unfinished)
    );
}

#[test]
fn a_translator_is_either_path() {
    let identity = crate::answers::identity();
    let native: Translator = Rewriter::new(Dialect::Chat, identity, true).into();
    let convert: Translator = transcoder().into();
    for mut translator in [native, convert] {
        let mut out = ByteQueue::new();
        let stream = format!("{TEXT}{FINISH}{DONE}");
        assert_eq!(translator.push(Bytes::from(stream), &mut out), Ok(()));
        assert_eq!(translator.end(&mut out), Ok(()));
        assert!(translator.summary().ended && translator.summary().content);
        translator.fail(&Failure::upstream_error(), "req_1", &mut out);
        let out = out.into_bytes();
        let text = std::str::from_utf8(&out).unwrap();
        assert!(text.contains("Hello there") && text.contains("upstream_error"));
    }
}

/// An answer with a picture between two texts, whole and as a stream.
fn with_picture(dialect: Dialect) -> (String, String) {
    const GENERATE: &str = r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Look: "},{"inlineData":{"mimeType":"image/webp","data":"UklGRkZG"}},{"text":" Done."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":9,"totalTokenCount":12}}"#;
    const STEP: &str = r#"{"type":"model_output","content":[{"type":"text","text":"Look: "},{"type":"image","mime_type":"image/webp","data":"UklGRkZG"},{"type":"text","text":" Done."}]}"#;
    if dialect == Dialect::Generate {
        return (GENERATE.to_owned(), format!("data: {GENERATE}\n\n"));
    }
    let usage = r#""usage":{"total_input_tokens":3,"total_output_tokens":9,"total_tokens":12}"#;
    let whole =
        format!(r#"{{"id":"x","model":"up","status":"completed","steps":[{STEP}],{usage}}}"#);
    let deltas = [
        r#"{"type":"text","text":"Look: "}"#,
        r#"{"type":"image","mime_type":"image/webp","data":"UklGRkZG"}"#,
        r#"{"type":"text","text":" Done."}"#,
    ];
    let deltas = deltas.map(|delta| {
        format!("event: step.delta\ndata: {{\"event_type\":\"step.delta\",\"index\":0,\"delta\":{delta}}}\n\n")
    });
    let stream = [
        "event: interaction.created\ndata: {\"event_type\":\"interaction.created\",\"interaction\":{\"id\":\"x\",\"model\":\"up\",\"status\":\"in_progress\"}}\n\n",
        "event: step.start\ndata: {\"event_type\":\"step.start\",\"index\":0,\"step\":{\"type\":\"model_output\"}}\n\n",
        &deltas.concat(),
        "event: step.stop\ndata: {\"event_type\":\"step.stop\",\"index\":0}\n\n",
        &format!(
            "event: interaction.completed\ndata: {{\"event_type\":\"interaction.completed\",\"interaction\":{{\"id\":\"x\",\"model\":\"up\",\"status\":\"completed\",{usage}}}}}\n\n"
        ),
        "event: done\ndata: [DONE]\n\n",
    ];
    (whole, stream.concat())
}

#[test]
fn a_picture_is_carried_or_named() {
    const NAMED: &str = "[The model made a picture (image/webp), which this API cannot carry.]";
    for from in [Dialect::Generate, Dialect::Interactions] {
        let (whole, stream) = with_picture(from);
        for to in [
            Dialect::Chat,
            Dialect::Responses,
            Dialect::Messages,
            Dialect::Generate,
            Dialect::Interactions,
        ] {
            let answer = convert_answer(from, to, whole.as_bytes(), &context()).unwrap();
            assert_eq!(answer.summary().pictures.unwrap().delivered, 1);
            let answer = String::from_utf8(answer.pieces.into_bytes().to_vec()).unwrap();
            let mut transcoder = Transcoder::new(from, to, context());
            let (streamed, result) = push(&mut transcoder, &stream);
            assert_eq!(result, Ok(()));
            let mut rest = ByteQueue::new();
            transcoder.end(&mut rest).unwrap();
            assert_eq!(transcoder.summary().pictures.as_ref().unwrap().delivered, 1);
            let carries = matches!(to, Dialect::Generate | Dialect::Interactions);
            for text in [answer, streamed] {
                let (is_carried, is_named) = (text.contains("UklGRkZG"), text.contains(NAMED));
                assert_eq!(
                    (is_carried, is_named),
                    (carries, !carries),
                    "{from:?} {to:?} {text}"
                );
                assert!(text.contains("Look: ") && text.contains(" Done."), "{text}");
            }
        }
    }
}
