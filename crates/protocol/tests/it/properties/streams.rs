//! Properties of streams between any two dialects.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::{
    AnswerContext, Block, Delta, Event, Opaque, Response, ResponseBlock, ResponseBuilder, Stop,
    carrier,
};
use protocol::convert::{Transcoder, convert_answer};
use protocol::native::{AnswerSummary, Identity, Rewriter, UnusableAnswer, rewrite_answer};
use protocol::{ByteQueue, Dialect, Failure, Translator, Usage};

use super::{MODEL, REFUSED, context, pairs, upstream_answer, upstream_stream};
use crate::grammar::{self, Call, ClientAnswer, End};

#[derive(Debug, PartialEq)]
pub(super) struct Relayed {
    pub(super) text: String,
    pub(super) summary: AnswerSummary,
    pub(super) result: Result<(), UnusableAnswer>,
}

pub(super) fn relay(from: Dialect, to: Dialect, stream: &[u8], sizes: &[usize]) -> Relayed {
    let mut transcoder = Transcoder::new(from, to, context(to, "ours", MODEL));
    let mut out = ByteQueue::new();
    let mut rest = Bytes::copy_from_slice(stream);
    let mut sizes = sizes.iter().cycle();
    let mut result = Ok(());
    while !rest.is_empty() && result.is_ok() {
        let size = sizes.next().copied().unwrap_or(usize::MAX);
        result = transcoder.push(rest.split_to(size.clamp(1, rest.len())), &mut out);
    }
    let result = result.and_then(|()| transcoder.end(&mut out));
    if let Err(broken) = &result {
        let failure = broken.clone().into_failure();
        transcoder.fail(&failure, "req_1", &mut out);
    }
    Relayed {
        text: String::from_utf8(out.into_bytes().to_vec()).unwrap(),
        summary: transcoder.summary().clone(),
        result,
    }
}

pub(super) fn identity(dialect: Dialect) -> Identity {
    let AnswerContext {
        id, model, created, ..
    } = context(dialect, "ours", MODEL);
    Identity { id, model, created }
}

/// The translator of a native stream of which nothing has arrived yet.
fn unread(dialect: Dialect) -> Translator {
    Translator::from(Rewriter::new(dialect, identity(dialect), true))
}

pub(super) fn build_response(events: &[Event]) -> Response {
    let mut builder = ResponseBuilder::default();
    let mut done = events
        .iter()
        .cloned()
        .filter_map(|event| builder.push(event));
    done.next().unwrap().unwrap()
}

/// The content of an answer that every dialect can express.
#[derive(Debug)]
pub(super) struct CommonContent {
    /// Includes refusals, because some dialects send them as text.
    text: String,
    thoughts: String,
    calls: Vec<Call>,
    end: &'static str,
    usage: Option<(u64, u64)>,
}

impl PartialEq for CommonContent {
    fn eq(&self, other: &Self) -> bool {
        // Dialects express a refusal with text in different ways, or not at all.
        let ends = [self.end, other.end];
        let same_end = ends.contains(&"refused") || self.end == other.end;
        let said = |gist: &Self| (gist.text.clone(), gist.thoughts.clone(), gist.usage);
        same_end && said(self) == said(other) && self.calls == other.calls
    }
}

pub(super) fn common_content(heard: &ClientAnswer) -> CommonContent {
    let End::Finished(reason) = &heard.end else {
        panic!("{heard:?} has not ended");
    };
    let end = match reason.as_str() {
        "length" | "incomplete: max_output_tokens" | "max_tokens" | "MAX_TOKENS" | "incomplete" => {
            "length"
        }
        "stop" | "tool_calls" | "completed" | "end_turn" | "tool_use" | "STOP"
        | "requires_action" => "done",
        "SAFETY" | "refusal" | "content_filter" | "incomplete: content_filter" => "refused",
        other => panic!("{other} was not said"),
    };
    let calls = heard.calls.iter().map(|call| {
        let (id, _) = carrier::decode(&call.id);
        Call {
            id: id.to_owned(),
            ..call.clone()
        }
    });
    // The gateway's own text, for an upstream that sends none.
    let refusal = heard.refusal.strip_suffix(REFUSED);
    CommonContent {
        text: format!("{}{}", heard.text, refusal.unwrap_or(&heard.refusal)),
        thoughts: heard.thoughts.clone(),
        calls: calls.collect(),
        end,
        usage: heard.usage,
    }
}

