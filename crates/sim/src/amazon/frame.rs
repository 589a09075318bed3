//! Encodes the frames of a binary event stream: lengths, headers, a payload and two checksums.

use crate::reply::Event;
use bytes::Bytes;

/// The text from which padding is cut. Payloads contain a padding member that hides the length of the text.
const PADDING: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

pub(super) fn event(kind: &str, payload: &[u8]) -> Bytes {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    frame(&headers, payload)
}

pub(super) fn exception(kind: &str, payload: &[u8]) -> Bytes {
    let headers = [
        (":exception-type", kind),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    frame(&headers, payload)
}

/// Converts a server-sent event to an event of a binary stream. `frames` converts the data, or returns `None` to leave
/// the event out.
pub(super) fn reframed(sse: &Event, frames: impl FnOnce(&str) -> Option<Bytes>) -> Option<Event> {
    let text = std::str::from_utf8(&sse.bytes).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    Some(Event {
        kind: sse.kind,
        bytes: frames(data)?,
    })
}

/// Padding whose length depends on the length of the payload.
pub(super) fn padding(length: usize) -> &'static str {
    PADDING.get(..length % PADDING.len()).unwrap_or_default()
}

fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Bytes {
    let mut encoded_headers = Vec::new();
    for (name, value) in headers {
        encoded_headers.extend(name.len().to_be_bytes().last());
        encoded_headers.extend_from_slice(name.as_bytes());
        // Header values of type 7 are strings.
        encoded_headers.push(7);
        encoded_headers.extend(u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        encoded_headers.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or_default().to_be_bytes();
    let mut frame = Vec::with_capacity(encoded_headers.len() + payload.len() + 16);
    frame.extend(length(encoded_headers.len() + payload.len() + 16));
    frame.extend(length(encoded_headers.len()));
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&encoded_headers);
    frame.extend_from_slice(payload);
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The vendor's own parser accepts the frames that this test expects.
    #[test]
    fn frames_are_those_of_the_vendor() {
        let delta = br#"{"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"ab"}"#;
        assert_eq!(
            hex(&event("contentBlockDelta", delta)),
            "0000009d00000057b9bbf89f0b3a6576656e742d74797065070011636f6e74656e74426c6f636b44656c7461\
             0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d74\
             7970650700056576656e747b22636f6e74656e74426c6f636b496e646578223a302c2264656c7461223a7b22\
             74657874223a224869227d2c2270223a226162227d8b38b268"
        );
        assert_eq!(
            hex(&exception(
                "throttlingException",
                br#"{"message":"slow down"}"#
            )),
            "0000008800000061de0175f40f3a657863657074696f6e2d747970650700137468726f74746c696e67457863\
             657074696f6e0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573\
             736167652d74797065070009657863657074696f6e7b226d657373616765223a22736c6f7720646f776e227d\
             832ee072"
        );
    }
}
