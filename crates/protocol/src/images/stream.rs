//! Rewrites streams of images: previews and results are passed on as they arrive, with the public
//! model id.
//!
//! Events are large. An event that arrives in one read is passed on without a copy. An event that
//! arrives in several reads is copied once.

use std::ops::Range;

use bytes::Bytes;

use super::answer::{reported_grade, shown_error};
use super::delivery::{ClientImage, DeliveryForm, SentImage};
use super::family::Family;
use super::request::{Operation, Request};
use super::usage;
use crate::byte_queue::ByteQueue;
use crate::failure::{Failure, Family as Envelope};
use crate::json::patch::{self, Edit};
use crate::json::{Cursor, Integer, Raw, SyntaxError, utf8, write_string};
use crate::native::{AnswerSummary, KEEP_ALIVE, UnusableAnswer};
use crate::rejection;
use crate::scrub::Ids;
use crate::sse::{Data, Frame, Splitter};

/// The maximum size of an event, which contains a picture in base64.
const EVENT_BYTES_MAX: usize = 64 << 20;
const DONE: &[u8] = b"[DONE]";
/// Prefixes of event names, by endpoint.
const GENERATION: &str = "image_generation.";
const EDIT: &str = "image_edit.";

/// Rewrites a stream of pictures.
#[derive(Debug)]
pub struct Rewriter {
    family: Family,
    /// The endpoint that was called. Events are named after it.
    operation: Operation,
    wanted: DeliveryForm,
    /// The public model id, as JSON.
    model: Vec<u8>,
    public_model: Box<str>,
    /// The largest number of pictures that the request allows. As many results end the stream in the
    /// GPT family. In the others, a mark or the end of the connection does.
    images_max: u64,
    splitter: Splitter,
    /// The member that holds the last image, for a final event that has no image.
    last: Option<Bytes>,
    completed: u64,
    /// The number of pictures of which something was delivered, also if it was only a preview.
    begun: u64,
    summary: AnswerSummary,
}

#[derive(Default)]
struct Event<'a> {
    kind: Option<Raw<'a>>,
    model: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
    usage: Option<Raw<'a>>,
    quality: Option<Raw<'a>>,
    resolution: Option<Raw<'a>>,
    size: Option<Raw<'a>>,
    /// The position among the previews of its picture.
    preview: Option<Raw<'a>>,
    given: SentImage<'a>,
    /// Edits that remove the upstream's identity.
    edits: Vec<Edit>,
    inside: usize,
}

impl Rewriter {
    /// A rewriter for the answer to a request.
    pub fn new(request: &Request, family: Family, public_model: &str) -> Self {
        let mut model = Vec::new();
        write_string(&mut model, public_model);
        Self {
            family,
            operation: request.operation,
            wanted: DeliveryForm::of(&request.options, family),
            model,
            public_model: public_model.into(),
            images_max: request.images_max(family),
            splitter: Splitter::new(EVENT_BYTES_MAX),
            last: None,
            completed: 0,
            begun: 0,
            summary: AnswerSummary {
                pictures: Some(Box::default()),
                ..AnswerSummary::default()
            },
        }
    }

