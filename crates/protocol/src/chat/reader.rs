//! Reads chat answers, whole and streamed.

use super::assembler::Assembler;
use super::places::DONE;
use super::said::Answer;
use crate::canon::{Event, Fold, Response};
use crate::native::Broken;
use crate::rejection;
use crate::sse::{Data, Frame};

/// Reads a whole completion. `model` is the public id, the mark of what only the model can read.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, Broken> {
    let mut events = Vec::new();
    let mut assembler = Assembler::new(model);
    take(&mut assembler, body, model, &mut events).and_then(|choices| {
        if choices {
            assembler.finish(&mut events)
        } else {
            Err(Broken::malformed("the answer has no choices"))
        }
    })?;
    let mut fold = Fold::default();
    let mut folded = events.into_iter().filter_map(|event| fold.push(event));
    match folded.next() {
        Some(Ok(response)) => Ok(response),
        Some(Err(failure)) => Err(Broken::Failure(failure)),
        None => Err(Broken::Unfinished),
    }
}

/// Reads a stream of chunks, frame by frame.
#[derive(Debug)]
pub struct Reader {
    model: Box<str>,
    assembler: Assembler,
    /// Whether a choice has been seen: an end mark alone is no answer.
    begun: bool,
    ended: bool,
}

impl Reader {
    /// A reader for one stream. `model` is the public id, as in [`read_response`].
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            assembler: Assembler::new(model),
            begun: false,
            ended: false,
        }
    }

    /// Takes the next frame. What was put out before a failure is still good.
    pub fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), Broken> {
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

    /// The upstream has closed the stream: an error, unless its end mark has come.
    pub fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), Broken> {
        if self.ended {
            Ok(())
        } else {
            Err(Broken::Unfinished)
        }
    }

    fn data(&mut self, frame: &Frame, data: &[u8], out: &mut Vec<Event>) -> Result<(), Broken> {
        if data.trim_ascii() == DONE.data.as_bytes() {
            if !self.begun {
                return Err(Broken::malformed("the stream has no choices"));
            }
            self.assembler.finish(out)?;
            self.ended = true;
            return Ok(());
        }
        // An event named `error` is one, whatever its data looks like.
        if !frame.is_one_line() && frame.event() == Some(b"error") {
            let failure = rejection::read_event(data, &self.model);
            return Err(Broken::Failure(failure));
        }
        self.begun |= take(&mut self.assembler, data, &self.model, out)?;
        Ok(())
    }
}

/// Takes a completion or a chunk; says whether it had a choice.
fn take(
    assembler: &mut Assembler,
    data: &[u8],
    model: &str,
    out: &mut Vec<Event>,
) -> Result<bool, Broken> {
    let answer = Answer::read(data, model)?;
    if let Some(id) = answer.id {
        assembler.seed(&id);
    }
    let any = !answer.choices.is_empty();
    for choice in answer.choices {
        assembler.choice(choice, out)?;
    }
    if let Some(usage) = answer.usage {
        assembler.usage(usage, out);
    }
    Ok(any)
}