/// The content of these events as an upstream of this dialect sends them.
pub(super) fn said(from: Dialect, events: &[Event]) -> CommonContent {
    let response = build_response(events);
    let calls = |block: &ResponseBlock| matches!(block.kind, Block::ToolCall { .. });
    let is_called = response.blocks.iter().any(calls);
    let mut gist = CommonContent {
        text: String::new(),
        thoughts: String::new(),
        calls: Vec::new(),
        end: match response.stop {
            // This dialect has only one status at a time, and calls have priority.
            Stop::Length if from == Dialect::Interactions && is_called => "done",
            Stop::Length => "length",
            Stop::Refusal { .. } => "refused",
            _ => "done",
        },
        usage: response
            .usage
            .map(|usage| (usage.input_total(), usage.output_total())),
    };
    for block in response.blocks {
        match block.kind {
            Block::Text | Block::Refusal => gist.text.push_str(&block.text),
            Block::Thought => gist.thoughts.push_str(&block.text),
            Block::ToolCall { id, name } => gist.calls.push(Call {
                id,
                name,
                arguments: serde_json::from_str(&block.text).unwrap(),
            }),
            Block::Image { .. } => {}
        }
    }
    gist
}

const LETTERS: &str = "[a-zé界\u{2028}\u{85}\"\\\\\n ]{1,8}";

/// Answers of upstreams of a dialect. Adjacent blocks differ in kind, except calls, because some
/// dialects cannot separate equal ones.
pub(super) fn any_answer(origin: Dialect) -> impl Strategy<Value = Vec<Event>> {
    let opaque = move |text: &str| {
        Event::Delta(Delta::Opaque(Opaque {
            origin,
            model: "up-2026".into(),
            text: text.into(),
        }))
    };
    let words = |block: Block| {
        prop::collection::vec(LETTERS, 1..4).prop_map(move |pieces| {
            let mut events = vec![Event::BlockStart(block.clone())];
            let deltas = pieces.into_iter().map(Delta::Text);
            events.extend(deltas.map(Event::Delta));
            events
        })
    };
    let thought = (words(Block::Thought), any::<bool>()).prop_map(move |(mut events, signed)| {
        events.extend(signed.then(|| opaque("U0lHTkVE")));
        events
    });
    let json = prop_oneof![
        Just(serde_json::json!({})),
        ("[a-z\"\\\\]{0,4}", LETTERS).prop_map(|(name, text)| serde_json::json!({name: text})),
        (any::<i64>(), any::<bool>())
            .prop_map(|(n, b)| serde_json::json!({"n": n, "b": [b, null]})),
    ];
    let call = ("[a-z_]{1,6}", json, 1_usize..12).prop_map(|(name, arguments, size)| {
        let id = String::new();
        let arguments: Vec<char> = arguments.to_string().chars().collect();
        let pieces = arguments.chunks(size).map(|piece| piece.iter().collect());
        let start = [Event::BlockStart(Block::ToolCall { id, name })];
        let deltas = pieces.map(Delta::Arguments).map(Event::Delta);
        start.into_iter().chain(deltas).collect::<Vec<_>>()
    });
    let block = prop_oneof![
        2 => words(Block::Text),
        1 => thought,
        1 => words(Block::Refusal),
        3 => call,
    ];
    // A count of zero is not a report if there is text, and our count replaces it. Other tests cover
    // that.
    let usage = (1_u64..99, 0_u64..99, 1_u64..99, 0_u64..99).prop_map(
        |(input, cached_input, output, reasoning)| Usage {
            input,
            cached_input,
            output: output + reasoning,
            reasoning,
            ..Usage::default()
        },
    );
    let blocks = prop::collection::vec(block, 0..6);
    (blocks, usage, any::<bool>()).prop_map(|(blocks, usage, cut)| assemble(blocks, usage, cut))
}

