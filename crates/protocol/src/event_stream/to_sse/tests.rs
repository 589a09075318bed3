use proptest::prelude::*;

use super::*;

/// Frames that the vendor's own reader accepts.
const DELTA: &str = "0000009d00000057b9bbf89f0b3a6576656e742d74797065070011636f6e74656e74426c6f636b44656c7461\
    0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d74797065\
    0700056576656e747b22636f6e74656e74426c6f636b496e646578223a302c2264656c7461223a7b2274657874223a\
    224869227d2c2270223a226162227d8b38b268";
const PING: &str = "0000007b0000004b0a2e96af0b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d7479\
    70650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279\
    746573223a2265794a306558426c496a6f6963476c755a794a39227da01f56c4";
const THROTTLED: &str = "0000008800000061de0175f40f3a657863657074696f6e2d747970650700137468726f74746c696e67457863\
    657074696f6e0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167\
    652d74797065070009657863657074696f6e7b226d657373616765223a22736c6f7720646f776e227d832ee072";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

fn framed(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut message = length(headers.len() + payload.len() + 16).to_vec();
    message.extend(length(headers.len()));
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(headers);
    message.extend_from_slice(payload);
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message
}

fn header(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![u8::try_from(name.len()).unwrap()];
    header.extend_from_slice(name.as_bytes());
    header.push(7);
    header.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
    header.extend_from_slice(value.as_bytes());
    header
}

fn event(kind: &str, payload: &[u8]) -> Vec<u8> {
    let headers = [
        header(":message-type", "event"),
        header(":event-type", kind),
    ]
    .concat();
    framed(&headers, payload)
}

