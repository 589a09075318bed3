//! Streams of pictures: previews and results as they come, the model's name aside.
//!
//! Events are large. One that is whole in a read goes on as the same bytes; what came in several is
//! joined once.

use std::ops::Range;

use bytes::Bytes;

use super::answer::{told_grade, without_message};
use super::family::Family;
use super::usage;
use crate::failure::{Failure, Family as Envelope};
use crate::joined::Joined;
use crate::json::patch::{self, Edit};
use crate::json::{Cursor, Raw, Shape, SyntaxError, utf8, write_string};
use crate::native::{Broken, Seen};
use crate::rejection;
use crate::sse::{Data, Frame, Splitter};

/// The largest event: a picture in base64.
const EVENT_BYTES_MAX: usize = 64 << 20;
const DONE: &[u8] = b"[DONE]";

/// Rewrites a stream of pictures.
#[derive(Debug)]
pub struct Rewriter {
    family: Family,
    /// The public model id, as JSON.
    model: Vec<u8>,
    public_model: Box<str>,
    /// Results that end the stream; unknown where their number is the upstream's to choose.
    expected: Option<u64>,
    splitter: Splitter,
    /// The member that holds the last picture, for a final event that has none.
    last: Option<Bytes>,
    completed: u64,
    seen: Seen,
}

/// What one event says.
#[derive(Default)]
struct Event<'a> {
    kind: Option<Raw<'a>>,
    model: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
    usage: Option<Raw<'a>>,
    quality: Option<Raw<'a>>,
    resolution: Option<Raw<'a>>,
    size: Option<Raw<'a>>,
    /// The name and value of the picture.
    picture: Option<(&'static str, Raw<'a>)>,
    inside: usize,
}

impl Rewriter {
    /// A rewriter for one stream of `images` pictures.
    pub fn new(family: Family, public_model: &str, images: u64) -> Self {
        let mut model = Vec::new();
        write_string(&mut model, public_model);
        Self {
            family,
            model,
            public_model: public_model.into(),
            expected: (family == Family::Gpt).then_some(images),
            splitter: Splitter::new(EVENT_BYTES_MAX),
            last: None,
            completed: 0,
            seen: Seen {
                pictures: Some(Box::default()),
                ..Seen::default()
            },
        }
    }

    /// Takes what one read brought and puts out the complete events in it.
    pub fn push(&mut self, chunk: Bytes, out: &mut Joined) -> Result<(), Broken> {
        if self.seen.ended {
            return Ok(());
        }
        self.splitter.push(chunk);
        while let Some(frame) = self.splitter.next_frame()? {
            self.frame(&frame, out)?;
            if self.seen.ended {
                return Ok(());
            }
        }
        let pending = self.splitter.pending_data();
        if pending.is_some_and(|data| data.trim_ascii() == DONE) {
            self.done(out)?;
        }
        Ok(())
    }

    /// The upstream has closed the stream: an error, unless a picture was completed.
    pub fn end(&mut self, _: &mut Joined) -> Result<(), Broken> {
        if self.seen.ended {
            return Ok(());
        }
        let rest = self.splitter.finish();
        let is_whole = rest.is_none_or(|rest| matches!(rest.data(), Data::Absent));
        self.seen.ended = is_whole && self.completed > 0;
        if self.seen.ended {
            Ok(())
        } else {
            Err(Broken::Unfinished)
        }
    }

