//! Tests of conversions from and to Interactions.

use bytes::Bytes;
use protocol::canon::{Delta, Event};
use protocol::convert::read_request;
use protocol::interactions::{Reader, Writer, read_response, write_request, write_response};
use protocol::native::{UnusableAnswer, read_head};
use protocol::{ByteQueue, Dialect};

use crate::cases::{
    asking_for_thoughts, build_response, check_grammar, context, describe_events, fixtures, frames,
    sent,
};

#[test]
fn requests_are_understood() {
    for (name, body) in fixtures("interactions/requests") {
        let head = read_head(Dialect::Interactions, &Bytes::from(body.clone()));
        let request = head.and_then(|head| read_request(Dialect::Interactions, &body, head.stream));
        let sent = sent(request, Dialect::Interactions, write_request);
        insta::assert_snapshot!(format!("interactions_request_{name}"), sent);
    }
}

#[test]
fn of_several_output_formats_the_last_is_carried_and_the_others_are_named() {
    let formats = [
        r#"{"type":"text","mime_type":"application/json"}"#,
        r#"{"type":"text"}"#,
        r#"{"type":"text","schema":{"type":"object"}}"#,
    ];
    for (formats, dropped) in [
        (&formats[..], vec!["response_format[0]"]),
        (&formats[..2], vec![]),
        (&formats[2..], vec![]),
    ] {
        let list = formats.join(",");
        let body = format!(r#"{{"model":"maker/m","input":"Hi","response_format":[{list}]}}"#);
        let request = read_request(Dialect::Interactions, body.as_bytes(), false).unwrap();
        assert_eq!(request.unknown, dropped);
        assert!(request.format.is_some());
    }
}

fn read(stream: &[u8]) -> (Vec<Event>, Result<(), UnusableAnswer>) {
    let mut reader = Reader::new("maker/m");
    let mut events = Vec::new();
    let frames = frames(stream);
    let mut result = frames
        .iter()
        .try_for_each(|frame| reader.frame(frame, &mut events));
    if result.is_ok() {
        result = reader.end(&mut events);
    }
    check_grammar(&events, result.is_ok());
    (events, result)
}

fn written(events: Vec<Event>) -> String {
    let mut writer = Writer::new(context(asking_for_thoughts()));
    let mut out = ByteQueue::new();
    for event in events {
        writer.event(event, &mut out);
    }
    String::from_utf8(out.into_bytes().to_vec()).unwrap()
}

#[test]
fn every_piece_of_a_delta_is_read_in_order() {
    const STREAM: &str = r#"data: {"event_type":"step.start","index":0,"step":{"type":"model_output"}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"text","text":"abcdef","annotations":[{"url":"https://x.example/1","start_index":0,"end_index":3}]}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"text_annotation_delta","annotations":[{"url":"https://x.example/2","start_index":0,"end_index":6},{"url":"https://x.example/3","start_index":3,"end_index":6}]}}

data: {"event_type":"interaction.completed","interaction":{"status":"completed"}}

"#;
    let (events, result) = read(STREAM.as_bytes());
    assert_eq!(result, Ok(()));
    let pieces = events.iter().filter_map(|event| match event {
        Event::Delta(Delta::Text(text)) => Some(text.as_str()),
        Event::Delta(Delta::Citation { url, .. }) => url.rsplit('/').next(),
        _ => None,
    });
    assert_eq!(pieces.collect::<Vec<_>>(), ["abcdef", "1", "2", "3"]);
}

#[test]
fn streams_are_read_and_written_again() {
    for (name, stream) in fixtures("interactions/streams") {
        let (events, result) = read(&stream);
        let mut text = describe_events(&events, &result);
        if let Ok(()) = result {
            text += "\n";
            text += &written(events.clone());
            let response = build_response(events).unwrap().unwrap();
            let whole = write_response(&response, &context(asking_for_thoughts()));
            text += &String::from_utf8(whole.clone()).unwrap();
            let again = read_response(&whole, "maker/m").unwrap();
            assert_eq!(again.stop, response.stop);
        }
        insta::assert_snapshot!(format!("interactions_stream_{name}"), text);
    }
}

#[test]
fn whole_answers_are_read() {
    for (name, body) in fixtures("interactions/answers") {
        let response = read_response(&body, "maker/m").unwrap();
        insta::assert_snapshot!(
            format!("interactions_answer_{name}"),
            format!("{response:#?}")
        );
    }
}
