//! Reads a stream of chunks into the common form.

use super::assembler::Assembler;
use crate::canon::Event;
use crate::chat::answer_layout::END_MARK;
use crate::rejection;
use crate::sse::{Data, Frame};
use crate::unusable_answer::UnusableAnswer;

/// Reads a stream of chunks, frame by frame.
#[derive(Debug)]
pub struct Reader {
    model: Box<str>,
    assembler: Assembler,
    /// Whether a choice has arrived. A stream with only an end mark is not an answer.
    begun: bool,
    ended: bool,
}

impl Reader {
    /// A reader for one stream. `model` is the public id, as in [`read_response`](crate::chat::read_response).
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            assembler: Assembler::new(model),
            begun: false,
            ended: false,
        }
    }

    /// Takes the next frame. Events that were pushed before a failure are valid.
    pub fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            return Ok(());
        }
        match frame.data() {
            Data::Absent => Ok(()),
            Data::Line(span) => {
                let data = frame.bytes.get(span).unwrap_or_default();
                self.data(frame, data, out)
            }
            Data::Lines(data) => self.data(frame, &data, out),
        }
    }

    /// Handles the end of the upstream's stream. Returns an error unless the end mark has arrived.
    pub fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            Ok(())
        } else {
            Err(UnusableAnswer::Unfinished)
        }
    }

    fn data(
        &mut self,
        frame: &Frame,
        data: &[u8],
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if data.trim_ascii() == END_MARK.data.as_bytes() {
            if !self.begun {
                return Err(UnusableAnswer::malformed("the stream has no choices"));
            }
            self.assembler.finish(out)?;
            self.ended = true;
            return Ok(());
        }
        // An event named `error` is an error, even if its data does not look like one.
        if !frame.is_one_line() && frame.event() == Some(b"error") {
            let failure = rejection::read_event(data, &self.model);
            return Err(UnusableAnswer::Failure(failure));
        }
        self.begun |= self.assembler.take(data, &self.model, out)?;
        Ok(())
    }
}
