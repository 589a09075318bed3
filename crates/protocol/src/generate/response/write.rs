//! Writes whole answers for clients of Generate Content, and the object that ends a stream.

use super::compose::Composer;
use super::finish;
use super::logprobs;
use crate::canon::{AnswerContext, Response, Stop};
use crate::generate::part::{self, TextKind};
use crate::generate::usage::write_usage;
use crate::json::write::{Object, object};

/// Writes a whole answer.
pub fn write_response(response: &Response, context: &AnswerContext) -> Vec<u8> {
    let mut composer = Composer::default();
    let mut parts = Vec::new();
    let mut tokens = Vec::new();
    for event in response.clone().into_events() {
        composer.event(event, &context.request, &mut |part, of_part| {
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
        part::text(&mut parts, "", TextKind::Answer, pending.as_deref());
    }
    let mut out = Vec::with_capacity(parts.len() + 512);
    write_last(&mut out, &parts, &response.stop, &composer, context);
    out
}

/// Writes the whole answer, or the last chunk of a stream.
pub(in crate::generate) fn write_last(
    out: &mut Vec<u8>,
    parts: &[u8],
    stop: &Stop,
    composer: &Composer,
    context: &AnswerContext,
) {
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
                candidate.text("finishReason", finish::reason_for(stop));
                candidate.number("index", 0);
                write_sources(candidate, composer);
                logprobs::write(candidate, &composer.tokens);
            });
        });
        if let Some(usage) = &composer.usage {
            body.value("usageMetadata", |out| write_usage(out, usage));
        }
        body.text("modelVersion", &context.model);
        body.text("responseId", &context.id);
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
