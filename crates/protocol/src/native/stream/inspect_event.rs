//! Reads an event of a stream, and records its usage, output and errors.

use super::Rewriter;
use crate::answer_layout::MemberSet;
use crate::json::{Cursor, SyntaxError, utf8};
use crate::native::inspection::{Inspection, ObjectKind};
use crate::rejection;
use crate::sse::Frame;
use crate::unusable_answer::UnusableAnswer;

impl Rewriter {
    /// Inspects the data of an event. `frame` is given if it has a line besides the data, because
    /// that line may be the name of the event.
    pub(super) fn inspect<'a>(
        &mut self,
        frame: Option<&Frame>,
        data: &'a [u8],
    ) -> Result<Inspection<'a>, UnusableAnswer> {
        let text = utf8(data)?;
        let mut cursor = Cursor::new(text);
        let mut inspection = Inspection::of_object(
            self.layout,
            ObjectKind::Event,
            &mut cursor,
            &mut self.output,
        )?;
        cursor.end()?;
        if let Some(member) = self.layout.event_name
            && !self.output.present.has(MemberSet::TYPE)
            && let Some(name) = frame.and_then(plain_name)
        {
            self.read_name(member, name)?;
            inspection.has_members = true;
        }
        self.record(&inspection, text)?;
        Ok(inspection)
    }

    /// Reads the type of an event whose data does not contain it.
    #[cold]
    fn read_name(&mut self, member: &str, name: &str) -> Result<(), SyntaxError> {
        let named = format!("{{\"{member}\":\"{name}\"}}");
        let read_output = self.layout.read_output;
        let output = &mut self.output;
        Cursor::new(&named).object(|cursor, name| {
            read_output(name, cursor, output)?;
            Ok::<(), SyntaxError>(())
        })?;
        output.present = output.present.without(MemberSet::TYPE);
        output.required = output.required.union(MemberSet::TYPE);
        Ok(())
    }

    /// Records the usage in an event. Returns an error if the event is a failure or empty.
    pub(super) fn record(
        &mut self,
        inspection: &Inspection<'_>,
        text: &str,
    ) -> Result<(), UnusableAnswer> {
        if self.output.failed || inspection.error.is_some() {
            // Some upstreams report the usage with the failure. It is charged if there was output.
            if self.output.content {
                self.summary.usage = inspection.usage.or(self.summary.usage);
            }
            let error = inspection.error.map_or(text, |error| error.text());
            let failure = rejection::read_event(error.as_bytes(), &self.identity.model);
            return Err(UnusableAnswer::Failure(failure));
        }
        if !inspection.has_members {
            return Err(UnusableAnswer::malformed("an event is an empty object"));
        }
        let known = if self.output.usage_is_interim || inspection.usage_lacks_output {
            &mut self.summary.interim_usage
        } else {
            &mut self.summary.usage
        };
        *known = inspection.usage.or(*known);
        self.summary.usage_malformed |= inspection.usage_malformed;
        Ok(())
    }

    /// Returns an error for an event with the name `error`, regardless of its data.
    pub(super) fn refuse_error_event(
        &self,
        frame: &Frame,
        data: &[u8],
    ) -> Result<(), UnusableAnswer> {
        if frame.event() == Some(b"error") {
            let failure = rejection::read_event(data, &self.identity.model);
            return Err(UnusableAnswer::Failure(failure));
        }
        Ok(())
    }
}

/// The name of an event, if JSON can contain it without escapes.
pub(super) fn plain_name(frame: &Frame) -> Option<&str> {
    let name = std::str::from_utf8(frame.event()?).ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}