fn assemble(mut blocks: Vec<Vec<Event>>, usage: Usage, cut: bool) -> Vec<Event> {
    // A refusal is the last block and the only refusal, because whole answers of some dialects have
    // one place for it.
    let is_refusal = |block: &Vec<Event>| block[0] == Event::BlockStart(Block::Refusal);
    let refusal = blocks.iter().find(|block| is_refusal(block)).cloned();
    blocks.retain(|block| !is_refusal(block));
    blocks.dedup_by(|one, other| {
        let is_call = matches!(one[0], Event::BlockStart(Block::ToolCall { .. }));
        !is_call && one[0] == other[0]
    });
    let refused = refusal.is_some();
    blocks.extend(refusal);
    let mut events = vec![Event::Start];
    let mut calls = 0;
    for mut block in blocks {
        if let Event::BlockStart(Block::ToolCall { id, .. }) = &mut block[0] {
            *id = format!("call_{calls}");
            calls += 1;
        }
        events.extend(block);
        events.push(Event::BlockStop);
    }
    let stop = match (cut, calls, refused) {
        (true, ..) => Stop::Length,
        (_, 1.., _) => Stop::ToolCalls,
        (_, _, true) => Stop::Refusal { category: None },
        _ => Stop::End,
    };
    events.extend([Event::Usage(usage), Event::Finish(stop)]);
    events
}

fn any_case() -> impl Strategy<Value = (Dialect, Dialect, Vec<Event>)> {
    let pairs: Vec<_> = pairs().collect();
    prop::sample::select(pairs)
        .prop_flat_map(|(from, to)| any_answer(from).prop_map(move |events| (from, to, events)))
}