    /// Takes the bytes of one read and writes the complete events in it.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.summary.ended {
            return Ok(());
        }
        self.splitter.push(chunk);
        while let Some(frame) = self.splitter.next_frame()? {
            self.frame(&frame, out)?;
            if self.summary.ended {
                return Ok(());
            }
        }
        let pending = self.splitter.pending_data();
        if pending.is_some_and(|data| data.trim_ascii() == DONE) {
            self.done(out)?;
        }
        Ok(())
    }

    /// Handles the end of the upstream's stream. Returns an error unless an image was completed.
    pub fn end(&mut self, _: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.summary.ended {
            return Ok(());
        }
        let rest = self.splitter.finish();
        let is_whole = rest.is_none_or(|rest| matches!(rest.data(), Data::Absent));
        self.summary.ended = is_whole && self.completed > 0;
        if !self.summary.ended {
            return Err(UnusableAnswer::Unfinished);
        }
        // Otherwise pictures may be missing.
        if !self.is_ended_by_count() {
            self.forget_previews();
        }
        Ok(())
    }

    /// Ends the stream with an error event. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        let envelope = failure.write(Envelope::OpenAi, request_id);
        out.copy(b"event: error\ndata: {\"type\":\"error\",");
        out.copy(envelope.get(1..).unwrap_or_default());
        out.copy(b"\n\n");
    }

    /// The number of bytes that wait until their event is complete.
    pub fn held_bytes(&self) -> usize {
        let last = self.last.as_ref().map_or(0, Bytes::len);
        self.splitter.held_bytes().saturating_add(last)
    }

    /// The summary of the stream so far.
    pub fn summary(&self) -> &AnswerSummary {
        &self.summary
    }

    fn frame(&mut self, frame: &Frame, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        let (data, at): (std::borrow::Cow<'_, [u8]>, usize) = match frame.data() {
            Data::Absent if frame.has_fields() || frame.bytes.trim_ascii().is_empty() => {
                return Ok(());
            }
            Data::Absent => {
                out.copy(KEEP_ALIVE);
                return Ok(());
            }
            _ if !frame.is_without_metadata() => return self.frame(&frame.without_metadata(), out),
            Data::Line(Range { start, end }) => (
                frame.bytes.get(start..end).unwrap_or_default().into(),
                start,
            ),
            Data::Lines(masked) => (masked, 0),
        };
        if data.trim_ascii() == DONE {
            return self.done(out);
        }
        let text = utf8(&data)?;
        let mut event = Event::read(text, &self.model)?;
        let kind = event.kind.and_then(|kind| kind.string());
        let kind = kind.and_then(|kind| kind.decode().ok()).unwrap_or_default();
        let is_part_failure = kind.ends_with(".partial_failed");
        let error = event.error.filter(|error| rejection::is_error(*error));
        if kind == "error"
            || frame.event() == Some(b"error")
            || (error.is_some() && !is_part_failure)
        {
            self.note_usage(&event, false);
            let error_text = error.map_or(text, |error| error.text());
            let failure = rejection::read_event(error_text.as_bytes(), &self.public_model);
            return Err(UnusableAnswer::Failure(failure));
        }
        let mut edits = std::mem::take(&mut event.edits);
        for edit in &mut edits {
            edit.span = shifted(edit.span.clone(), at);
        }
        if let Some(model) = event.model {
            edits.push(Edit::replace(shifted(model.span(), at), self.model.clone()));
        }
        let usage = event.usage.into_iter();
        let usage = usage.flat_map(|usage| usage::shown(usage, self.family, &self.public_model));
        let rewritten = error.map(shown_error).into_iter().chain(usage);
        edits.extend(rewritten.map(|edit| Edit::replace(shifted(edit.span, at), edit.text)));
        self.rename(&event, &kind, frame, at, &mut edits);
        let picture = event.given.picture(self.wanted);
        if let Some(picture) = &picture {
            edits.extend(picture.edits(at));
        }
        if kind.ends_with(".completed") {
            self.complete(&event, picture.is_none(), at, &mut edits);
        }
        self.note(&event, &kind, picture.as_ref());
        patch::apply_to(&frame.bytes, edits, out);
        Ok(())
    }

    /// Names an event after the endpoint that was called (`docs/api/images.md`), because some
    /// upstreams have one endpoint for both.
    fn rename(
        &self,
        event: &Event<'_>,
        kind: &str,
        frame: &Frame,
        at: usize,
        edits: &mut Vec<Edit>,
    ) {
        let (own, other) = match self.operation {
            Operation::Generation => (GENERATION, EDIT),
            Operation::Edit => (EDIT, GENERATION),
        };
        if let (Some(rest), Some(value)) = (kind.strip_prefix(other), event.kind) {
            let mut name = Vec::new();
            write_string(&mut name, &format!("{own}{rest}"));
            edits.push(Edit::replace(shifted(value.span(), at), name));
        }
        let named = frame.event_span();
        let named = named.filter(|span| {
            let name = frame.bytes.get(span.clone()).unwrap_or_default();
            name.starts_with(other.as_bytes())
        });
        if let Some(Range { start, .. }) = named {
            edits.push(Edit::replace(start..start + other.len(), own.as_bytes()));
        }
    }

    /// Adds to the final event of an image the members that clients expect but the upstream left
    /// out.
    fn complete(
        &mut self,
        event: &Event<'_>,
        lacks_picture: bool,
        at: usize,
        edits: &mut Vec<Edit>,
    ) {
        let mut missing = Vec::new();
        // The completion event carries the final image (`docs/api/images.md`).
        if lacks_picture && let Some(last) = self.last.take() {
            missing.extend_from_slice(&last);
            missing.push(b',');
        }
        if matches!(self.family, Family::VideoA | Family::Content) {
            match event.usage {
                Some(usage) if usage.is_null() => {
                    edits.push(Edit::replace(shifted(usage.span(), at), usage::NONE));
                }
                Some(_) => {}
                None => {
                    missing.extend_from_slice(b"\"usage\":");
                    missing.extend_from_slice(usage::NONE);
                    missing.push(b',');
                }
            }
        }
        if !missing.is_empty() {
            edits.push(Edit::insert(at + event.inside, missing));
        }
    }

    fn note(&mut self, event: &Event<'_>, kind: &str, picture: Option<&ClientImage<'_>>) {
        let completed = kind.ends_with(".completed");
        let is_result = completed || kind.ends_with(".partial_succeeded");
        if let Some(picture) = picture {
            self.summary.content = true;
            self.note_picture(event, is_result);
            if self.family == Family::Content && !completed {
                self.last = Some(picture.member().into());
            }
        }
        self.note_usage(event, completed && picture.is_some());
        if completed {
            self.summary.content = true;
            self.completed += 1;
            self.summary.ended = self.is_ended_by_count() && self.completed >= self.images_max;
        }
    }

    /// Records a picture or a preview of one. A preview without a position is not the first one.
    fn note_picture(&mut self, event: &Event<'_>, is_result: bool) {
        let Some(pictures) = self.summary.pictures.as_deref_mut() else {
            return;
        };
        if is_result {
            pictures.delivered += 1;
        } else {
            let is_first = event.preview.and_then(|it| it.integer()) == Some(Integer::Value(0));
            // Previews of several pictures may be mixed, and their numbers may go on.
            let begun = self.begun.saturating_add(u64::from(is_first));
            self.begun = begun.max(pictures.delivered + 1);
        }
        // Nothing says to which picture a preview belongs, and an upstream may begin one twice.
        let most = self.images_max.saturating_sub(pictures.delivered);
        let previewed = self.begun.saturating_sub(pictures.delivered);
        pictures.previewed = previewed.min(most);
        let grade = reported_grade(event.quality, event.resolution, event.size);
        pictures.reported.merge(grade);
    }

    /// Records usage. In some families each result has its own report, and the reports are added up.
    fn note_usage(&mut self, event: &Event<'_>, adds: bool) {
        let Some(usage) = event.usage.filter(|usage| !usage.is_null()) else {
            return;
        };
        let Some(reported) = usage::read(usage) else {
            self.summary.usage_malformed = true;
            return;
        };
        self.summary.usage = match (self.summary.usage, reported.tokens) {
            (Some(before), Some(tokens)) if adds => Some(usage::add(before, tokens)),
            (before, tokens) => tokens.or(before),
        };
        self.summary.tools.raise(&reported.tools);
        if let Some(pictures) = self.summary.pictures.as_deref_mut() {
            pictures.usd_ticks = reported.usd_ticks.or(pictures.usd_ticks);
        }
    }

    /// Handles the mark that ends some streams. A mark before any result is an error.
    fn done(&mut self, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        if self.completed == 0 {
            return Err(UnusableAnswer::Unfinished);
        }
        self.summary.ended = true;
        self.forget_previews();
        out.copy(b"data: [DONE]\n\n");
        Ok(())
    }

    fn is_ended_by_count(&self) -> bool {
        self.family == Family::Gpt
    }

    /// Nothing follows the previews of a whole stream, so those without a result were further ones of other pictures.
    /// A completion without a picture stands for the picture of its previews.
    fn forget_previews(&mut self) {
        if let Some(pictures) = self.summary.pictures.as_deref_mut() {
            let without_picture = self.completed.saturating_sub(pictures.delivered);
            pictures.previewed = pictures.previewed.min(without_picture);
        }
    }
}

