//! Turns steps into blocks of the common form.

use crate::canon::{Block, Delta, Event, OffsetConverter, Opaque, base64};
use crate::dialect::Dialect;
use crate::interactions::response::wire::{Step, StepContent};
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

/// Assembles pieces of steps into blocks, of which one is open at a time.
#[derive(Debug, Default)]
pub(in crate::interactions) struct Assembler {
    open: Option<OpenBlock>,
    signed: bool,
    offsets: OffsetConverter,
    /// Arguments that came with the start of a call. Fragments replace them.
    arguments: Option<String>,
    pub(in crate::interactions) usage: Option<Usage>,
    pub(in crate::interactions) has_passed_events: bool,
    pub(in crate::interactions) blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thought,
    Call,
}

impl Assembler {
    pub(in crate::interactions) fn push(
        &mut self,
        step: &Step,
        piece: StepContent,
        model: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        match piece {
            StepContent::Text(text) => {
                self.ensure(OpenBlock::Text, step, out)?;
                self.offsets.push(&text);
                out.push(Event::Delta(Delta::Text(text)));
            }
            StepContent::Summary(text) => {
                self.ensure(OpenBlock::Thought, step, out)?;
                out.push(Event::Delta(Delta::Text(text)));
            }
            StepContent::Signature(text) => {
                self.ensure(OpenBlock::Thought, step, out)?;
                out.push(Event::Delta(Delta::Opaque(Opaque {
                    origin: Dialect::Interactions,
                    model: model.into(),
                    text: text.into(),
                })));
                self.signed = true;
            }
            StepContent::Arguments(text) => {
                self.ensure(OpenBlock::Call, step, out)?;
                self.arguments = None;
                out.push(Event::Delta(Delta::Arguments(text)));
            }
            StepContent::CompleteArguments(arguments) => {
                self.ensure(OpenBlock::Call, step, out)?;
                self.arguments = Some(arguments);
            }
            StepContent::Image { mime, data } => {
                self.close(out);
                self.has_passed_events = true;
                let data = base64::standard(&data).into_owned();
                out.push(Event::BlockStart(Block::Image { mime }));
                out.push(Event::Delta(Delta::Text(data)));
                out.push(Event::BlockStop);
            }
            StepContent::Source {
                url,
                title,
                start,
                end,
            } => {
                let start = self.offsets.characters(start);
                let end = self.offsets.characters(end);
                if let (Some(OpenBlock::Text), Some(start), Some(end)) = (self.open, start, end) {
                    out.push(Event::Delta(Delta::Citation {
                        url,
                        title,
                        start,
                        end,
                    }));
                }
            }
            StepContent::Blocked => self.blocked = true,
        }
        Ok(())
    }

    /// Opens a block of this kind, unless the open block is of this kind and not signed yet.
    fn ensure(
        &mut self,
        kind: OpenBlock,
        step: &Step,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if self.open == Some(kind) && !self.signed {
            return Ok(());
        }
        self.close(out);
        let block = match (kind, step) {
            (OpenBlock::Text, _) => Block::Text,
            (OpenBlock::Thought, _) => Block::Thought,
            (OpenBlock::Call, Step::Call { id, name }) => Block::ToolCall {
                id: id.clone(),
                name: name.clone(),
            },
            (OpenBlock::Call, _) => {
                return Err(UnusableAnswer::malformed("arguments outside of a call"));
            }
        };
        out.push(Event::BlockStart(block));
        self.open = Some(kind);
        self.has_passed_events = true;
        self.offsets = OffsetConverter::new();
        Ok(())
    }

    /// Ends a step. A call without arguments gets its block here.
    pub(in crate::interactions) fn finish(&mut self, step: &Step, out: &mut Vec<Event>) {
        if let Step::Call { .. } = step
            && self.open != Some(OpenBlock::Call)
        {
            // This cannot fail: the step of a call can always open the call's block.
            let _ = self.ensure(OpenBlock::Call, step, out);
        }
        self.close(out);
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        if let Some(arguments) = self.arguments.take() {
            out.push(Event::Delta(Delta::Arguments(arguments)));
        }
        if self.open.take().is_some() {
            out.push(Event::BlockStop);
        }
        self.signed = false;
        self.report(out);
    }

    /// Passes on the last usage report, unless a block is open.
    pub(in crate::interactions) fn report(&mut self, out: &mut Vec<Event>) {
        if self.open.is_none() {
            out.extend(self.usage.take().map(Event::Usage));
        }
    }
}
