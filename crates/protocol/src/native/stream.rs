//! Streams: identity replaced in every event, usage read in passing, the end mark watched for.

use std::ops::Range;

use bytes::Bytes;

use super::answer::look_at_answer;
use super::broken::Broken;
use super::changes;
use super::events::Events;
use super::failure::terminal_failure;
use super::gap::{Gap, Items, Marks};
use super::identity::{Identity, NameSet, Written};
use super::inspection::{Form, Inspection};
use super::known_start::KnownStart;
use super::places::{End, Output, Places};
use super::seen::Seen;
use super::table::{places_of, write_events_of};
use super::unstreamed::Body;
use crate::byte_queue::ByteQueue;
use crate::count::Counter;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::images::Pictures;
use crate::json::patch;
use crate::json::{Cursor, SyntaxError, utf8};
use crate::rejection;
use crate::responses;
use crate::sse::{Data, Frame, Splitter};

/// Room made for the events of one read, so that they go out in one piece.
const JOINED_BYTES_MAX: usize = 16 << 10;

/// Takes the place of an upstream's comments, whose words are its own.
pub(crate) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Rewrites a stream as it comes.
#[derive(Debug)]
pub struct Rewriter {
    dialect: Dialect,
    places: &'static Places,
    identity: Identity,
    written: Written,
    body: Body,
    splitter: Splitter,
    output: Output,
    start: KnownStart,
    required_identity: NameSet,
    /// Whether an event came without the marks of its place in the stream.
    has_gaps: bool,
    items: Items,
    seen: Seen,
}

impl Rewriter {
    /// A rewriter for one stream.
    pub fn new(dialect: Dialect, identity: Identity, include_usage: bool) -> Self {
        let places = places_of(dialect);
        Self {
            dialect,
            places,
            written: Written::new(&identity, places.shown),
            identity,
            body: Body::default(),
            splitter: Splitter::default(),
            output: Output {
                hides_usage: places.usage_event && !include_usage,
                ..Output::default()
            },
            start: KnownStart::default(),
            required_identity: places.required_identity(),
            has_gaps: false,
            items: Items::default(),
            seen: Seen::default(),
        }
    }

