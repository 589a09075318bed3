//! A refusal stays a refusal: the client can distinguish it from a normal answer, whole or streamed,
//! for every dialect of the upstream.

use protocol::Dialect;
use protocol::canon::{Block, Delta, Event, ResponseBuilder, Stop};
use protocol::convert::convert_answer;

use super::streams::relay;
use super::{MODEL, REFUSED, context, pairs, upstream_answer, upstream_stream};
use crate::grammar::{self, ClientAnswer, End};

/// The text, the text of the refusal, and the end that clients of each dialect read from a refusal, in
/// the order of [`Dialect::ALL`].
type Row = [(&'static str, &'static str, &'static str); 5];

/// The row of an upstream that sends text and refusal separately. In dialects with one
/// place for both, the refusal is part of the text.
const fn row(text: &'static str, words: &'static str) -> Row {
    [
        (text, words, "stop"),
        (text, words, "completed"),
        ("Well.No.", "", "refusal"),
        ("Well.No.", "", "SAFETY"),
        ("Well.No.", "", "completed"),
    ]
}

/// The rows by the dialect of the upstream, for a refusal with a text of its own after another text.
const IN_WORDS: [Row; 5] = [
    row("Well.", "No."),
    row("Well.", "No."),
    // In Messages the refusal is normal text, and the stop reason marks it as a refusal.
    [
        ("Well.No.", "", "content_filter"),
        ("Well.No.", REFUSED, "completed"),
        ("Well.No.", "", "refusal"),
        ("Well.No.", "", "SAFETY"),
        ("Well.No.", "", "completed"),
    ],
    // Generate Content refuses by a filter.
    [
        ("Well.No.", "", "content_filter"),
        ("Well.No.", "", "incomplete: content_filter"),
        ("Well.No.", "", "refusal"),
        ("Well.No.", "", "SAFETY"),
        ("Well.No.", "", "incomplete"),
    ],
    // Interactions has no member for a refusal.
    [
        ("Well.No.", "", "stop"),
        ("Well.No.", "", "completed"),
        ("Well.No.", "", "end_turn"),
        ("Well.No.", "", "STOP"),
        ("Well.No.", "", "completed"),
    ],
];

/// The rows by the dialect of the upstream, for an answer that the upstream stopped without a text.
const SILENT: [Row; 5] = [
    filtered(),
    [
        ("Well.", REFUSED, "stop"),
        ("Well.", REFUSED, "completed"),
        ("Well.The model refused to answer.", "", "refusal"),
        ("Well.The model refused to answer.", "", "SAFETY"),
        ("Well.The model refused to answer.", "", "completed"),
    ],
    [
        ("Well.", "", "content_filter"),
        ("Well.", REFUSED, "completed"),
        ("Well.", "", "refusal"),
        ("Well.", "", "SAFETY"),
        ("Well.", "", "completed"),
    ],
    filtered(),
    [
        ("Well.", "", "stop"),
        ("Well.", "", "completed"),
        ("Well.", "", "end_turn"),
        ("Well.", "", "STOP"),
        ("Well.", "", "completed"),
    ],
];

const fn filtered() -> Row {
    [
        ("Well.", "", "content_filter"),
        ("Well.", "", "incomplete: content_filter"),
        ("Well.", "", "refusal"),
        ("Well.", "", "SAFETY"),
        ("Well.", "", "incomplete"),
    ]
}

/// An answer that is refused, with a text or only by its stop reason.
fn refused(in_words: bool) -> Vec<Event> {
    let said = |block, text: &str| {
        let text = Delta::Text(text.to_owned());
        [
            Event::BlockStart(block),
            Event::Delta(text),
            Event::BlockStop,
        ]
    };
    let mut events = vec![Event::Start];
    events.extend(said(Block::Text, "Well."));
    if in_words {
        events.extend(said(Block::Refusal, "No."));
    }
    events.push(Event::Finish(Stop::Refusal { category: None }));
    events
}

fn heard(heard: ClientAnswer) -> (String, String, String) {
    let End::Finished(end) = heard.end else {
        panic!("{heard:?} has not ended");
    };
    (heard.text, heard.refusal, end)
}

#[test]
fn a_refusal_is_a_refusal_in_every_dialect() {
    let place = |dialect: Dialect| Dialect::ALL.iter().position(|it| *it == dialect).unwrap();
    for (in_words, table) in [(true, &IN_WORDS), (false, &SILENT)] {
        let events = refused(in_words);
        for (from, to) in pairs() {
            let (text, words, end) = table[place(from)][place(to)];
            let expected = (text.to_owned(), words.to_owned(), end.to_owned());
            let relayed = relay(from, to, &upstream_stream(from, &events), &[]);
            let streamed = grammar::read_stream(to, &relayed.text).unwrap();
            assert_eq!(heard(streamed), expected, "stream of {from} to {to}");

            let mut builder = ResponseBuilder::default();
            let mut whole = events
                .iter()
                .cloned()
                .filter_map(|event| builder.push(event));
            let body = upstream_answer(from, &whole.next().unwrap().unwrap());
            let answer = convert_answer(from, to, &body, &context(to, "ours", MODEL)).unwrap();
            let whole = grammar::read(to, &answer.pieces.into_bytes()).unwrap();
            assert_eq!(heard(whole), expected, "{from} to {to}");
        }
    }
}
