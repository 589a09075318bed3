//! The answers of the fixed upstream, built once before the first request.

use std::fmt::Write as _;

pub(crate) const CONTENT_CHUNKS: usize = 100;
/// The last bytes of every complete stream.
pub(crate) const STREAM_END: &[u8; 14] = b"data: [DONE]\n\n";

const LARGE_ANSWER_BYTES: usize = 1_000_000;
const ANSWER: &str = "The gate opens for those who have paid the toll, and it opens at once; nobody \
    waits for the clerk, who writes the fare into the book while the cart is already rolling.";

/// All answers, with their HTTP heads and framing.
pub(crate) struct Answers {
    pub(crate) plain: Vec<u8>,
    pub(crate) large: Vec<u8>,
    pub(crate) stream: Stream,
    pub(crate) stream_with_usage: Stream,
}

impl Answers {
    pub(crate) fn new() -> Self {
        Self {
            plain: buffered(ANSWER),
            large: buffered(&ANSWER.repeat(LARGE_ANSWER_BYTES.div_ceil(ANSWER.len()))),
            stream: Stream::new(&[]),
            stream_with_usage: Stream::new(&[usage_chunk()]),
        }
    }
}

pub(crate) struct Stream {
    bytes: Vec<u8>,
    event_ends: Vec<usize>,
}

impl Stream {
    /// Each event is a separate HTTP chunk, as vendors send them.
    fn new(after_finish: &[String]) -> Self {
        let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
            cache-control: no-cache\r\nx-request-id: req_0123456789abcdef\r\n\
            transfer-encoding: chunked\r\n\r\n"
            .to_vec();
        let mut event_ends = Vec::new();
        let finish = chunk("{}", "\"stop\"");
        let end = "[DONE]".to_owned();
        let content = (0..CONTENT_CHUNKS).map(content_chunk);
        for data in content
            .chain([finish])
            .chain(after_finish.iter().cloned())
            .chain([end])
        {
            let event = format!("data: {data}\n\n");
            bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
            event_ends.push(bytes.len());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        if let Some(end) = event_ends.last_mut() {
            *end = bytes.len();
        }
        Self { bytes, event_ends }
    }

    /// Splits the answer into `count` writes with about the same number of events each. The first write includes the
    /// head.
    pub(crate) fn writes(&self, count: usize) -> impl Iterator<Item = &[u8]> {
        let events = self.event_ends.len();
        let count = count.clamp(1, events);
        let cut = move |write: usize| match write {
            0 => 0,
            write => self.event_ends[write * events / count - 1],
        };
        (0..count).map(move |write| &self.bytes[cut(write)..cut(write + 1)])
    }
}

fn content_chunk(index: usize) -> String {
    let word = ANSWER.split(' ').cycle().nth(index).unwrap_or_default();
    match index {
        0 => chunk(
            &format!(r#"{{"role":"assistant","content":"{word}"}}"#),
            "null",
        ),
        _ => chunk(&format!(r#"{{"content":" {word}"}}"#), "null"),
    }
}

const CHUNK_START: &str = r#"{"id":"chatcmpl-B0123456789abcdefghij","object":"chat.completion.chunk","created":1767225600,"model":"fixed-2026-01-01","system_fingerprint":"fp_0123456789""#;

fn chunk(delta: &str, finish_reason: &str) -> String {
    format!(
        r#"{CHUNK_START},"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish_reason}}}]}}"#
    )
}

fn usage_chunk() -> String {
    format!(r#"{CHUNK_START},"choices":[],"usage":{USAGE}}}"#)
}

const USAGE: &str = r#"{"prompt_tokens":24,"completion_tokens":100,"total_tokens":124,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}"#;

fn buffered(content: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"id":"chatcmpl-B0123456789abcdefghij","object":"chat.completion","created":1767225600,"model":"fixed-2026-01-01","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{USAGE},"system_fingerprint":"fp_0123456789"}}"#
    );
    let mut answer = String::new();
    let _ = write!(
        answer,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         x-request-id: req_0123456789abcdef\r\n\r\n{body}",
        body.len()
    );
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Head;

    fn content(answer: &[u8]) -> Vec<u8> {
        let mut head = Head::read(answer).unwrap().unwrap();
        let mut content = Vec::new();
        let body = &answer[head.length..];
        let taken = head
            .body
            .take(body, &mut |bytes| content.extend_from_slice(bytes))
            .unwrap();
        assert!(head.body.is_done());
        assert_eq!(taken, body.len());
        content
    }

    #[test]
    fn buffered_answers_are_whole_and_of_their_size() {
        let answers = Answers::new();
        for (answer, size) in [
            (&answers.plain, 500..800),
            (&answers.large, 1_000_000..1_010_000),
        ] {
            let body: serde_json::Value = serde_json::from_slice(&content(answer)).unwrap();
            assert_eq!(body["usage"]["completion_tokens"], 100);
            assert!(size.contains(&answer.len()), "{}", answer.len());
        }
    }

    #[test]
    fn streams_hold_a_hundred_content_chunks_of_vendor_size() {
        let answers = Answers::new();
        for (stream, others) in [(&answers.stream, 1), (&answers.stream_with_usage, 2)] {
            let text = String::from_utf8(content(&stream.bytes)).unwrap();
            assert!(text.as_bytes().ends_with(STREAM_END));
            let events: Vec<&str> = text.split_terminator("\n\n").collect();
            assert_eq!(events.len(), CONTENT_CHUNKS + others + 1);
            for event in &events[..CONTENT_CHUNKS] {
                assert!((220..260).contains(&event.len()), "{}", event.len());
                let data: serde_json::Value =
                    serde_json::from_str(&event["data: ".len()..]).unwrap();
                assert!(data["choices"][0]["delta"]["content"].is_string());
            }
        }
    }

    #[test]
    fn any_number_of_writes_gives_the_same_bytes() {
        let stream = Answers::new().stream_with_usage;
        for count in [0, 1, 2, 3, 50, 103, 1000] {
            let writes: Vec<&[u8]> = stream.writes(count).collect();
            assert_eq!(writes.len(), count.clamp(1, 103));
            assert_eq!(writes.concat(), stream.bytes);
        }
    }
}