    /// Takes what one read brought and puts out the complete events in it. When it fails, what
    /// was put out before is still good.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), Broken> {
        if self.seen.ended {
            return Ok(());
        }
        let Some(chunk) = self.body.take(self.dialect, chunk)? else {
            return Ok(());
        };
        out.reserve(chunk.len().min(JOINED_BYTES_MAX));
        self.splitter.push(chunk);
        let result = self.relay(self.places, out);
        self.note();
        result
    }

    /// The upstream has closed the stream: an error, unless its end mark went by.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), Broken> {
        if self.seen.ended {
            return Ok(());
        }
        if let Some(answer) = self.body.take_answer()? {
            let result = self.answer(&answer, out);
            self.note();
            return result;
        }
        let rest = self.splitter.finish();
        let is_done = match rest.as_ref().map_or(Data::Absent, Frame::data) {
            Data::Absent => {
                self.seen.ended = self.output.end >= End::Closable;
                false
            }
            // An end mark without a line end is one all the same; another event without one was
            // cut off.
            Data::Line(span) => {
                let data = rest.as_ref().and_then(|rest| rest.bytes.get(span));
                data.is_some_and(|data| self.is_done(data))
            }
            Data::Lines(data) => self.is_done(&data),
        };
        if is_done {
            self.finish(self.places, out);
        }
        if self.seen.ended {
            Ok(())
        } else {
            Err(Broken::Unfinished)
        }
    }

    /// Rewrites a whole answer as the stream that was asked for.
    #[cold]
    fn answer(&mut self, answer: &[u8], out: &mut ByteQueue) -> Result<(), Broken> {
        let text = utf8(answer)?;
        look_at_answer(self.places, text, &self.identity)?;
        let value = Cursor::new(text).value()?;
        let write_events = write_events_of(self.dialect);
        let mut relay = |event| {
            self.splitter.push(event);
            self.relay(self.places, out)
        };
        write_events(value, &mut Events::new(&mut relay))?;
        // The answer is whole, whatever its chunk says of the end.
        self.seen.ended = true;
        self.seen.usage = self.seen.usage.or(self.seen.interim_usage);
        Ok(())
    }

    /// Ends the stream with the error event of its dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        out.push(match self.dialect {
            Dialect::Responses => Bytes::from(responses::write_failure_event(
                failure,
                &self.identity,
                self.output.opening,
            )),
            dialect => terminal_failure(dialect, failure, request_id),
        });
    }

    /// Bytes that wait for the end of their event, or of the whole answer. Those of an answer count as
    /// often as its stream repeats them, because the stream is written at once.
    pub fn held_bytes(&self) -> usize {
        let answer = self.body.held_bytes();
        let copies = match self.dialect {
            Dialect::Responses => 6,
            Dialect::Chat | Dialect::Messages | Dialect::Generate | Dialect::Interactions => 2,
        };
        let waiting = self.splitter.held_bytes();
        waiting.saturating_add(answer.saturating_mul(copies))
    }

    /// What has gone by.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    fn note(&mut self) {
        self.seen.content = self.output.content;
        self.seen.output_tokens_counted = self.output.counter.tokens();
        self.seen.tools = self.output.tools;
        if self.output.pictures > 0 {
            self.seen.pictures = Pictures::some(self.output.pictures);
        }
        if self.output.withheld() != self.seen.withheld.as_deref() {
            self.seen.withheld = self.output.withheld().map(Into::into);
        }
    }

    fn relay(&mut self, places: &Places, out: &mut ByteQueue) -> Result<(), Broken> {
        while let Some(frame) = self.splitter.next_frame()? {
            self.frame(places, &frame, out)?;
            self.seen.ended |= self.output.end == End::Reached;
            if self.seen.ended {
                return Ok(());
            }
        }
        // Some upstreams close behind the line that ends the stream, without the blank one.
        if self
            .splitter
            .pending_data()
            .is_some_and(|data| self.is_done(data))
        {
            self.finish(places, out);
        }
        Ok(())
    }

    fn frame(&mut self, places: &Places, frame: &Frame, out: &mut ByteQueue) -> Result<(), Broken> {
        if places.data_only && !frame.is_plain_data() {
            let Some(plain) = frame.to_plain_data() else {
                return Ok(());
            };
            self.named(frame, plain.first_data().unwrap_or_default())?;
            return self.frame(places, &plain, out);
        }
        if frame.first_data().is_some_and(|data| self.is_done(data)) {
            self.finish(places, out);
            return Ok(());
        }
        match frame.data() {
            // Comments keep a connection alive. An event without data is none, and clients that
            // take it for one fail on it.
            Data::Absent if frame.has_fields() || frame.bytes.trim_ascii().is_empty() => Ok(()),
            Data::Absent => {
                out.copy(KEEP_ALIVE);
                Ok(())
            }
            _ if !frame.is_bare() => self.frame(places, &frame.to_bare(), out),
            Data::Line(span) if frame.is_one_line() => self.line(places, frame, span, out),
            Data::Line(span) => {
                let data = frame.bytes.get(span.clone()).unwrap_or_default();
                if self.is_done(data) {
                    self.finish(places, out);
                    return Ok(());
                }
                self.named(frame, data)?;
                let inspection = self.look(places, Some(frame), data)?;
                self.put(frame, span.start, data, &inspection, out)
            }
            Data::Lines(masked) if self.is_done(&masked) => {
                self.finish(places, out);
                Ok(())
            }
            Data::Lines(masked) => {
                self.named(frame, &masked)?;
                let inspection = self.look(places, Some(frame), &masked)?;
                self.put(frame, 0, &masked, &inspection, out)
            }
        }
    }

    /// The common case: one line of data. Events of one stream begin alike, so that the known
    /// beginning is neither read nor put together again.
    fn line(
        &mut self,
        places: &Places,
        frame: &Frame,
        span: Range<usize>,
        out: &mut ByteQueue,
    ) -> Result<(), Broken> {
        let bytes = &frame.bytes;
        let known = self.start.length_in(bytes);
        if known == 0 {
            let data = bytes.get(span.clone()).unwrap_or_default();
            let inspection = self.look(places, None, data)?;
            if let Some(end) = inspection.plain_start()
                && !self.is_changed(frame, &inspection, NameSet::default())
            {
                self.start
                    .learn(bytes, span.start, end, &inspection, &self.written);
            }
            return self.put(frame, span.start, data, &inspection, out);
        }
        let text = utf8(bytes.get(known..span.end).unwrap_or_default())?;
        let mut cursor = Cursor::behind_member(text, 0);
        let inspection = Inspection::of_rest(places, &mut cursor, &mut self.output)?;
        cursor.end()?;
        self.judge(&inspection, text)?;
        if self.is_withheld(&inspection) {
            return Ok(());
        }
        if self.is_changed(frame, &inspection, self.start.found) {
            let data = bytes.get(span.clone()).unwrap_or_default();
            return self.put_changed(frame, span.start, data, out);
        }
        out.copy(&self.start.changed);
        self.put_rest(frame, known, (known, text), &inspection, out)
    }

    /// Looks through the data of an event. `frame` is given if it has a line beside the data, which may
    /// be its name.
    fn look<'a>(
        &mut self,
        places: &Places,
        frame: Option<&Frame>,
        data: &'a [u8],
    ) -> Result<Inspection<'a>, Broken> {
        let text = utf8(data)?;
        let mut cursor = Cursor::new(text);
        let mut inspection =
            Inspection::of_object(places, Form::Event, &mut cursor, &mut self.output)?;
        cursor.end()?;
        if let Some(member) = places.event_name
            && !self.output.present.has(Marks::TYPE)
            && let Some(name) = frame.and_then(plain_name)
        {
            self.read_name(places, member, name)?;
            inspection.any = true;
        }
        self.judge(&inspection, text)?;
        Ok(inspection)
    }

    /// Reads the type of an event whose data does not say it.
    #[cold]
    fn read_name(&mut self, places: &Places, member: &str, name: &str) -> Result<(), SyntaxError> {
        let told = format!("{{\"{member}\":\"{name}\"}}");
        let output = &mut self.output;
        Cursor::new(&told).object(|cursor, name| {
            (places.read_output)(name, cursor, output)?;
            Ok::<(), SyntaxError>(())
        })?;
        output.present = output.present.without(Marks::TYPE);
        output.required = output.required.and(Marks::TYPE);
        Ok(())
    }

    /// Notes what an event says, or that it is none.
    fn judge(&mut self, inspection: &Inspection<'_>, text: &str) -> Result<(), Broken> {
        if self.output.failed || inspection.error.is_some() {
            // What was consumed is told with the failure by some, and is owed once there was
            // output.
            if self.output.content {
                self.seen.usage = inspection.usage.or(self.seen.usage);
            }
            let error = inspection.error.map_or(text, |error| error.text());
            let failure = rejection::read_event(error.as_bytes(), &self.identity.model);
            return Err(Broken::Failure(failure));
        }
        if !inspection.any {
            return Err(Broken::malformed("an event is an empty object"));
        }
        let known = if self.output.interim {
            &mut self.seen.interim_usage
        } else {
            &mut self.seen.usage
        };
        *known = inspection.usage.or(*known);
        self.seen.usage_malformed |= inspection.usage_malformed;
        Ok(())
    }

    /// An event named `error` is one, whatever its data looks like.
    fn named(&self, frame: &Frame, data: &[u8]) -> Result<(), Broken> {
        if frame.event() == Some(b"error") {
            let failure = rejection::read_event(data, &self.identity.model);
            return Err(Broken::Failure(failure));
        }
        Ok(())
    }

    /// The usage chunk is always asked for upstream, because billing needs it, and is withheld
    /// from a caller that did not ask (`docs/api/chat-completions.md`).
    /// One that says something else as well goes on without its usage.
    fn is_withheld(&self, inspection: &Inspection<'_>) -> bool {
        self.output.hides_usage && inspection.has_usage() && !self.output.said
    }

    /// Whether more is to be changed than members that the event has. `known` is what is known to
    /// stand in the part of the event that was not looked through.
    fn is_changed(&self, frame: &Frame, inspection: &Inspection<'_>, known: NameSet) -> bool {
        self.output.names_server
            || !self.output.word_edits().is_empty()
            || inspection.lacks_identity(&self.output, self.required_identity, known)
            || self.has_gaps
            || !self.output.present.has(self.output.required)
            || self.places.event_name.is_some() && !frame.has_name()
    }

    fn put(
        &mut self,
        frame: &Frame,
        data_at: usize,
        data: &[u8],
        inspection: &Inspection<'_>,
        out: &mut ByteQueue,
    ) -> Result<(), Broken> {
        if self.is_withheld(inspection) {
            return Ok(());
        }
        if self.is_changed(frame, inspection, NameSet::default()) {
            return self.put_changed(frame, data_at, data, out);
        }
        self.put_rest(frame, 0, (data_at, utf8(data)?), inspection, out)
    }

    /// Puts out the frame from `from` on. Spans are those of the data, which begins at `data_at`.
    fn put_rest(
        &self,
        frame: &Frame,
        from: usize,
        (data_at, data): (usize, &str),
        inspection: &Inspection<'_>,
        out: &mut ByteQueue,
    ) -> Result<(), Broken> {
        let mut done = from;
        let hides_usage = self.output.hides_usage;
        for (name, span) in inspection.spans() {
            out.share(&frame.bytes, done..data_at + span.start);
            done = data_at + span.end;
            let value = changes::replacement(name, span, data, &self.written, hides_usage)?;
            out.copy(&value);
        }
        out.share(&frame.bytes, done..frame.bytes.len());
        Ok(())
    }

    /// Puts out a frame in which the upstream says something of itself, or which lacks something.
    /// It is looked through once more, which few streams need.
    #[cold]
    fn put_changed(
        &mut self,
        frame: &Frame,
        data_at: usize,
        data: &[u8],
        out: &mut ByteQueue,
    ) -> Result<(), Broken> {
        let text = utf8(data)?;
        let mut again = Output {
            counter: Counter::idle(),
            hides_usage: self.output.hides_usage,
            ..Output::default()
        };
        let cursor = &mut Cursor::new(text);
        let inspection = Inspection::of_object(self.places, Form::Event, cursor, &mut again)?;
        (again.required, again.present) = (self.output.required, self.output.present);
        let mut edits = changes::edits(self.places, text, &inspection, &again, &self.written)?;
        self.has_gaps |= !self.output.present.has(self.output.required);
        if let Some(fill) = self.places.fill.filter(|_| self.has_gaps) {
            let mut gap = Gap {
                places: self.places,
                text,
                answer_start: inspection.answer_start,
                written: &self.written,
                output: &mut self.output,
                items: &mut self.items,
                name: plain_name(frame),
                members: Vec::new(),
                before: Vec::new(),
            };
            let mut filled = Vec::new();
            if let (Some(member), Some(name)) = (self.places.event_name, gap.name)
                && gap.lacks(Marks::TYPE)
            {
                gap.set(member, &format!("\"{name}\""), &mut filled)?;
            }
            fill(&mut gap, &mut filled)?;
            out.copy(&gap.before);
            let members = std::mem::take(&mut gap.members);
            gap.put_first(members, &mut edits);
            edits.append(&mut filled);
        }
        changes::close_emptied_objects(text, &mut edits);
        for edit in &mut edits {
            edit.span = edit.span.start + data_at..edit.span.end + data_at;
        }
        if let Some(name) = self.places.event_name.filter(|_| !frame.has_name()) {
            edits.extend(changes::event_line(name, text)?);
        }
        patch::apply_to(&frame.bytes, edits, out);
        Ok(())
    }

    fn is_done(&self, data: &[u8]) -> bool {
        let done = self.places.done;
        done.is_some_and(|done| data.trim_ascii() == done.data.as_bytes())
    }

    /// The end mark is written anew, in one form: it may have come without its blank line.
    fn finish(&mut self, places: &Places, out: &mut ByteQueue) {
        self.seen.ended = true;
        out.copy(places.done.map_or("", |done| done.frame).as_bytes());
    }
}

/// The name of an event, if it can stand in JSON as it is.
fn plain_name(frame: &Frame) -> Option<&str> {
    let name = std::str::from_utf8(frame.event()?).ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}
