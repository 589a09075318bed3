//! Writes a stream of chunks for clients of Generate Content.
//!
//! Every chunk has a part, because clients drop a turn from their history after a chunk without
//! one. Only plain data lines are written, because clients fail on anything else.

use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Event};
use crate::generate::error::write_failure_event;
use crate::generate::part::{self, TextKind};
use crate::generate::response::compose::{Composer, Progress};
use crate::generate::response::logprobs;
use crate::generate::response::write::write_last;
use crate::json::write::object;
use crate::json::write_string;

/// Writes the stream of one answer.
#[derive(Debug)]
pub struct Writer {
    context: AnswerContext,
    composer: Composer,
    /// The members after the content of a chunk.
    tail: Vec<u8>,
    ended: bool,
}

const CONTENT_END: &[u8] = b"]}";
const HEAD: &[u8] = b"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[";

impl Writer {
    /// A writer for one stream.
    pub fn new(context: AnswerContext) -> Self {
        let mut tail = b",\"index\":0}],\"modelVersion\":".to_vec();
        write_string(&mut tail, &context.model);
        tail.extend_from_slice(b",\"responseId\":");
        write_string(&mut tail, &context.id);
        tail.extend_from_slice(b"}\n\n");
        Self {
            context,
            composer: Composer::default(),
            tail,
            ended: false,
        }
    }

    /// Writes the parts that an event completes.
    pub fn event(&mut self, event: Event, out: &mut ByteQueue) {
        if self.ended {
            return;
        }
        let Self {
            context,
            composer,
            tail,
            ended,
        } = self;
        let turn = composer.event(event, &context.request, &mut |part, tokens| {
            out.copy(HEAD);
            out.copy(part);
            out.copy(CONTENT_END);
            if !tokens.is_empty() {
                let mut object_json = Vec::new();
                object(&mut object_json, |candidate| {
                    logprobs::write(candidate, tokens);
                });
                out.copy(b",");
                out.copy(
                    object_json
                        .get(1..object_json.len() - 1)
                        .unwrap_or_default(),
                );
            }
            out.copy(tail);
        });
        match turn {
            Progress::Continues => {}
            Progress::Finished(stop) => {
                let mut parts = Vec::new();
                let pending = composer.pending();
                part::text(&mut parts, "", TextKind::Answer, pending.as_deref());
                let mut last = b"data: ".to_vec();
                write_last(&mut last, &parts, &stop, composer, context);
                last.extend_from_slice(b"\n\n");
                out.copy(&last);
                *ended = true;
            }
            Progress::Failed(failure) => {
                out.copy(&write_failure_event(&failure, ""));
                *ended = true;
            }
        }
    }
}
