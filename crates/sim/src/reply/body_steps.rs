//! Turns the content of a reply and a script into the steps of sending the body.
//!
//! This module has no clock and no socket, so table tests can cover every fault. `serve/body.rs` executes the steps.

use super::message::{Content, Event, EventKind};
use crate::fault::{BreakKind, BreakOff, BreakPoint, Script, SubstituteReply};
use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// Marks a position in a text where invalid UTF-8 is sent. When this private-use character is sent, the same number of
/// invalid bytes replaces it, so that lengths stay correct.
pub(crate) const INVALID_UTF8_MARK: char = '\u{F8FF}';
const BROKEN_BYTES: &[u8] = &[0xff, 0xfe, 0xc0];

const NOISE_BYTES: usize = 512;
const ENDLESS_BLOCK_BYTES: usize = 64 * 1024;
/// The size limit of an endless line. The peer may have no limit of its own.
const ENDLESS_BYTES_MAX: usize = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Send(Bytes),
    /// Waits until everything sent so far has reached the socket.
    Flush,
    Wait(Duration),
    /// Sends nothing until the peer closes the connection.
    Hang,
    /// Closes the connection in the middle of the message.
    Cut,
    Reset,
}

/// The steps of one body. `next` returns `None` at the regular end of the message.
#[derive(Debug)]
pub(crate) struct BodySteps {
    source: Source,
    script: Script,
    pace: Option<Duration>,
    /// The bytes of the current event that are not sent yet.
    rest: Bytes,
    /// Steps that come before all others, in reverse order.
    due: Vec<Step>,
    sent: u64,
    stop: Option<BreakOff>,
    begun: bool,
    content_seen: bool,
    ended: bool,
}

#[derive(Debug)]
enum Source {
    Content(Content),
    Blocks { block: Bytes, left: usize },
    Empty,
}

impl BodySteps {
    /// Creates the steps. `pace` is the delay between content events if the script sets none.
    pub(crate) fn new(content: Content, script: &Script, pace: Option<Duration>) -> Self {
        let source = match script.substitute {
            Some(SubstituteReply::Garbage) => Source::Content(Content::Whole(invalid_text())),
            Some(SubstituteReply::EndlessLine) => Source::Blocks {
                block: endless_block(),
                left: ENDLESS_BYTES_MAX / ENDLESS_BLOCK_BYTES,
            },
            _ => Source::Content(content),
        };
        let mut stop = script.stop.filter(|stop| stop.place != BreakPoint::Head);
        // A whole answer has no events, so `content` means after half of its body.
        if let (Source::Content(Content::Whole(bytes)), Some(stop)) = (&source, &mut stop)
            && stop.place == BreakPoint::Content
        {
            stop.place = BreakPoint::Byte(bytes.len() as u64 / 2);
        }
        Self {
            source,
            script: script.clone(),
            pace: script.times.chunk_delay.or(pace),
            rest: Bytes::new(),
            due: Vec::new(),
            sent: 0,
            stop,
            begun: false,
            content_seen: false,
            ended: false,
        }
    }

