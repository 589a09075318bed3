//! Reads the answer of an Interactions upstream, whole or as events.
//!
//! Steps arrive one after another. If events of several steps are mixed, the events of the first step are
//! passed on at once. The others wait until the first step has stopped.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::assembler::Assembler;
use crate::canon::{Event, Stop};
use crate::failure::Failure;
use crate::interactions::answer_layout::{END_MARK, FAILED};
use crate::interactions::response::wire::{Step, StepContent, read_delta, read_step};
use crate::interactions::usage::read_usage;
use crate::json::typed;
use crate::json::{Cursor, Integer, Raw, utf8};
use crate::rejection;
use crate::sse::{Data, Frame};
use crate::unusable_answer::UnusableAnswer;

/// The maximum number of steps that are open at the same time.
const STEPS_MAX: usize = 256;

/// Reads the stream of one answer.
#[derive(Debug)]
pub struct Reader {
    model: Box<str>,
    started: bool,
    /// Steps that are not completely passed on. Pieces of the first step are passed on at once.
    steps: VecDeque<OpenStep>,
    assembler: Assembler,
    calls: usize,
    reported_usage: ReportedUsage,
    ended: bool,
}

/// How much of the interaction the reported usage covers. A wider report replaces a narrower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReportedUsage {
    Nothing,
    SingleSteps,
    WholeInteraction,
}

/// A step, and its pieces that have not been passed on.
#[derive(Debug)]
struct OpenStep {
    index: Option<u64>,
    step: Step,
    pieces: VecDeque<StepContent>,
    stopped: bool,
}

