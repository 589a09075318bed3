//! Writes answers for callers of Generate Content, whole or in chunks.
//!
//! Clients drop a turn from their history when a chunk comes without a part, so every chunk has
//! one; they fail on anything but plain data lines, so nothing else is written.

use crate::canon::{Echo, Event, Response, Stop};
use crate::joined::Joined;
use crate::json::write::{Object, object};
use crate::json::write_string;

use super::compose::{Composer, Turn};
use super::error::write_failure_event;
use super::finish;
use super::logprobs;
use super::part::{self, Voice};
use super::usage::write_usage;

/// Writes a whole answer.
pub fn write_response(response: &Response, echo: &Echo) -> Vec<u8> {
    let mut composer = Composer::default();
    let mut parts = Vec::new();
    let mut tokens = Vec::new();
    for event in response.clone().unfold() {
        composer.event(event, &echo.request, &mut |part, of_part| {
            if !parts.is_empty() {
                parts.push(b',');
            }
            parts.extend_from_slice(part);
            tokens.extend_from_slice(of_part);
        });
    }
    tokens.append(&mut composer.tokens);
    composer.tokens = tokens;
    let pending = composer.pending();
    if parts.is_empty() || pending.is_some() {
        if !parts.is_empty() {
            parts.push(b',');
        }
        part::text(&mut parts, "", Voice::Aloud, pending.as_deref());
    }
    let mut out = Vec::with_capacity(parts.len() + 512);
    write_last(&mut out, &parts, &response.stop, &composer, echo);
    out
}

/// Writes a stream.
#[derive(Debug)]
pub struct Writer {
    echo: Echo,
    composer: Composer,
    /// What stands behind the content of a chunk.
    tail: Vec<u8>,
    ended: bool,
}

const CONTENT_END: &[u8] = b"]}";
const HEAD: &[u8] = b"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[";

impl Writer {
    /// A writer for one stream.
    pub fn new(echo: Echo) -> Self {
        let mut tail = b",\"index\":0}],\"modelVersion\":".to_vec();
        write_string(&mut tail, &echo.model);
        tail.extend_from_slice(b",\"responseId\":");
        write_string(&mut tail, &echo.id);
        tail.extend_from_slice(b"}\n\n");
        Self {
            echo,
            composer: Composer::default(),
            tail,
            ended: false,
        }
    }

    /// Writes what an event completes.
    pub fn event(&mut self, event: Event, out: &mut Joined) {
        if self.ended {
            return;
        }
        let Self {
            echo,
            composer,
            tail,
            ended,
        } = self;
        let turn = composer.event(event, &echo.request, &mut |part, tokens| {
            out.copy(HEAD);
            out.copy(part);
            out.copy(CONTENT_END);
            if !tokens.is_empty() {
                let mut told = Vec::new();
                object(&mut told, |candidate| logprobs::write(candidate, tokens));
                out.copy(b",");
                out.copy(told.get(1..told.len() - 1).unwrap_or_default());
            }
            out.copy(tail);
        });
        match turn {
            Turn::GoesOn => {}
            Turn::Finished(stop) => {
                let mut parts = Vec::new();
                let pending = composer.pending();
                part::text(&mut parts, "", Voice::Aloud, pending.as_deref());
                let mut last = b"data: ".to_vec();
                write_last(&mut last, &parts, &stop, composer, echo);
                last.extend_from_slice(b"\n\n");
                out.copy(&last);
                *ended = true;
            }
            Turn::Failed(failure) => {
                out.copy(&write_failure_event(&failure, ""));
                *ended = true;
            }
        }
    }
}

/// Writes the object that ends an answer: the whole of it, or the last chunk.
fn write_last(out: &mut Vec<u8>, parts: &[u8], stop: &Stop, composer: &Composer, echo: &Echo) {
    object(out, |body| {
        body.array("candidates", |candidates| {
            candidates.object(|candidate| {
                candidate.object("content", |content| {
                    content.text("role", "model");
                    content.value("parts", |out| {
                        out.push(b'[');
                        out.extend_from_slice(parts);
                        out.push(b']');
                    });
                });
                candidate.text("finishReason", finish::told(stop));
                candidate.number("index", 0);
                write_sources(candidate, composer);
                logprobs::write(candidate, &composer.tokens);
            });
        });
        if let Some(usage) = &composer.usage {
            body.value("usageMetadata", |out| write_usage(out, usage));
        }
        body.text("modelVersion", &echo.model);
        body.text("responseId", &echo.id);
    });
}

fn write_sources(candidate: &mut Object<'_>, composer: &Composer) {
    if composer.sources.is_empty() {
        return;
    }
    candidate.object("groundingMetadata", |grounding| {
        grounding.array("groundingChunks", |chunks| {
            for source in &composer.sources {
                chunks.object(|chunk| {
                    chunk.object("web", |web| {
                        web.text("uri", &source.url).text("title", &source.title);
                    });
                });
            }
        });
        grounding.array("groundingSupports", |supports| {
            for (number, source) in composer.sources.iter().enumerate() {
                supports.object(|support| {
                    support.object("segment", |segment| {
                        segment.number("startIndex", source.start);
                        segment.number("endIndex", source.end);
                    });
                    support.raw("groundingChunkIndices", &format!("[{number}]"));
                });
            }
        });
    });
}