    /// The `content-length` of a whole answer; `None` for a stream. Only `truncate` changes it. With `cut`, `reset` and
    /// `hang`, the body breaks off before this length.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Content(Content::Whole(bytes)) => {
                let length = bytes.len() as u64;
                Some(match self.stop {
                    Some(BreakOff {
                        how: BreakKind::Truncate,
                        place: BreakPoint::Byte(at),
                    }) => length.min(at),
                    _ => length,
                })
            }
            _ => None,
        }
    }

    pub(crate) fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.due.pop() {
                if matches!(step, Step::Cut | Step::Reset | Step::Hang) {
                    self.ended = true;
                }
                return Some(step);
            }
            if self.ended {
                return None;
            }
            if self.stop_is_due() {
                continue;
            }
            if !self.rest.is_empty() {
                return Some(self.send_piece());
            }
            if !self.begun {
                self.begun = true;
                if let Some(first_byte) = self.script.times.first_byte {
                    self.due.push(Step::Wait(first_byte));
                    self.due.push(Step::Flush);
                    continue;
                }
            }
            match self.load() {
                Some(event) => self.open(event),
                None => self.ended = true,
            }
        }
    }

    /// Queues the steps of the break if the body has reached its position. Returns whether it has.
    fn stop_is_due(&mut self) -> bool {
        let Some(BreakOff {
            how,
            place: BreakPoint::Byte(at),
        }) = self.stop
        else {
            return false;
        };
        if self.sent < at {
            return false;
        }
        self.stop = None;
        match how {
            BreakKind::Hang => self.due.push(Step::Hang),
            BreakKind::Reset => self.due.push(Step::Reset),
            BreakKind::Cut => self.due.push(Step::Cut),
            BreakKind::Truncate => self.ended = true,
        }
        if how != BreakKind::Truncate {
            // Everything sent before the break must reach the peer.
            self.due.push(Step::Flush);
        }
        true
    }

    fn load(&mut self) -> Option<Event> {
        match &mut self.source {
            Source::Content(Content::Events(events)) => events.next(),
            Source::Content(Content::Whole(bytes)) => {
                let bytes = std::mem::take(bytes);
                self.source = Source::Empty;
                Some(Event {
                    kind: EventKind::Content,
                    bytes,
                })
            }
            Source::Blocks { block, left } => {
                *left = left.checked_sub(1)?;
                Some(Event {
                    kind: EventKind::Frame,
                    bytes: block.clone(),
                })
            }
            Source::Empty => None,
        }
    }

    /// Makes an event the current one, and queues the delay before it.
    fn open(&mut self, event: Event) {
        let wait = match event.kind {
            EventKind::Content if self.content_seen => self.pace,
            EventKind::Usage => self.script.times.slow_usage,
            EventKind::Content | EventKind::Frame => None,
        };
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            self.due.push(Step::Wait(wait));
        }
        if event.kind == EventKind::Content {
            self.content_seen = true;
            if let Some(stop) = &mut self.stop
                && stop.place == BreakPoint::Content
            {
                stop.place = BreakPoint::Byte(self.sent + event.bytes.len() as u64);
            }
        }
        self.rest = if self.script.text.invalid_utf8 {
            with_broken_bytes(event.bytes)
        } else {
            event.bytes
        };
    }

    fn send_piece(&mut self) -> Step {
        let mut len = self.rest.len();
        if let Some(piece) = self.script.pieces {
            len = len.min(piece);
            self.due.push(Step::Flush);
        }
        if let Some(BreakOff {
            place: BreakPoint::Byte(at),
            ..
        }) = self.stop
        {
            let left = usize::try_from(at.saturating_sub(self.sent)).unwrap_or(usize::MAX);
            len = len.min(left);
        }
        self.sent += len as u64;
        Step::Send(self.rest.split_to(len))
    }
}

fn with_broken_bytes(bytes: Bytes) -> Bytes {
    let mut sign = [0; 4];
    let sign = INVALID_UTF8_MARK.encode_utf8(&mut sign).as_bytes();
    let Some(at) = bytes.windows(sign.len()).position(|seen| seen == sign) else {
        return bytes;
    };
    let mut broken = BytesMut::from(bytes);
    if let Some(place) = broken.get_mut(at..at + BROKEN_BYTES.len()) {
        place.copy_from_slice(BROKEN_BYTES);
    }
    broken.freeze()
}

/// Creates bytes without line ends, most of which are not valid text.
fn invalid_text() -> Bytes {
    let mut seed = crate::seed::Seed::new(4711);
    (0..NOISE_BYTES)
        .map(|_| seed.next().to_le_bytes()[0] | 0x80)
        .collect()
}

