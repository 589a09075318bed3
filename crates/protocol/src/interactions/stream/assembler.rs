//! Turns steps into blocks of the common form.

use crate::canon::{Block, Delta, Event, Offsets, Opaque, base64};
use crate::dialect::Dialect;
use crate::interactions::response::wire::{Piece, Step};
use crate::native::Broken;
use crate::usage::Usage;

/// The open block.
#[derive(Debug, Default)]
pub(in crate::interactions) struct Teller {
    open: Option<Open>,
    signed: bool,
    offsets: Offsets,
    /// Arguments that came with the start of a call. Fragments replace them.
    arguments: Option<String>,
    pub(in crate::interactions) usage: Option<Usage>,
    /// Whether any event was passed on.
    pub(in crate::interactions) told: bool,
    /// Whether a step was blocked.
    pub(in crate::interactions) blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thought,
    Call,
}

impl Teller {
    /// Passes on a piece of a step.
    pub(in crate::interactions) fn tell(
        &mut self,
        step: &Step,
        piece: Piece,
        model: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        match piece {
            Piece::Text(text) => {
                self.ensure(Open::Text, step, out)?;
                self.offsets.push(&text);
                out.push(Event::Delta(Delta::Text(text)));
            }
            Piece::Summary(text) => {
                self.ensure(Open::Thought, step, out)?;
                out.push(Event::Delta(Delta::Text(text)));
            }
            Piece::Signature(text) => {
                self.ensure(Open::Thought, step, out)?;
                out.push(Event::Delta(Delta::Opaque(Opaque {
                    origin: Dialect::Interactions,
                    model: model.into(),
                    text: text.into(),
                })));
                self.signed = true;
            }
            Piece::Arguments(text) => {
                self.ensure(Open::Call, step, out)?;
                self.arguments = None;
                out.push(Event::Delta(Delta::Arguments(text)));
            }
            Piece::Given(arguments) => {
                self.ensure(Open::Call, step, out)?;
                self.arguments = Some(arguments);
            }
            Piece::Image { mime, data } => {
                self.close(out);
                self.told = true;
                let data = base64::standard(&data).into_owned();
                out.push(Event::BlockStart(Block::Image { mime }));
                out.push(Event::Delta(Delta::Text(data)));
                out.push(Event::BlockStop);
            }
            Piece::Source {
                url,
                title,
                start,
                end,
            } => {
                let start = self.offsets.characters(start);
                let end = self.offsets.characters(end);
                if let (Some(Open::Text), Some(start), Some(end)) = (self.open, start, end) {
                    out.push(Event::Delta(Delta::Citation {
                        url,
                        title,
                        start,
                        end,
                    }));
                }
            }
            Piece::Blocked => self.blocked = true,
        }
        Ok(())
    }

    /// Opens a block of this kind, unless an open one can continue.
    fn ensure(&mut self, kind: Open, step: &Step, out: &mut Vec<Event>) -> Result<(), Broken> {
        if self.open == Some(kind) && !self.signed {
            return Ok(());
        }
        self.close(out);
        let block = match (kind, step) {
            (Open::Text, _) => Block::Text,
            (Open::Thought, _) => Block::Thought,
            (Open::Call, Step::Call { id, name }) => Block::ToolCall {
                id: id.clone(),
                name: name.clone(),
            },
            (Open::Call, _) => return Err(Broken::malformed("arguments outside of a call")),
        };
        out.push(Event::BlockStart(block));
        self.open = Some(kind);
        self.told = true;
        self.offsets = Offsets::new();
        Ok(())
    }

    /// Ends a step. A call without arguments is a call too.
    pub(in crate::interactions) fn finish(&mut self, step: &Step, out: &mut Vec<Event>) {
        if let Step::Call { .. } = step
            && self.open != Some(Open::Call)
        {
            // The step of a call can always open it.
            let _ = self.ensure(Open::Call, step, out);
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

    /// Passes on the last usage between two blocks.
    pub(in crate::interactions) fn report(&mut self, out: &mut Vec<Event>) {
        if self.open.is_none() {
            out.extend(self.usage.take().map(Event::Usage));
        }
    }
}