    /// Ends the stream with an error event. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut Joined) {
        let envelope = failure.write(Envelope::OpenAi, request_id);
        out.copy(b"event: error\ndata: {\"type\":\"error\",");
        out.copy(envelope.get(1..).unwrap_or_default());
        out.copy(b"\n\n");
    }

    /// Bytes that wait for the end of their event.
    pub fn held_bytes(&self) -> usize {
        let last = self.last.as_ref().map_or(0, Bytes::len);
        self.splitter.held_bytes().saturating_add(last)
    }

    /// What has gone by.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    fn frame(&mut self, frame: &Frame, out: &mut Joined) -> Result<(), Broken> {
        let (data, at): (std::borrow::Cow<'_, [u8]>, usize) = match frame.data() {
            Data::Absent if frame.has_fields() => return Ok(()),
            Data::Absent => {
                out.push(frame.bytes.clone());
                return Ok(());
            }
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
        let event = Event::look(text)?;
        let kind = event.kind.and_then(|kind| kind.string());
        let kind = kind.and_then(|kind| kind.decode().ok()).unwrap_or_default();
        let is_part_failure = kind.ends_with(".partial_failed");
        let error = event.error.filter(|error| rejection::is_error(*error));
        if kind == "error"
            || frame.event() == Some(b"error")
            || (error.is_some() && !is_part_failure)
        {
            self.note_usage(&event, false);
            let told = error.map_or(text, |error| error.text());
            let failure = rejection::read_event(told.as_bytes(), &self.public_model);
            return Err(Broken::Failure(failure));
        }
        let mut edits = Vec::new();
        if let Some(model) = event.model {
            edits.push(Edit::replace(shifted(model.span(), at), self.model.clone()));
        }
        if let Some(edit) = error.and_then(without_message) {
            edits.push(Edit::replace(shifted(edit.span, at), edit.text));
        }
        let completed = kind.ends_with(".completed");
        if completed && event.picture.is_none() {
            // The completion event carries the final picture (`docs/api/images.md`).
            if let Some(last) = self.last.take() {
                let mut member = last.to_vec();
                member.push(b',');
                edits.push(Edit::insert(at + event.inside, member));
            }
        }
        self.note(&event, &kind, &frame.bytes, at);
        patch::apply_to(&frame.bytes, edits, out);
        Ok(())
    }

    /// Notes what an event brings.
    fn note(&mut self, event: &Event<'_>, kind: &str, frame: &Bytes, at: usize) {
        let completed = kind.ends_with(".completed");
        let is_result = completed || kind.ends_with(".partial_succeeded");
        if let Some((name, value)) = event.picture {
            self.seen.content = true;
            if is_result && let Some(pictures) = self.seen.pictures.as_deref_mut() {
                pictures.delivered += 1;
                let told = told_grade(event.quality, event.resolution, event.size);
                pictures.told.merge(told);
            }
            if self.family == Family::Content && !completed {
                let mut member = format!("\"{name}\":").into_bytes();
                let span = shifted(value.span(), at);
                member.extend_from_slice(frame.get(span).unwrap_or_default());
                self.last = Some(member.into());
            }
        }
        self.note_usage(event, completed && event.picture.is_some());
        if completed {
            self.seen.content = true;
            self.completed += 1;
            self.seen.ended = self
                .expected
                .is_some_and(|expected| self.completed >= expected);
        }
    }

    /// Each result of some families has a report of its own, which are added up.
    fn note_usage(&mut self, event: &Event<'_>, adds: bool) {
        let Some(usage) = event.usage.filter(|usage| !usage.is_null()) else {
            return;
        };
        let Some(told) = usage::read(usage) else {
            self.seen.usage_malformed = true;
            return;
        };
        self.seen.usage = match (self.seen.usage, told.tokens) {
            (Some(before), Some(tokens)) if adds => Some(usage::add(before, tokens)),
            (before, tokens) => tokens.or(before),
        };
        if let Some(pictures) = self.seen.pictures.as_deref_mut() {
            pictures.usd_ticks = told.usd_ticks.or(pictures.usd_ticks);
        }
    }

    /// The mark that ends some streams; before a result it ends nothing.
    fn done(&mut self, out: &mut Joined) -> Result<(), Broken> {
        if self.completed == 0 {
            return Err(Broken::Unfinished);
        }
        self.seen.ended = true;
        out.copy(b"data: [DONE]\n\n");
        Ok(())
    }
}

impl<'a> Event<'a> {
    fn look(text: &'a str) -> Result<Self, Broken> {
        let mut event = Self::default();
        let mut cursor = Cursor::new(text);
        cursor.shape()?;
        event.inside = cursor.position().saturating_add(1);
        let mut any = false;
        cursor.object(|cursor, name| {
            any = true;
            let value = cursor.value()?;
            for picture in ["b64_json", "url"] {
                if name.is(picture) && value.shape() == Shape::String && !value.is_empty() {
                    event.picture = Some((picture, value));
                }
            }
            let place = [
                ("type", &mut event.kind),
                ("model", &mut event.model),
                ("error", &mut event.error),
                ("usage", &mut event.usage),
                ("quality", &mut event.quality),
                ("resolution", &mut event.resolution),
                ("size", &mut event.size),
            ]
            .into_iter()
            .find(|(known, _)| name.is(known));
            if let Some((_, place)) = place {
                *place = Some(value);
            }
            Ok::<(), SyntaxError>(())
        })?;
        cursor.end()?;
        if any {
            Ok(event)
        } else {
            Err(Broken::malformed("an event is an empty object"))
        }
    }
}

