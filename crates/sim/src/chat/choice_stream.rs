//! Creates the chunks of one choice of a stream, in order.

use super::annotation::Annotation;
use super::answer::{call_id, finish_word};
use super::audio::clip_id;
use super::delta::Delta;
use super::logprobs::{self, Logprobs};
use super::request::Request;
use crate::model::{Output, Pieces};
use crate::seed::Seed;
use std::collections::VecDeque;

pub(super) struct ChoiceStream {
    index: usize,
    output: Output,
    text_form: TextForm,
    logprobs: Option<usize>,
    legacy: bool,
    stage: Stage,
    call_ids: VecDeque<String>,
}

enum TextForm {
    Text,
    Refusal,
    Voice { clip_id: String, created: u64 },
}

/// The next kind of chunk in the stream of a choice.
enum Stage {
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

pub(super) struct ChoiceChunk {
    pub(super) delta: Delta,
    pub(super) logprobs: Option<Logprobs>,
    pub(super) finish: Option<&'static str>,
    /// Whether the chunk carries a part of the answer.
    pub(super) content: bool,
}

impl ChoiceStream {
    pub(super) fn new(
        index: usize,
        output: Output,
        request: &Request,
        created: u64,
        seed: &mut Seed,
    ) -> Self {
        let call_ids = output.calls.iter().map(|_| call_id(seed)).collect();
        let text_form = if output.refused {
            TextForm::Refusal
        } else if request.speaks(&output) {
            TextForm::Voice {
                clip_id: clip_id(seed),
                created,
            }
        } else {
            TextForm::Text
        };
        Self {
            index,
            output,
            text_form,
            logprobs: request.logprobs,
            legacy: request.legacy,
            stage: Stage::Role,
            call_ids,
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::End)
    }

    pub(super) fn next(&mut self) -> Option<ChoiceChunk> {
        loop {
            match &mut self.stage {
                Stage::Role => {
                    self.stage = Stage::Reasoning(self.output.reasoning.pieces());
                    return Some(ChoiceChunk::frame(Delta::role(self.has_no_text())));
                }
                Stage::Reasoning(pieces) => {
                    if let Some(piece) = pieces.next() {
                        return Some(ChoiceChunk::content(Delta::reasoning(piece)));
                    }
                    self.stage = Stage::ClipStart;
                }
                Stage::ClipStart => {
                    self.stage = Stage::Text(self.output.text.pieces());
                    if let TextForm::Voice { clip_id, .. } = &self.text_form {
                        return Some(ChoiceChunk::frame(Delta::audio_start(clip_id.clone())));
                    }
                }
                Stage::Text(pieces) => {
                    if let Some(piece) = pieces.next() {
                        return Some(self.text_form.spoken(piece, self.logprobs));
                    }
                    self.stage = Stage::ClipEnd;
                }
                Stage::ClipEnd => {
                    self.stage = Stage::Source;
                    if let TextForm::Voice { created, .. } = self.text_form {
                        return Some(ChoiceChunk::frame(Delta::audio_end(created)));
                    }
                }
                Stage::Source => {
                    self.stage = Stage::CallStart(0);
                    if let Some(annotation) = Annotation::of(&self.output) {
                        return Some(ChoiceChunk::frame(Delta::annotation(annotation)));
                    }
                }
                Stage::CallStart(index) => {
                    let index = *index;
                    match self.start_call(index) {
                        Some(spoken) => return Some(spoken),
                        None => self.stage = Stage::Finish,
                    }
                }
                Stage::CallArguments(index, pieces) => {
                    let index = *index;
                    let custom = self.output.calls.get(index).is_some_and(|call| call.custom);
                    if let Some(piece) = pieces.next() {
                        let delta = if self.legacy {
                            Delta::function_part(piece)
                        } else {
                            Delta::call_part(index, custom, piece)
                        };
                        return Some(ChoiceChunk::content(delta));
                    }
                    // The deprecated `function_call` can hold only one call.
                    self.stage = if self.legacy {
                        Stage::Finish
                    } else {
                        Stage::CallStart(index + 1)
                    };
                }
                Stage::Finish => {
                    self.stage = Stage::End;
                    let finish = finish_word(self.output.finish, self.legacy);
                    return Some(ChoiceChunk {
                        finish: Some(finish),
                        ..ChoiceChunk::frame(Delta::default())
                    });
                }
                Stage::End => return None,
            }
        }
    }

    fn start_call(&mut self, index: usize) -> Option<ChoiceChunk> {
        let call = self.output.calls.get(index)?;
        let id = self.call_ids.pop_front().unwrap_or_default();
        let delta = if self.legacy {
            Delta::function_start(call)
        } else {
            Delta::call_start(index, id, call)
        };
        self.stage = Stage::CallArguments(index, call.arguments.pieces());
        Some(ChoiceChunk::content(delta))
    }

    /// Whether the choice has no `content`, because it is a refusal, audio, or only tool calls.
    fn has_no_text(&self) -> bool {
        match self.text_form {
            TextForm::Refusal | TextForm::Voice { .. } => true,
            TextForm::Text => self.output.text.is_empty() && !self.output.calls.is_empty(),
        }
    }
}

impl TextForm {
    fn spoken(&self, piece: &str, alternatives: Option<usize>) -> ChoiceChunk {
        let (delta, refused) = match self {
            Self::Text => (Delta::text(piece), false),
            Self::Refusal => (Delta::refusal(piece), true),
            Self::Voice { .. } => (Delta::audio_part(piece), false),
        };
        ChoiceChunk {
            logprobs: alternatives.map(|count| logprobs::of(piece, count, refused)),
            ..ChoiceChunk::content(delta)
        }
    }
}

impl ChoiceChunk {
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