impl Reader {
    /// A reader for one stream of the model with this public id.
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            started: false,
            steps: VecDeque::new(),
            assembler: Assembler::default(),
            calls: 0,
            reported_usage: ReportedUsage::Nothing,
            ended: false,
        }
    }

    /// Reads a whole interaction as if it were a stream.
    pub(in crate::interactions) fn whole(
        model: &str,
        interaction: Raw<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        out.push(Event::Start);
        let mut reader = Self::new(model);
        reader.started = true;
        reader.interaction(interaction, None, out)
    }

    /// Whether only the usage of steps was reported so far.
    pub fn has_only_interim_usage(&self) -> bool {
        self.reported_usage == ReportedUsage::SingleSteps
    }

    /// Reads the next frame.
    pub fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        let data = frame.data();
        let data = match &data {
            Data::Absent => return Ok(()),
            Data::Line(span) => frame.bytes.get(span.clone()).unwrap_or_default(),
            Data::Lines(masked) => masked,
        };
        if self.ended || data.trim_ascii() == END_MARK.data.as_bytes() {
            return Ok(());
        }
        if frame.event() == Some(b"error") {
            return Err(UnusableAnswer::Failure(rejection::read_event(
                data,
                &self.model,
            )));
        }
        self.event(utf8(data)?, frame, out)
    }

    /// Handles the end of the upstream's stream. Returns an error unless the interaction has ended.
    pub fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            Ok(())
        } else {
            Err(UnusableAnswer::Unfinished)
        }
    }

    fn event(
        &mut self,
        text: &str,
        frame: &Frame,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let mut kind = None;
        let mut index = None;
        let [
            mut interaction,
            mut step,
            mut delta,
            mut error,
            mut status,
            mut usage,
        ] = [None::<Raw<'_>>; 6];
        let mut cursor = Cursor::new(text);
        typed::object::<UnusableAnswer>(&mut cursor, "event", |cursor, name| {
            let value = cursor.value()?;
            let some = Some(value).filter(|value| !value.is_null());
            match name {
                "event_type" => kind = value.string().map(|text| text.decode_lossy()),
                "index" => index = value.integer().map(Integer::saturating),
                "interaction" => interaction = some,
                "step" => step = some,
                "delta" => delta = some,
                "error" => error = some,
                "status" => status = some,
                "usage" => usage = some,
                _ => {}
            }
            Ok(())
        })?;
        cursor.end()?;
        let named = || frame.event().map(String::from_utf8_lossy);
        let kind = kind.or_else(named).unwrap_or_default();
        if error.is_some() || kind == "error" {
            let error = error.map_or(text, |error| error.text());
            let failure = rejection::read_event(error.as_bytes(), &self.model);
            return Err(UnusableAnswer::Failure(failure));
        }
        if !self.started {
            self.started = true;
            out.push(Event::Start);
        }
        let usage = usage.and_then(read_usage);
        if usage.is_some() {
            let covered = match kind.as_ref() {
                "interaction.completed" => ReportedUsage::WholeInteraction,
                _ => ReportedUsage::SingleSteps,
            };
            self.reported_usage = self.reported_usage.max(covered);
        }
        self.assembler.usage = usage.or(self.assembler.usage);
        match kind.as_ref() {
            "interaction.status_update" => {
                status.map_or(Ok(()), |status| check_status(status, &self.model))?;
            }
            "step.start" => {
                if let Some(step) = step {
                    self.start(index, read_step(step)?, out)?;
                }
            }
            "step.delta" => {
                for piece in delta.map(read_delta).transpose()?.unwrap_or_default() {
                    self.piece(index, piece, out)?;
                }
            }
            "step.stop" => self.stop(index, out)?,
            "interaction.completed" => {
                // Some servers put the members of the interaction into the event itself.
                let interaction = match interaction {
                    Some(interaction) => interaction,
                    None => Cursor::new(text).value()?,
                };
                self.interaction(interaction, Some("completed"), out)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn start(
        &mut self,
        index: Option<u64>,
        (step, pieces): (Step, Vec<StepContent>),
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        // If an index starts again, the earlier step with that index has stopped. Without indexes,
        // steps arrive one after another.
        for waiting in &mut self.steps {
            waiting.stopped |= waiting.index == index;
        }
        self.flush(out)?;
        if matches!(step, Step::Call { .. }) {
            self.calls += 1;
        }
        if self.steps.len() >= STEPS_MAX {
            return Err(UnusableAnswer::malformed("too many steps at a time"));
        }
        self.steps.push_back(OpenStep {
            index,
            step,
            pieces: pieces.into(),
            stopped: false,
        });
        self.flush(out)
    }

    fn piece(
        &mut self,
        index: Option<u64>,
        piece: StepContent,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if let Some(waiting) = self.running(index) {
            waiting.pieces.push_back(piece);
        } else {
            // Some upstreams send no start event.
            let step = piece.step();
            let step = step.ok_or_else(|| UnusableAnswer::malformed("a call without a name"))?;
            self.start(index, (step, vec![piece]), out)?;
        }
        self.flush(out)
    }

    fn stop(&mut self, index: Option<u64>, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if let Some(waiting) = self.running(index) {
            waiting.stopped = true;
        }
        self.flush(out)
    }

    /// The step that an event belongs to: the last one that started, if the event has no index.
    fn running(&mut self, index: Option<u64>) -> Option<&mut OpenStep> {
        let mut running = self.steps.iter_mut().rev().filter(|step| !step.stopped);
        match index {
            Some(_) => running.find(|waiting| waiting.index == index),
            None => running.next(),
        }
    }

    /// Passes on the pieces of the first step. When that step has stopped, continues with the next one.
    fn flush(&mut self, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        while let Some(first) = self.steps.front_mut() {
            for piece in first.pieces.drain(..) {
                self.assembler.push(&first.step, piece, &self.model, out)?;
            }
            if !first.stopped {
                return Ok(());
            }
            self.assembler.finish(&first.step, out);
            self.steps.pop_front();
        }
        self.assembler.report(out);
        Ok(())
    }

    /// Reads the interaction that ends the answer: status, usage, and its steps if it has any.
    /// `ended` is the status to assume if the interaction states none.
    fn interaction(
        &mut self,
        value: Raw<'_>,
        ended: Option<&str>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let [mut status, mut usage, mut steps, mut error] = [None::<Raw<'_>>; 4];
        let mut failed = false;
        typed::object::<UnusableAnswer>(
            &mut Cursor::new(value.text()),
            "interaction",
            |cursor, name| {
                let value = cursor.value()?;
                let some = Some(value).filter(|value| !value.is_null());
                match name {
                    "status" => status = some,
                    "usage" => usage = some,
                    "steps" => steps = some,
                    "error" => error = some,
                    "errors" => failed |= !value.is_empty() && !value.is_null(),
                    _ => {}
                }
                Ok(())
            },
        )?;
        if let Some(error) = error {
            let failure = rejection::read_event(error.text().as_bytes(), &self.model);
            return Err(UnusableAnswer::Failure(failure));
        }
        if let Some(status) = status {
            check_status(status, &self.model)?;
        }
        let reported = status.and_then(|status| status.string());
        let reported = reported.map(|status| status.decode_lossy());
        let Some(status) = reported.or_else(|| ended.map(Cow::Borrowed)) else {
            return Err(UnusableAnswer::malformed("an interaction without a status"));
        };
        for waiting in &mut self.steps {
            waiting.stopped = true;
        }
        self.flush(out)?;
        // A stream has passed on its steps already.
        if let Some(steps) = steps.filter(|_| !self.assembler.has_passed_events) {
            typed::array::<UnusableAnswer>(
                &mut Cursor::new(steps.text()),
                "steps",
                |cursor, number| {
                    let index = u64::try_from(number).ok();
                    self.start(index, read_step(cursor.value()?)?, out)?;
                    self.stop(index, out)
                },
            )?;
        }
        let usage = usage.and_then(read_usage);
        if usage.is_some() {
            self.reported_usage = ReportedUsage::WholeInteraction;
        }
        self.assembler.usage = usage.or(self.assembler.usage);
        self.assembler.report(out);
        let blocked = failed || self.assembler.blocked;
        out.push(Event::Finish(match status.as_ref() {
            // Without storage the upstream reports `completed` although calls need results.
            _ if self.calls > 0 => Stop::ToolCalls,
            "incomplete" | "requires_continuation" => Stop::Length,
            _ if blocked => Stop::Filter(None),
            _ => Stop::End,
        }));
        self.ended = true;
        Ok(())
    }
}

/// Returns a failure if the status says that the interaction failed.
fn check_status(status: Raw<'_>, model: &str) -> Result<(), UnusableAnswer> {
    let is = |name: &&str| status.string().is_some_and(|status| status.is(name));
    if FAILED.iter().any(is) {
        let cause = format!("{model}: interaction {}", status.text());
        return Err(UnusableAnswer::Failure(
            Failure::upstream_error().because(cause),
        ));
    }
    Ok(())
}