fn shifted(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GPT: &str = concat!(
        "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"QQ==\",\"partial_image_index\":0,\"x\":1}\n\n",
        ": keepalive\n\n",
        "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"QUJD\",\"usage\":{\"input_tokens\":5,\"output_tokens\":9,\"total_tokens\":14}}\n\n",
    );
    const CONTENT: &str = concat!(
        "event: image_generation.partial_succeeded\ndata: {\"type\":\"image_generation.partial_succeeded\",\"model\":\"hidden\",\"image_index\":0,\"url\":\"https://a\",\"size\":\"2048x2048\"}\n\n",
        "event: image_generation.partial_failed\ndata: {\"type\":\"image_generation.partial_failed\",\"model\":\"hidden\",\"image_index\":1,\"error\":{\"code\":\"c\",\"message\":\"host api.v.example broke\"}}\n\n",
        "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"model\":\"hidden\",\"usage\":{\"generated_images\":1,\"output_tokens\":4,\"total_tokens\":4}}\n\n",
        "data: [DONE]\n\n",
    );

    fn run(family: Family, stream: &str, piece: usize) -> (Result<(), Broken>, String, Seen) {
        let mut rewriter = Rewriter::new(family, "maker/m", 1);
        let mut out = Joined::new();
        let result = stream
            .as_bytes()
            .chunks(piece)
            .try_for_each(|chunk| rewriter.push(Bytes::copy_from_slice(chunk), &mut out))
            .and_then(|()| rewriter.end(&mut out));
        let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
        (result, text, rewriter.seen().clone())
    }

    #[test]
    fn previews_and_results_pass_as_they_are() {
        let (result, text, seen) = run(Family::Gpt, GPT, usize::MAX);
        assert_eq!(result, Ok(()));
        assert_eq!(text, GPT);
        assert_eq!(seen.usage.unwrap().image_output, 9);
        assert_eq!(seen.pictures.unwrap().delivered, 1);
        assert!(seen.ended);
    }

    #[test]
    fn a_completion_without_a_picture_gets_the_last_one() {
        let (result, text, seen) = run(Family::Content, CONTENT, usize::MAX);
        assert_eq!(result, Ok(()));
        insta::assert_snapshot!(text, @r#"
        event: image_generation.partial_succeeded
        data: {"type":"image_generation.partial_succeeded","model":"maker/m","image_index":0,"url":"https://a","size":"2048x2048"}

        event: image_generation.partial_failed
        data: {"type":"image_generation.partial_failed","model":"maker/m","image_index":1,"error":{"code":"c","message":"This picture could not be made."}}

        event: image_generation.completed
        data: {"url":"https://a","type":"image_generation.completed","model":"maker/m","usage":{"generated_images":1,"output_tokens":4,"total_tokens":4}}

        data: [DONE]
        "#);
        let pictures = seen.pictures.unwrap();
        assert_eq!(pictures.delivered, 1);
        assert_eq!(pictures.told.size.as_deref(), Some("2048x2048"));
    }

    #[test]
    fn a_stream_without_a_result_is_broken() {
        let preview = GPT.split_inclusive("\n\n").next().unwrap();
        for (family, stream) in [
            (Family::Gpt, preview),
            (Family::Gpt, &GPT[..GPT.len() - 10]),
            (Family::Content, "data: [DONE]\n\n"),
            (Family::Gpt, ""),
        ] {
            let (result, ..) = run(family, stream, usize::MAX);
            assert_eq!(result, Err(Broken::Unfinished), "{stream}");
        }
        let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"content_policy_violation\"}}\n\n";
        let (result, ..) = run(Family::Gpt, error, usize::MAX);
        assert!(matches!(result, Err(Broken::Failure(_))));
    }

    #[test]
    fn a_failure_ends_a_stream_in_the_form_that_clients_raise() {
        let mut out = Joined::new();
        let mut rewriter = Rewriter::new(Family::Gpt, "maker/m", 1);
        rewriter.fail(&Failure::upstream_error(), "req_1", &mut out);
        let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
        insta::assert_snapshot!(text, @r#"
        event: error
        data: {"type":"error","error":{"message":"The model's upstream failed to answer this request.","type":"server_error","param":null,"code":"upstream_error"}}
        "#);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_stream(piece in 1_usize..200) {
            for (family, stream) in [(Family::Gpt, GPT), (Family::Content, CONTENT)] {
                prop_assert_eq!(run(family, stream, piece), run(family, stream, usize::MAX));
            }
        }
    }
}
