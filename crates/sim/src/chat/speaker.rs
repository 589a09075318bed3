//! One choice of a stream: gives its deltas in order.

use super::annotation::Annotation;
use super::answer::{call_id, finish_word};
use super::audio::clip_id;
use super::delta::Delta;
use super::logprobs::{self, Logprobs};
use super::request::Request;
use crate::mind::{Output, Pieces};
use crate::seed::Seed;
use std::collections::VecDeque;

pub(super) struct Speaker {
    index: usize,
    output: Output,
    manner: Manner,
    logprobs: Option<usize>,
    legacy: bool,
    at: At,
    call_ids: VecDeque<String>,
}

/// How the text is given.
enum Manner {
    Text,
    Refusal,
    Voice { clip_id: String, created: u64 },
}

/// Where a choice stands.
enum At {
    Role,
    Reasoning(Pieces),
    ClipStart,
    Text(Pieces),
    ClipEnd,
    Source,
    CallStart(usize),
    CallArguments(usize, Pieces),
    Finish,
    End,
}

/// One chunk of a choice.
pub(super) struct Spoken {
    pub(super) delta: Delta,
    pub(super) logprobs: Option<Logprobs>,
    pub(super) finish: Option<&'static str>,
    /// It carries a part of the answer.
    pub(super) content: bool,
}

impl Speaker {
    pub(super) fn new(
        index: usize,
        output: Output,
        request: &Request,
        created: u64,
        seed: &mut Seed,
    ) -> Self {
        let call_ids = output.calls.iter().map(|_| call_id(seed)).collect();
        let manner = if output.refused {
            Manner::Refusal
        } else if request.speaks(&output) {
            Manner::Voice {
                clip_id: clip_id(seed),
                created,
            }
        } else {
            Manner::Text
        };
        Self {
            index,
            output,
            manner,
            logprobs: request.logprobs,
            legacy: request.legacy,
            at: At::Role,
            call_ids,
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.at, At::End)
    }

    pub(super) fn next(&mut self) -> Option<Spoken> {
        loop {
            match &mut self.at {
                At::Role => {
                    self.at = At::Reasoning(self.output.reasoning.pieces());
                    return Some(Spoken::frame(Delta::role(self.has_no_text())));
                }
                At::Reasoning(pieces) => {
                    if let Some(piece) = pieces.next() {
                        return Some(Spoken::content(Delta::reasoning(piece)));
                    }
                    self.at = At::ClipStart;
                }
                At::ClipStart => {
                    self.at = At::Text(self.output.text.pieces());
                    if let Manner::Voice { clip_id, .. } = &self.manner {
                        return Some(Spoken::frame(Delta::audio_start(clip_id.clone())));
                    }
                }
                At::Text(pieces) => {
                    if let Some(piece) = pieces.next() {
                        return Some(self.manner.spoken(piece, self.logprobs));
                    }
                    self.at = At::ClipEnd;
                }
                At::ClipEnd => {
                    self.at = At::Source;
                    if let Manner::Voice { created, .. } = self.manner {
                        return Some(Spoken::frame(Delta::audio_end(created)));
                    }
                }
                At::Source => {
                    self.at = At::CallStart(0);
                    if let Some(annotation) = Annotation::of(&self.output) {
                        return Some(Spoken::frame(Delta::annotation(annotation)));
                    }
                }
                At::CallStart(index) => {
                    let index = *index;
                    match self.start_call(index) {
                        Some(spoken) => return Some(spoken),
                        None => self.at = At::Finish,
                    }
                }
                At::CallArguments(index, pieces) => {
                    let index = *index;
                    let custom = self.output.calls.get(index).is_some_and(|call| call.custom);
                    if let Some(piece) = pieces.next() {
                        let delta = if self.legacy {
                            Delta::function_part(piece)
                        } else {
                            Delta::call_part(index, custom, piece)
                        };
                        return Some(Spoken::content(delta));
                    }
                    // A deprecated answer holds one call.
                    self.at = if self.legacy {
                        At::Finish
                    } else {
                        At::CallStart(index + 1)
                    };
                }
                At::Finish => {
                    self.at = At::End;
                    let finish = finish_word(self.output.finish, self.legacy);
                    return Some(Spoken {
                        finish: Some(finish),
                        ..Spoken::frame(Delta::default())
                    });
                }
                At::End => return None,
            }
        }
    }

    fn start_call(&mut self, index: usize) -> Option<Spoken> {
        let call = self.output.calls.get(index)?;
        let id = self.call_ids.pop_front().unwrap_or_default();
        let delta = if self.legacy {
            Delta::function_start(call)
        } else {
            Delta::call_start(index, id, call)
        };
        self.at = At::CallArguments(index, call.arguments.pieces());
        Some(Spoken::content(delta))
    }

    /// No content will come: a refusal, a voice, or calls alone.
    fn has_no_text(&self) -> bool {
        match self.manner {
            Manner::Refusal | Manner::Voice { .. } => true,
            Manner::Text => self.output.text.is_empty() && !self.output.calls.is_empty(),
        }
    }
}

impl Manner {
    fn spoken(&self, piece: &str, alternatives: Option<usize>) -> Spoken {
        let (delta, refused) = match self {
            Self::Text => (Delta::text(piece), false),
            Self::Refusal => (Delta::refusal(piece), true),
            Self::Voice { .. } => (Delta::audio_part(piece), false),
        };
        Spoken {
            logprobs: alternatives.map(|count| logprobs::of(piece, count, refused)),
            ..Spoken::content(delta)
        }
    }
}

impl Spoken {
    fn frame(delta: Delta) -> Self {
        Self {
            delta,
            logprobs: None,
            finish: None,
            content: false,
        }
    }

    fn content(delta: Delta) -> Self {
        Self {
            content: true,
            ..Self::frame(delta)
        }
    }
}