proptest! {
    /// The client reads the content that the upstream sent, in a stream that it accepts, for any split
    /// of the bytes. The stream contains nothing of the upstream's identity.
    #[test]
    fn a_converted_stream_says_the_same_for_any_chunking(
        (from, to, events) in any_case(),
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let stream = upstream_stream(from, &events);
        let relayed = relay(from, to, &stream, &[]);
        prop_assert_eq!(&relayed.result, &Ok(()));
        prop_assert!(!relayed.text.contains("theirs") && !relayed.text.contains("up-2026"));
        let heard = grammar::read_stream(to, &relayed.text);
        prop_assert!(heard.is_ok(), "{from} to {to}: {}\n{}", heard.unwrap_err(), relayed.text);
        prop_assert_eq!(common_content(&heard.unwrap()), said(from, &events), "{} to {}", from, to);
        prop_assert!(relayed.summary.ended && relayed.summary.usage.is_some());
        prop_assert_eq!(relay(from, to, &stream, &sizes), relayed);
    }

    #[test]
    fn a_whole_answer_is_the_fold_of_its_stream((from, to, events) in any_case()) {
        let streamed = relay(from, to, &upstream_stream(from, &events), &[]);
        let streamed = grammar::read_stream(to, &streamed.text).unwrap();
        let body = upstream_answer(from, &build_response(&events));
        let answer = convert_answer(from, to, &body, &context(to, "ours", MODEL)).unwrap();
        let bytes = answer.pieces.into_bytes();
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(!text.contains("theirs") && !text.contains("up-2026"), "{}", text);
        let whole = grammar::read(to, &bytes);
        prop_assert!(whole.is_ok(), "{from} to {to}: {}\n{text}", whole.unwrap_err());
        prop_assert_eq!(whole.unwrap(), streamed, "{} to {}", from, to);
    }

    /// If an upstream sends a whole answer instead of a stream, the client receives a stream, and
    /// the usage of the answer is billed.
    #[test]
    fn a_whole_answer_becomes_the_stream_that_was_asked_for(
        (from, to, events) in any_case(),
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let streamed = relay(from, to, &upstream_stream(from, &events), &[]);
        let mut body = b" \n".to_vec();
        body.extend(upstream_answer(from, &build_response(&events)));
        let relayed = relay(from, to, &body, &sizes);
        prop_assert_eq!(&relayed.result, &Ok(()));
        prop_assert!(relayed.summary.ended && relayed.summary.usage.is_some());
        prop_assert_eq!(relayed.summary.usage, streamed.summary.usage);
        let heard = grammar::read_stream(to, &relayed.text);
        prop_assert!(heard.is_ok(), "{from} to {to}: {}\n{}", heard.unwrap_err(), relayed.text);
        let streamed = grammar::read_stream(to, &streamed.text).unwrap();
        prop_assert_eq!(heard.unwrap(), streamed, "{} to {}", from, to);
        let cut = relay(from, to, &body[..body.len() - 1], &sizes);
        prop_assert!(cut.result.is_err());
    }

    /// A whole answer also becomes a stream if the upstream uses the client's dialect. A list of chunks from a
    /// Generate Content upstream counts as a whole answer, for clients of every dialect.
    #[test]
    fn a_whole_native_answer_becomes_the_stream_that_was_asked_for(
        (dialect, to, events) in any_case(),
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let stream = upstream_stream(dialect, &events);
        let answer = upstream_answer(dialect, &build_response(&events));
        let rewritten = rewrite_answer(dialect, Bytes::from(answer.clone()), &identity(dialect));
        let read = grammar::read(dialect, &rewritten.unwrap().pieces.into_bytes()).unwrap();
        let mut bodies = vec![(answer, read)];
        if dialect == Dialect::Generate {
            let stream = String::from_utf8(stream.clone()).unwrap();
            let chunks: Vec<_> = stream.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            let list = format!("[{}\n]", chunks.join("\n,\r\n"));
            let converted = relay(dialect, to, list.as_bytes(), &sizes);
            let expected = relay(dialect, to, stream.as_bytes(), &[]);
            prop_assert_eq!(converted.text, expected.text);
            let streamed = relay(dialect, dialect, stream.as_bytes(), &[]);
            bodies.push((list.into_bytes(), grammar::read_stream(dialect, &streamed.text).unwrap()));
        }
        for (body, expected) in bodies {
            let mut translator = unread(dialect);
            let mut out = ByteQueue::new();
            let mut rest = Bytes::from(body.clone());
            let mut sizes = sizes.iter().cycle();
            while !rest.is_empty() {
                let size = (*sizes.next().unwrap()).min(rest.len());
                translator.push(rest.split_to(size), &mut out).unwrap();
            }
            translator.end(&mut out).unwrap();
            prop_assert!(translator.summary().ended && translator.summary().usage.is_some());
            let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
            // Item ids are the upstream's, as in any native stream.
            let theirs = context(dialect, "theirs", "up-2026").id;
            prop_assert!(!text.contains(&*theirs) && !text.contains("up-2026"));
            let heard = grammar::read_stream(dialect, &text);
            prop_assert!(heard.is_ok(), "{dialect}: {}\n{text}", heard.unwrap_err());
            prop_assert_eq!(heard.unwrap(), expected, "{}", dialect);
            let mut cut = unread(dialect);
            cut.push(Bytes::copy_from_slice(&body[..body.len() - 1]), &mut ByteQueue::new()).unwrap();
            prop_assert!(cut.end(&mut ByteQueue::new()).is_err());
        }
    }

    /// A stream that is cut off anywhere ends with the error of the client's dialect, never with a regular
    /// end. It contains nothing that the whole stream does not contain.
    #[test]
    fn a_cut_stream_fails_in_the_callers_words(
        (from, to, events) in any_case(),
        share in 0_usize..1000,
    ) {
        let stream = upstream_stream(from, &events);
        let cut = stream.len() * share / 1000;
        let relayed = relay(from, to, &stream[..cut], &[]);
        let heard = grammar::read_stream(to, &relayed.text);
        prop_assert!(heard.is_ok(), "{from} to {to}: {}\n{}", heard.unwrap_err(), relayed.text);
        let heard = heard.unwrap();
        match &relayed.result {
            Err(_) => prop_assert_eq!(&heard.end, &End::Failed("upstream_error".to_owned())),
            // In this dialect a clean close after content is an end (`docs/api/generate-content.md`).
            Ok(()) if from == Dialect::Generate => {}
            // Only the last line end was cut off, or bytes after the end.
            Ok(()) => prop_assert_eq!(common_content(&heard), said(from, &events)),
        }
        prop_assert_eq!(relayed.result.is_ok(), relayed.summary.ended);
        let whole = said(from, &events);
        // In some dialects a refusal is separate from the text around it.
        let text = heard.text + &heard.refusal;
        let in_order = whole.text.starts_with(&text) || !heard.refusal.is_empty();
        prop_assert!(in_order, "{}", text);
        prop_assert!(whole.thoughts.starts_with(&heard.thoughts));
        prop_assert!(heard.calls.len() <= whole.calls.len());
    }

    /// For any bytes of the upstream, the client can read the stream that it receives.
    #[test]
    fn garbage_is_never_passed_on(
        (from, to, events) in any_case(),
        garbage in prop::collection::vec(any::<u8>(), 0..40),
        share in 0_usize..1000,
        length in 0_usize..60,
    ) {
        let mut stream = upstream_stream(from, &events);
        let at = stream.len() * share / 1000;
        let end = (at + length).min(stream.len());
        stream.splice(at..end, garbage);
        let relayed = relay(from, to, &stream, &[]);
        let heard = grammar::read_stream(to, &relayed.text);
        prop_assert!(heard.is_ok(), "{from} to {to}: {}\n{}", heard.unwrap_err(), relayed.text);
        let failed = matches!(heard.unwrap().end, End::Failed(_));
        prop_assert_eq!(failed, relayed.result.is_err());
    }
}

