//! Collects the events into which a whole answer is converted.

use bytes::Bytes;

use crate::json::write::{Object, object};
use crate::json::{Cursor, Raw};
use crate::unusable_answer::UnusableAnswer;

/// The maximum number of events per answer. Each event takes memory in addition to the bytes of the answer, and
/// no ordinary answer has this many parts.
const EVENTS_MAX: usize = 16_384;

/// Receives the events of a whole answer one by one.
pub(crate) struct Events<'e> {
    take: &'e mut dyn FnMut(Bytes) -> Result<(), UnusableAnswer>,
    count: usize,
}

/// Writes a whole answer as the events of a stream. The caller has checked that the text is an answer.
pub(crate) type WriteEvents = fn(Raw<'_>, &mut Events<'_>) -> Result<(), UnusableAnswer>;

impl<'e> Events<'e> {
    pub(crate) fn new(take: &'e mut dyn FnMut(Bytes) -> Result<(), UnusableAnswer>) -> Self {
        Self { take, count: 0 }
    }

    /// Adds an event whose data repeats its name in `member`.
    pub(crate) fn named(
        &mut self,
        member: &str,
        name: &str,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Result<(), UnusableAnswer> {
        self.push(format!("event: {name}\ndata: ").into_bytes(), |it| {
            it.text(member, name);
            write(it);
        })
    }

    /// Adds an event without a name.
    pub(crate) fn data(
        &mut self,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Result<(), UnusableAnswer> {
        self.push(b"data: ".to_vec(), write)
    }

    /// Adds an event that only ends the stream.
    pub(crate) fn end(&mut self, frame: &'static str) -> Result<(), UnusableAnswer> {
        (self.take)(Bytes::from_static(frame.as_bytes()))
    }

    fn push(
        &mut self,
        mut frame: Vec<u8>,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Result<(), UnusableAnswer> {
        self.count += 1;
        if self.count > EVENTS_MAX {
            return Err(UnusableAnswer::malformed("the answer has too many parts"));
        }
        object(&mut frame, write);
        frame.extend_from_slice(b"\n\n");
        (self.take)(Bytes::from(frame))
    }
}

/// Calls a function with each item of a list and its position.
pub(crate) fn each_item<'a>(
    list: Raw<'a>,
    mut each: impl FnMut(usize, Raw<'a>) -> Result<(), UnusableAnswer>,
) -> Result<(), UnusableAnswer> {
    let mut position = 0;
    Cursor::new(list.text()).array(|cursor| {
        each(position, cursor.value()?)?;
        position += 1;
        Ok(())
    })
}