fn chunk(json: &str) -> Vec<u8> {
    use ::base64::Engine as _;
    let encoded = ::base64::engine::general_purpose::STANDARD.encode(json);
    event(
        "chunk",
        format!(r#"{{"bytes":"{encoded}","p":"abcd"}}"#).as_bytes(),
    )
}

fn read(stream: &[u8], size: usize) -> (String, Result<(), Malformed>) {
    let mut decoder = ToSse::default();
    let mut out = Vec::new();
    let mut pieces = stream.chunks(size.max(1));
    let read = pieces.try_for_each(|piece| decoder.push(piece, &mut out));
    let read = read.and_then(|()| decoder.end());
    (String::from_utf8(out).unwrap(), read)
}

#[test]
fn messages_become_events() {
    for (stream, events) in [
        (bytes(PING), "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
        (
            bytes(DELTA),
            "event: contentBlockDelta\n\
             data: {\"contentBlockIndex\":0,\"delta\":{\"text\":\"Hi\"},\"p\":\"ab\"}\n\n",
        ),
        (
            bytes(THROTTLED),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"throttlingException\",\
             \"message\":\"slow down\"}}\n\n",
        ),
        (
            framed(
                &[
                    header(":message-type", "error"),
                    header(":error-code", "Inter\nnal"),
                    header(":error-message", "it \"broke\""),
                ]
                .concat(),
                b"",
            ),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"Inter\\nnal\",\
             \"message\":\"it \\\"broke\\\"\"}}\n\n",
        ),
        // The host's own data is left out: its member of the last event, and the event that begins
        // the stream.
        (
            chunk(
                r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}"#,
            ),
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        (event("initial-response", b"{}"), ""),
        // Line ends cannot end an event or begin another one.
        (
            chunk("{\"type\":\"ping\",\r\n\"x\":1}"),
            "event: ping\ndata: {\"type\":\"ping\",  \"x\":1}\n\n",
        ),
        (
            chunk("{\"type\":\"a\\nb\"}"),
            "data: {\"type\":\"a\\nb\"}\n\n",
        ),
        (Vec::new(), ""),
    ] {
        assert_eq!(read(&stream, stream.len()), (events.to_owned(), Ok(())));
    }
}

#[test]
fn what_is_no_message_is_refused() {
    let ping = bytes(PING);
    let changed = |at: usize| {
        let mut message = ping.clone();
        message[at] ^= 1;
        message
    };
    let lengths = |total: u32, headers: u32| {
        let mut prelude = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        prelude.extend(crc32fast::hash(&prelude).to_be_bytes());
        prelude
    };
    let twice = [header("a", "b"), header("a", "c")].concat();
    let many = |count: usize| -> Vec<u8> {
        let mut headers = header(":message-type", "event");
        headers.extend(header(":event-type", "a"));
        let others = 2..count;
        headers.extend(others.flat_map(|number| header(&number.to_string(), "")));
        framed(&headers, b"{}")
    };
    assert_eq!(read(&many(64), 1_000).1, Ok(()));
    for (stream, why) in [
        (changed(3), Malformed::Checksum),
        (changed(9), Malformed::Checksum),
        (changed(20), Malformed::Checksum),
        (changed(100), Malformed::Checksum),
        (changed(122), Malformed::Checksum),
        // Refused before the rest arrives.
        (lengths(15, 0), Malformed::Length),
        (lengths(40, 25), Malformed::Length),
        (lengths(u32::MAX, 0), Malformed::Length),
        (lengths(16 << 20, 129 << 10), Malformed::Length),
        (lengths((16 << 20) + 1, 0), Malformed::Length),
        (framed(&twice, b""), Malformed::Headers),
        (many(65), Malformed::Headers),
        (framed(b"\x05abc", b""), Malformed::Headers),
        (framed(b"\x01a\x0a", b""), Malformed::Headers),
        (framed(b"\x01a\x07\x00\x09b", b""), Malformed::Headers),
        (framed(b"\x01a\x05\x00", b""), Malformed::Headers),
        (framed(b"", b"{}"), Malformed::Headers),
        (
            framed(&header(":message-type", "event"), b"{}"),
            Malformed::Headers,
        ),
        (
            framed(&header(":message-type", "other"), b"{}"),
            Malformed::Headers,
        ),
        (event("chunk", b"{}"), Malformed::Payload),
        (event("chunk", b"\xff"), Malformed::Payload),
        (event("chunk", br#"{"bytes":"!"}"#), Malformed::Payload),
        (chunk("not JSON"), Malformed::Payload),
        (ping[..ping.len() - 1].to_vec(), Malformed::Cut),
        (ping[..5].to_vec(), Malformed::Cut),
    ] {
        let (events, read) = read(&stream, stream.len());
        assert_eq!((events.as_str(), read), ("", Err(why)), "{stream:x?}");
    }
}

#[test]
fn headers_of_every_type_are_passed_over() {
    let mut headers =
        b"\x01a\x00\x01b\x01\x01c\x02\x05\x01d\x03\x00\x01\x01e\x04\x00\x00\x00\x01".to_vec();
    headers.extend_from_slice(
        b"\x01f\x05\0\0\0\0\0\0\0\0\x01g\x06\x00\x02xy\x01i\x08\0\0\0\0\0\0\0\0",
    );
    headers.extend_from_slice(b"\x01j\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    headers.extend(header(":message-type", "event"));
    headers.extend(header(":event-type", "metadata"));
    let stream = framed(&headers, b"{}");
    let expected = "event: metadata\ndata: {}\n\n".to_owned();
    assert_eq!(read(&stream, stream.len()), (expected, Ok(())));
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[ -~]{0,40}".prop_map(|text| {
            chunk(&serde_json::json!({ "type": "content_block_delta", "text": text }).to_string())
        }),
        2 => Just(bytes(DELTA)),
        1 => Just(bytes(THROTTLED)),
        1 => Just(chunk("broken")),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn events_do_not_depend_on_chunking(
        messages in prop::collection::vec(any_message(), 0..8),
        size in 1_usize..200,
    ) {
        let stream = messages.concat();
        prop_assert_eq!(read(&stream, size), read(&stream, stream.len()));
    }
}
