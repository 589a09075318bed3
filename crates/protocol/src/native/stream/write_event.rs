//! Writes an event of a stream for the client: with our identity, and with the members that it lacks.

use super::Rewriter;
use super::inspect_event::plain_name;
use crate::answer_layout::{IdentitySet, IncompleteEvent, MemberSet, Output};
use crate::byte_queue::ByteQueue;
use crate::count::Counter;
use crate::json::{Cursor, patch, utf8};
use crate::native::edits;
use crate::native::inspection::{Inspection, ObjectKind};
use crate::sse::Frame;
use crate::unusable_answer::UnusableAnswer;

impl Rewriter {
    /// Whether an event is withheld. Billing needs the usage chunk, so we always ask the upstream for it, and
    /// withhold it from a client that did not ask (`docs/api/chat-completions.md`). An unusable usage chunk
    /// is withheld too, because the client gets a chunk with our own count. A chunk with usage and other
    /// content is relayed without the usage. A chunk that has only the results of a content filter is
    /// withheld, because clients that read `choices[0].delta` fail on it.
    pub(super) fn is_withheld(&self, inspection: &Inspection<'_>) -> bool {
        let output = &self.output;
        if inspection.has_usage() {
            return inspection.hides_usage(output) && !output.event_has_content;
        }
        output.has_filter && !output.has_complete_item
    }

    /// Whether the event needs changes other than new values for existing members. `known` are the
    /// identity members in the part of the event that was not inspected.
    pub(super) fn needs_edits(
        &self,
        frame: &Frame,
        inspection: &Inspection<'_>,
        known: IdentitySet,
    ) -> bool {
        self.output.names_vendor
            || !self.output.upstream_text_edits().is_empty()
            || inspection.lacks_identity(&self.output, self.required_identity, known)
            || self.has_gaps
            || !self.output.present.has(self.output.required)
            || self.layout.event_name.is_some() && !frame.has_name()
    }

    /// Writes an event, unless it is withheld.
    pub(super) fn write_event(
        &mut self,
        frame: &Frame,
        data_at: usize,
        data: &[u8],
        inspection: &Inspection<'_>,
        out: &mut ByteQueue,
    ) -> Result<(), UnusableAnswer> {
        if self.is_withheld(inspection) {
            return Ok(());
        }
        if self.needs_edits(frame, inspection, IdentitySet::default()) {
            return self.write_edited(frame, data_at, data, out);
        }
        self.write_from(frame, 0, (data_at, utf8(data)?), inspection, out)
    }

    /// Writes the frame from `from` on. Spans refer to the data, which starts at `data_at`.
    pub(super) fn write_from(
        &self,
        frame: &Frame,
        from: usize,
        (data_at, data): (usize, &str),
        inspection: &Inspection<'_>,
        out: &mut ByteQueue,
    ) -> Result<(), UnusableAnswer> {
        let mut done = from;
        let hides_usage = inspection.hides_usage(&self.output);
        for (name, span) in inspection.spans() {
            out.share(&frame.bytes, done..data_at + span.start);
            done = data_at + span.end;
            let value = edits::replacement(name, span, data, &self.identity_json, hides_usage)?;
            out.copy(&value);
        }
        out.share(&frame.bytes, done..frame.bytes.len());
        Ok(())
    }

    /// Writes a frame that contains text of the upstream about itself, or that lacks members. The
    /// frame is inspected once more, which few streams need.
    #[cold]
    pub(super) fn write_edited(
        &mut self,
        frame: &Frame,
        data_at: usize,
        data: &[u8],
        out: &mut ByteQueue,
    ) -> Result<(), UnusableAnswer> {
        let text = utf8(data)?;
        let mut again = Output {
            counter: Counter::idle(),
            hides_usage: self.output.hides_usage,
            owes_usage: self.output.owes_usage,
            ..Output::default()
        };
        let cursor = &mut Cursor::new(text);
        let inspection = Inspection::of_object(self.layout, ObjectKind::Event, cursor, &mut again)?;
        (again.required, again.present) = (self.output.required, self.output.present);
        let mut edits =
            edits::edits_of(self.layout, text, &inspection, &again, &self.identity_json)?;
        self.has_gaps |= !self.output.present.has(self.output.required);
        if let Some(fill_in) = self.layout.fill_in.filter(|_| self.has_gaps) {
            let mut event = IncompleteEvent {
                layout: self.layout,
                text,
                answer_start: inspection.answer_start,
                identity_json: &self.identity_json,
                output: &mut self.output,
                items: &mut self.items,
                name: plain_name(frame),
                members: Vec::new(),
                before: Vec::new(),
            };
            let mut filled = Vec::new();
            if let (Some(member), Some(name)) = (self.layout.event_name, event.name)
                && event.lacks(MemberSet::TYPE)
            {
                event.set(member, &format!("\"{name}\""), &mut filled)?;
            }
            fill_in(&mut event, &mut filled)?;
            out.copy(&event.before);
            let members = std::mem::take(&mut event.members);
            event.put_first(members, &mut edits);
            edits.append(&mut filled);
        }
        edits::close_emptied_objects(text, &mut edits);
        for edit in &mut edits {
            edit.span = edit.span.start + data_at..edit.span.end + data_at;
        }
        if let Some(name) = self.layout.event_name.filter(|_| !frame.has_name()) {
            edits.extend(edits::event_line(name, text)?);
        }
        patch::apply_to(&frame.bytes, edits, out);
        Ok(())
    }
}