#[test]
fn reference_streams_have_the_same_content_in_every_dialect() {
    for (from, to) in pairs() {
        let path = format!(
            "{}/fixtures/{from}/reference.sse",
            env!("CARGO_MANIFEST_DIR")
        );
        let stream = std::fs::read(path).unwrap();
        let relayed = relay(from, to, &stream, &[]);
        assert_eq!(relayed.result, Ok(()), "{from} to {to}");
        let heard = grammar::read_stream(to, &relayed.text).unwrap();
        assert_eq!(heard.text, "Hi");
        assert_eq!(
            heard.thoughts,
            if from == Dialect::Chat { "" } else { "Think" }
        );
        assert_eq!(heard.calls.len(), 1);
        assert_eq!(heard.usage, Some((9, 7)), "{from} to {to}");
    }
}

/// The failure of a call whose hold could not grow, or of a node that shuts down.
#[test]
fn a_stream_can_be_failed_from_outside_at_any_point() {
    for (from, to) in pairs() {
        let events = [
            Event::Start,
            Event::BlockStart(Block::Text),
            Event::Delta(Delta::Text("Hello".to_owned())),
        ];
        let stream = upstream_stream(from, &events);
        for count in 0..=stream.len() {
            let mut transcoder = Transcoder::new(from, to, context(to, "ours", MODEL));
            let mut out = ByteQueue::new();
            let piece = Bytes::copy_from_slice(&stream[..count]);
            assert_eq!(transcoder.push(piece, &mut out), Ok(()));
            transcoder.fail(&Failure::insufficient_quota(), "req_1", &mut out);
            let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
            let heard = grammar::read_stream(to, &text).unwrap();
            assert_eq!(heard.end, End::Failed("insufficient_quota".to_owned()));
        }
    }
}
