//! Tests of conversions from and to Generate Content.

use protocol::canon::Event;
use protocol::convert::read_request;
use protocol::generate::{Reader, Writer, read_response, write_request, write_response};
use protocol::native::UnusableAnswer;
use protocol::{ByteQueue, Dialect};

use crate::cases::{
    asking_for_thoughts, build_response, check_grammar, context, describe_events, fixtures, frames,
    sent,
};

#[test]
fn requests_are_understood() {
    for (name, body) in fixtures("generate/requests") {
        let sent = sent(
            read_request(Dialect::Generate, &body, false),
            Dialect::Generate,
            write_request,
        );
        insta::assert_snapshot!(format!("generate_request_{name}"), sent);
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
fn streams_are_read_and_written_again() {
    for (name, stream) in fixtures("generate/streams") {
        let (events, result) = read(&stream);
        let mut text = describe_events(&events, &result);
        if let Ok(()) = result {
            text += "\n";
            text += &written(events.clone());
            let response = build_response(events).unwrap().unwrap();
            let whole = write_response(&response, &context(asking_for_thoughts()));
            text += &String::from_utf8(whole.clone()).unwrap();
            assert_eq!(
                read_response(&whole, "maker/m").unwrap().stop,
                response.stop
            );
        }
        insta::assert_snapshot!(format!("generate_stream_{name}"), text);
    }
}