impl<'a> Event<'a> {
    fn read(text: &'a str, model: &[u8]) -> Result<Self, UnusableAnswer> {
        let mut event = Self::default();
        let mut ids = Ids::new(model, 0);
        let mut edits = Vec::new();
        let mut cursor = Cursor::new(text);
        cursor.shape()?;
        event.inside = cursor.position().saturating_add(1);
        let mut any = false;
        cursor.object(|cursor, name| {
            any = true;
            let value = cursor.value()?;
            let is_picture = event.given.note(name, value);
            let place = [
                ("type", &mut event.kind),
                ("model", &mut event.model),
                ("error", &mut event.error),
                ("usage", &mut event.usage),
                ("quality", &mut event.quality),
                ("resolution", &mut event.resolution),
                ("size", &mut event.size),
                ("partial_image_index", &mut event.preview),
            ]
            .into_iter()
            .find(|(known, _)| name.is(known));
            let is_known = is_picture || place.is_some();
            if let Some((_, place)) = place {
                *place = Some(value);
            }
            if is_known {
                ids.keep(name, value, &mut edits);
            } else {
                ids.member(name, value, &mut edits);
            }
            Ok::<(), SyntaxError>(())
        })?;
        cursor.end()?;
        ids.end(&mut edits);
        event.edits = edits;
        if any {
            Ok(event)
        } else {
            Err(UnusableAnswer::malformed("an event is an empty object"))
        }
    }
}

fn shifted(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

#[cfg(test)]
mod tests;
