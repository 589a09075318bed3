//! Reads a streamed answer event by event, as it arrives.

use serde_json::Value;

use super::answer::Head;
use super::connection::{BodyEnd, BodyReader, Connection, Piece};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The value of the `event:` line.
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.data) {
            Ok(value) => value,
            Err(error) => panic!("{error} in {}", self.data),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.data == "[DONE]"
    }
}

#[derive(Debug)]
pub(crate) struct Streaming {
    pub(crate) head: Head,
    connection: Connection,
    reader: BodyReader,
    /// Bytes of the body that do not form a whole event yet.
    rest: Vec<u8>,
    /// Every byte of the body so far.
    pub(crate) raw: Vec<u8>,
    ended: Option<BodyEnd>,
    /// Whether events may have ids, from which a client can resume.
    has_ids: bool,
}

impl Streaming {
    pub(crate) fn new(head: Head, connection: Connection) -> Self {
        let reader = BodyReader::new(&head);
        Self {
            head,
            connection,
            reader,
            rest: Vec::new(),
            raw: Vec::new(),
            ended: None,
            has_ids: false,
        }
    }

    /// A stream whose events have ids. Public streams never have ids.
    pub(crate) fn with_ids(head: Head, connection: Connection) -> Self {
        Self {
            has_ids: true,
            ..Self::new(head, connection)
        }
    }

    /// The next event, or `None` at the end. Comments are skipped.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(block) = self.block() {
                if let Some(event) = read(&block, self.has_ids) {
                    return Some(event);
                }
            }
            if self.ended.is_some() {
                assert!(
                    self.rest.is_empty(),
                    "half an event at the end: {}",
                    String::from_utf8_lossy(&self.rest)
                );
                return None;
            }
            match self.reader.next(&mut self.connection).await {
                Piece::Data(data) => {
                    self.raw.extend_from_slice(&data);
                    self.rest.extend_from_slice(&data);
                }
                Piece::End(ended) => self.ended = Some(ended),
            }
        }
    }

    /// All remaining events, and how the body ended.
    pub(crate) async fn rest(&mut self) -> (Vec<Event>, BodyEnd) {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        (events, self.ended.expect("it has ended"))
    }

    /// Closes the connection.
    pub(crate) fn leave(self) {
        drop(self);
    }

    /// The bytes up to the next empty line.
    fn block(&mut self) -> Option<Vec<u8>> {
        let end = memchr::memchr_iter(b'\n', &self.rest).find_map(|newline| {
            // Some vendors end lines with CR LF, and native routes keep those line endings.
            let empty_lines: [&[u8]; 2] = [b"\n", b"\r\n"];
            let next = newline + 1;
            let is_empty = |line: &&[u8]| self.rest[next..].starts_with(line);
            Some(next + empty_lines.into_iter().find(is_empty)?.len())
        })?;
        Some(self.rest.drain(..end).collect())
    }
}

fn read(block: &[u8], has_ids: bool) -> Option<Event> {
    let text = std::str::from_utf8(block).unwrap();
    let mut name = None;
    let mut data: Option<String> = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with(':') {
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            "id" | "retry" if has_ids => {}
            _ => panic!("an unexpected line: {line}"),
        }
    }
    // An event with a name but no data crashes clients, so there must be none.
    assert!(
        name.is_none() || data.is_some(),
        "an event without data: {text}"
    );
    data.map(|data| Event { name, data })
}
