//! Properties of binary event streams of any bytes, for both decoders: one passes events as they are,
//! the other converts those of Converse.

use protocol::event_stream::{Malformed, ToSse};

use crate::pieces::sizes;

/// Events do not depend on how the bytes were split, an error is found at the same place, and no
/// payload becomes more than one event. The bytes are taken as a stream, and as the headers and the
/// payload of a message with correct lengths and checksums, since few random bytes have those.
pub fn event_stream(data: &[u8]) {
    check(data);
    let share = data.first().copied().map_or(0, usize::from);
    let headers = data.len() * share / 256;
    let (headers, payload) = data.split_at(headers);
    check(&framed(headers, payload));
    let known = b"\x0d:message-type\x07\x00\x05event\x0b:event-type\x07\x00\x05chunk";
    check(&framed(known, data));
    check(&[framed(known, payload), framed(headers, data)].concat());
    for name in [
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "messageStop",
        "metadata",
    ] {
        let mut known = b"\x0d:message-type\x07\x00\x05event\x0b:event-type\x07\x00".to_vec();
        known.extend(name.len().to_be_bytes().last());
        known.extend_from_slice(name.as_bytes());
        check(&[framed(&known, data), framed(&known, payload)].concat());
    }
}

fn check(stream: &[u8]) {
    check_as(stream, ToSse::default);
    check_as(stream, ToSse::from_converse);
}

fn check_as(stream: &[u8], decoder: fn() -> ToSse) {
    let whole = read(stream, decoder(), stream.len().max(1));
    for size in sizes(stream) {
        assert_eq!(read(stream, decoder(), size), whole, "in pieces of {size}");
    }
    let (events, _) = whole;
    for event in events.split_inclusive(|byte| *byte == b'\n') {
        let is_line =
            event == b"\n" || event.starts_with(b"event: ") || event.starts_with(b"data: ");
        assert!(is_line, "{:?}", String::from_utf8_lossy(event));
    }
}

fn read(stream: &[u8], mut decoder: ToSse, size: usize) -> (Vec<u8>, Option<Malformed>) {
    let mut events = Vec::new();
    for piece in stream.chunks(size) {
        if let Err(malformed) = decoder.push(piece, &mut events) {
            return (events, Some(malformed));
        }
        assert!(decoder.held_bytes() <= stream.len());
    }
    (events, decoder.end().err())
}

/// A message with these headers and this payload.
fn framed(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut message = length(headers.len() + payload.len() + 16).to_vec();
    message.extend(length(headers.len()));
    message.extend(checksum(&message).to_be_bytes());
    message.extend_from_slice(headers);
    message.extend_from_slice(payload);
    message.extend(checksum(&message).to_be_bytes());
    message
}

/// CRC-32 bit by bit, independent of the library that the decoder uses.
fn checksum(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            let carry = if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
            (sum >> 1) ^ carry
        })
    });
    !sum
}
