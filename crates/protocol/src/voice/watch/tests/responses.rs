//! Responses that are open at the same time, such as those outside the conversation.

use super::*;

fn created(id: &str) -> String {
    format!(r#"{{"type":"response.created","response":{{"id":"{id}"}}}}"#)
}

fn done(id: &str, usage: &str) -> String {
    format!(r#"{{"type":"response.done","response":{{"id":"{id}","usage":{usage}}}}}"#)
}

fn delta(id: &str) -> String {
    let text = "many words ".repeat(100);
    format!(r#"{{"type":"response.output_text.delta","response_id":"{id}","delta":"{text}"}}"#)
}

fn usage(input: u64, output: u64) -> String {
    format!(
        r#"{{"input_token_details":{{"text_tokens":{input}}},"output_token_details":{{"text_tokens":{output}}}}}"#
    )
}

/// The reported and the open tokens after these events of the upstream.
fn after(events: &[String]) -> (NonAudioTokens, NonAudioTokens) {
    let mut steps = vec![Client(CONTEXT), Client(CREATE), Client(BARE)];
    steps.extend(events.iter().map(|event| Upstream(0, event)));
    let reading = run(Watch::realtime("m/v", None), &steps, 0);
    (reading.text, reading.open_text)
}

#[test]
fn each_of_two_open_responses_counts_once() {
    let none = NonAudioTokens::default();
    let of = |input, output| NonAudioTokens {
        input,
        output,
        ..none
    };
    let begun = [created("a"), created("b"), delta("a")];
    let (reported, open) = after(&begun);
    assert_eq!(reported, none);
    let ends = |last: &[String]| after(&[&begun, last].concat());
    let (a, b) = (done("a", &usage(70, 9)), done("b", &usage(5, 1)));
    assert_eq!(ends(&[b.clone(), a.clone()]), (of(75, 10), none));
    assert_eq!(ends(&[a.clone(), b.clone()]), (of(75, 10), none));
    // One that does not report counts with its own input and output.
    let (ended, silent) = ends(&[b.clone(), done("a", "null")]);
    assert_eq!(silent, none);
    assert_eq!(ended.output, 1 + open.output);
    let (ended, silent) = ends(&[a, done("b", "null")]);
    assert_eq!((ended.output, silent), (9, none));
    // Until it ends, it stays open.
    let (reported, left) = ends(&[b]);
    assert_eq!(reported, of(5, 1));
    assert!(
        left.output >= 100 && left.input > 0 && left.input < open.input,
        "{left:?}"
    );
}

#[test]
fn every_response_counts_however_many_are_open() {
    let all: Vec<_> = (0..40).map(|at| created(&at.to_string())).collect();
    let (reported, open) = after(&all);
    let (_, one) = after(&[
        created("a"),
        created("b"),
        created("c"),
        done("a", "null"),
        done("b", "null"),
    ]);
    let (first_two, _) = after(&[
        created("a"),
        created("b"),
        done("a", "null"),
        done("b", "null"),
    ]);
    assert_eq!(reported.plus(open).input, first_two.input + 38 * one.input);
    assert_eq!(open.input, 16 * one.input);
    // A response of an upstream that repeats no ids, or only some, ends all the same.
    for (begin, end) in [
        (CREATED.to_owned(), done("a", &usage(7, 1))),
        (created("a"), SILENT.to_owned()),
    ] {
        assert_eq!(after(&[begin, end]).1, NonAudioTokens::default());
    }
}
