//! One candidate of a stream: gives its parts in order.

use super::shape::{Candidate, Content, FunctionCall, Part};
use super::telling::Telling;
use crate::mind::Pieces;
use std::vec;

pub(super) struct Speaker {
    telling: Telling,
    at: At,
}

/// Where a candidate stands.
enum At {
    Thoughts(Pieces),
    Text(Pieces),
    Picture,
    Calls(vec::IntoIter<FunctionCall>),
    End,
}

/// What one event tells.
pub(super) enum Spoken {
    /// A part of the answer.
    Part(Candidate),
    /// The last event of the candidate.
    Ending(Candidate),
}

impl Speaker {
    pub(super) fn new(telling: Telling) -> Self {
        let at = At::Thoughts(telling.thoughts.pieces());
        Self { telling, at }
    }

    /// `None` when the ending has been told.
    pub(super) fn next(&mut self) -> Option<Spoken> {
        loop {
            match &mut self.at {
                At::Thoughts(pieces) => {
                    if let Some(piece) = pieces.next() {
                        let part = Part::thought(piece);
                        return Some(self.spoken(part));
                    }
                    self.at = At::Text(self.telling.text.pieces());
                }
                At::Text(pieces) => {
                    if let Some(piece) = pieces.next() {
                        let piece = piece.to_owned();
                        return Some(self.text(piece));
                    }
                    self.at = At::Picture;
                }
                At::Picture => {
                    let calls = std::mem::take(&mut self.telling.calls);
                    self.at = At::Calls(calls.into_iter());
                    if let Some(picture) = self.telling.picture.take() {
                        return Some(self.spoken(Part::picture(picture)));
                    }
                }
                At::Calls(calls) => {
                    let Some(call) = calls.next() else {
                        self.at = At::End;
                        return Some(self.ending());
                    };
                    // Only the first call of a step is signed.
                    let part = Part::call(call).signed(self.telling.signature.take());
                    return Some(self.spoken(part));
                }
                At::End => return None,
            }
        }
    }

    fn text(&self, piece: String) -> Spoken {
        let candidate = Candidate::default().with_logprobs(&piece, self.telling.logprobs);
        self.adding(candidate, Part::text(piece))
    }

    fn spoken(&self, part: Part) -> Spoken {
        self.adding(Candidate::default(), part)
    }

    fn adding(&self, candidate: Candidate, part: Part) -> Spoken {
        Spoken::Part(Candidate {
            content: Some(Content::new(vec![part])),
            index: self.telling.index,
            ..candidate
        })
    }

    /// The ending comes with an empty text, which carries the signature where no call did.
    fn ending(&mut self) -> Spoken {
        let part = Part::text("").signed(self.telling.signature.take());
        Spoken::Ending(Candidate {
            content: Some(Content::new(vec![part])),
            ..self.telling.ending.candidate(self.telling.index)
        })
    }
}