fn endless_block() -> Bytes {
    vec![b'a'; ENDLESS_BLOCK_BYTES].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Script {
        let mut script = Script::default();
        script.apply(text).unwrap();
        script
    }

    fn whole(text: &'static str) -> Content {
        Content::Whole(Bytes::from_static(text.as_bytes()))
    }

    fn stream() -> Content {
        let events = [
            (EventKind::Frame, "open;"),
            (EventKind::Content, "one;"),
            (EventKind::Content, "two;"),
            (EventKind::Usage, "usage;"),
            (EventKind::Frame, "end;"),
        ];
        Content::Events(Box::new(events.into_iter().map(|(kind, text)| Event {
            kind,
            bytes: Bytes::from_static(text.as_bytes()),
        })))
    }

    /// Describes the steps as text, for table tests.
    fn steps(content: Content, text: &str) -> Vec<String> {
        let mut steps = BodySteps::new(content, &script(text), None);
        std::iter::from_fn(|| steps.next())
            .take(100)
            .map(|step| match step {
                Step::Send(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Step::Flush => "flush".to_owned(),
                Step::Wait(wait) => format!("{}ms", wait.as_millis()),
                Step::Hang => "hang".to_owned(),
                Step::Cut => "cut".to_owned(),
                Step::Reset => "reset".to_owned(),
            })
            .collect()
    }

    #[test]
    fn an_unstreamed_body_breaks_where_it_is_told() {
        for (text, expected) in [
            ("", vec!["answer"]),
            ("cut=2", vec!["an", "flush", "cut"]),
            ("reset=content", vec!["ans", "flush", "reset"]),
            ("hang=body", vec!["flush", "hang"]),
            ("truncate=4", vec!["answ"]),
            ("cut=6", vec!["answer", "flush", "cut"]),
            ("cut=7", vec!["answer"]),
            ("first-byte=5ms", vec!["flush", "5ms", "answer"]),
            ("pieces=4", vec!["answ", "flush", "er", "flush"]),
            (
                "pieces=2+cut=3",
                vec!["an", "flush", "s", "flush", "flush", "cut"],
            ),
        ] {
            assert_eq!(steps(whole("answer"), text), expected, "{text}");
        }
    }

    #[test]
    fn a_stream_waits_and_breaks_between_its_events() {
        for (text, expected) in [
            ("", vec!["open;", "one;", "two;", "usage;", "end;"]),
            (
                "chunk-delay=3ms+slow-usage=9ms",
                vec!["open;", "one;", "3ms", "two;", "9ms", "usage;", "end;"],
            ),
            ("cut=content", vec!["open;", "one;", "flush", "cut"]),
            ("hang=7", vec!["open;", "on", "flush", "hang"]),
            ("truncate=content", vec!["open;", "one;"]),
        ] {
            assert_eq!(steps(stream(), text), expected, "{text}");
        }
    }

    #[test]
    fn the_head_tells_the_whole_length_unless_the_message_is_truncated() {
        for (text, length) in [("", 6), ("cut=2", 6), ("truncate=2", 2), ("truncate=9", 6)] {
            let steps = BodySteps::new(whole("answer"), &script(text), None);
            assert_eq!(steps.length(), Some(length), "{text}");
        }
        assert_eq!(
            BodySteps::new(stream(), &script("truncate=2"), None).length(),
            None
        );
    }

    #[test]
    fn the_pace_yields_to_the_script() {
        let pace = Some(Duration::from_millis(20));
        let mut steps = BodySteps::new(stream(), &Script::default(), pace);
        let waits = std::iter::from_fn(|| steps.next())
            .filter(|step| matches!(step, Step::Wait(_)))
            .count();
        assert_eq!(waits, 1);
        let mut steps = BodySteps::new(stream(), &script("chunk-delay=0ms"), pace);
        assert!(std::iter::from_fn(|| steps.next()).all(|step| !matches!(step, Step::Wait(_))));
    }

    #[test]
    fn broken_bytes_take_the_place_of_their_sign() {
        let text = format!("a{INVALID_UTF8_MARK}b");
        let mut steps = BodySteps::new(
            Content::Whole(text.clone().into()),
            &script("invalid-utf8"),
            None,
        );
        let Some(Step::Send(bytes)) = steps.next() else {
            panic!("the body is sent");
        };
        assert_eq!(bytes.len(), text.len());
        assert!(std::str::from_utf8(&bytes).is_err());
    }

    #[test]
    fn an_endless_line_has_a_limit() {
        let mut steps = BodySteps::new(stream(), &script("endless-line"), None);
        let mut total = 0;
        while let Some(Step::Send(bytes)) = steps.next() {
            assert_eq!(bytes.first(), Some(&b'a'));
            total += bytes.len();
        }
        assert_eq!(total, ENDLESS_BYTES_MAX);
    }
}
