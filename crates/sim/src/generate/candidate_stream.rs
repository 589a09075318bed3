//! Creates the events of one candidate of a stream, in order.

use super::plan::CandidatePlan;
use super::shape::{Candidate, Content, FunctionCall, Part};
use crate::model::Pieces;
use std::vec;

pub(super) struct CandidateStream {
    plan: CandidatePlan,
    stage: Stage,
}

/// The next kind of event in the stream of a candidate.
enum Stage {
    Thoughts(Pieces),
    Text(Pieces),
    Picture,
    Calls(vec::IntoIter<FunctionCall>),
    End,
}

pub(super) enum CandidateEvent {
    /// Carries a part of the answer.
    Part(Candidate),
    /// Ends the candidate.
    Ending(Candidate),
}

impl CandidateStream {
    pub(super) fn new(plan: CandidatePlan) -> Self {
        let stage = Stage::Thoughts(plan.thoughts.pieces());
        Self { plan, stage }
    }

    /// The next event; `None` after the last one.
    pub(super) fn next(&mut self) -> Option<CandidateEvent> {
        loop {
            match &mut self.stage {
                Stage::Thoughts(pieces) => {
                    if let Some(piece) = pieces.next() {
                        let part = Part::thought(piece);
                        return Some(self.spoken(part));
                    }
                    self.stage = Stage::Text(self.plan.text.pieces());
                }
                Stage::Text(pieces) => {
                    if let Some(piece) = pieces.next() {
                        let piece = piece.to_owned();
                        return Some(self.text(piece));
                    }
                    self.stage = Stage::Picture;
                }
                Stage::Picture => {
                    let calls = std::mem::take(&mut self.plan.calls);
                    self.stage = Stage::Calls(calls.into_iter());
                    if let Some(picture) = self.plan.picture.take() {
                        return Some(self.spoken(Part::picture(picture)));
                    }
                }
                Stage::Calls(calls) => {
                    let Some(call) = calls.next() else {
                        self.stage = Stage::End;
                        return Some(self.ending());
                    };
                    // Only the first call is signed.
                    let part = Part::call(call).signed(self.plan.signature.take());
                    return Some(self.spoken(part));
                }
                Stage::End => return None,
            }
        }
    }

    fn text(&self, piece: String) -> CandidateEvent {
        let candidate = Candidate::default().with_logprobs(&piece, self.plan.logprobs);
        self.adding(candidate, Part::text(piece))
    }

    fn spoken(&self, part: Part) -> CandidateEvent {
        self.adding(Candidate::default(), part)
    }

    fn adding(&self, candidate: Candidate, part: Part) -> CandidateEvent {
        CandidateEvent::Part(Candidate {
            content: Some(Content::new(vec![part])),
            index: self.plan.index,
            ..candidate
        })
    }

    /// The last event. It has an empty text, which carries the signature if no call did.
    fn ending(&mut self) -> CandidateEvent {
        let part = Part::text("").signed(self.plan.signature.take());
        CandidateEvent::Ending(Candidate {
            content: Some(Content::new(vec![part])),
            ..self.plan.ending.candidate(self.plan.index)
        })
    }
}
