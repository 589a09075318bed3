//! Finds the tool call that a piece of an answer belongs to.

use std::collections::HashMap;

use crate::canon::Opaque;
use crate::chat::response::wire::Call as CallPiece;
use crate::unusable_answer::UnusableAnswer;

const CALLS_MAX: usize = 1024;

/// A tool call that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// Arguments that arrived before the block of the call was opened.
    pub(super) waiting: String,
    pub(super) signature: Option<Opaque>,
    pub(super) signed: bool,
    pub(super) object_end: ObjectEndDetector,
    pub(super) closed: bool,
}

/// The tool calls of an answer, in the order of their first pieces.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<Call>,
    /// The last call that the upstream sent with each index.
    by_index: HashMap<u64, usize>,
}

/// The call that a piece belongs to.
pub(super) struct MatchedCall {
    pub(super) number: usize,
    /// Whether the piece is the first one of its call.
    pub(super) is_new: bool,
}

impl ToolCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Call> {
        self.calls.get(number)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Call> {
        self.calls.get_mut(number)
    }

    /// Finds the call that a piece belongs to. Some upstreams leave out the index, some repeat it for
    /// the next call, and some send a new id with each piece of a call. Only the first piece of a
    /// call has a name.
    pub(super) fn find(&mut self, piece: &CallPiece<'_>) -> Result<MatchedCall, UnusableAnswer> {
        let last = match piece.index {
            Some(index) => self.by_index.get(&index).copied(),
            None => self.by_id(piece).or(self.calls.len().checked_sub(1)),
        };
        let known = last.and_then(|number| Some((number, self.calls.get(number)?)));
        if let Some((number, call)) = known {
            let another_id = piece
                .id
                .as_ref()
                .is_some_and(|id| !call.id.is_empty() && **id != call.id);
            // A piece without an index starts a new call if it has a name and arguments and the last call is
            // complete.
            let follows = piece.index.is_none()
                && call.object_end.is_whole()
                && piece
                    .arguments
                    .as_ref()
                    .is_some_and(|text| !text.is_empty());
            if !((another_id || follows) && piece.name.is_some()) {
                return Ok(MatchedCall {
                    number,
                    is_new: false,
                });
            }
        }
        let number = self.calls.len();
        if number >= CALLS_MAX {
            return Err(UnusableAnswer::malformed(
                "the answer has too many tool calls",
            ));
        }
        self.calls.push(Call::default());
        if let Some(index) = piece.index {
            self.by_index.insert(index, number);
        }
        Ok(MatchedCall {
            number,
            is_new: true,
        })
    }

    fn by_id(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let id = piece.id.as_deref().filter(|id| !id.is_empty())?;
        self.calls.iter().rposition(|call| call.id == id)
    }
}

/// Detects the end of a JSON object that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct ObjectEndDetector {
    depth: u32,
    in_string: bool,
    escaped: bool,
    whole: bool,
}

impl ObjectEndDetector {
    pub(super) fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => self.depth = self.depth.saturating_add(1),
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}
