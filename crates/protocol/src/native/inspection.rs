//! Searches one answer or event for the members in its dialect's `AnswerLayout`.

use std::ops::Range;

use crate::answer_layout::{
    AnswerLayout, IdentityMember, IdentitySet, MemberSet, Output, is_vendor_member,
};
use crate::json::{Cursor, Raw, Shape, SyntaxError, SyntaxErrorKind, Text};
use crate::rejection;
use crate::usage::{Usage, costs, count};

/// The maximum number of members that are replaced in one event. A text with more of them is not in a format
/// that we know.
const SPANS_MAX: usize = 8;

/// What a search found in one answer or event.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is found, or not, by itself"
)]
pub(super) struct Inspection<'a> {
    spans: [Option<(IdentityMember, usize, usize)>; SPANS_MAX],
    count: usize,
    /// A usage report that can be used for billing.
    pub(super) usage: Option<Usage>,
    /// Whether there is a usage report that cannot be used for billing.
    pub(super) usage_malformed: bool,
    /// Whether there is a usage report that says nothing about the output.
    pub(super) usage_lacks_output: bool,
    /// An error instead of an answer.
    pub(super) error: Option<Raw<'a>>,
    pub(super) has_members: bool,
    /// The end of the first member that must be read in every event: usage, an error, an envelope
    /// or output.
    other_member_end: Option<usize>,
    /// Whether identity members are inside an envelope.
    nested: bool,
    /// Whether the current members belong to the answer itself.
    in_answer: bool,
    /// The position of the answer's first member, if the text contains an answer.
    pub(super) answer_start: Option<usize>,
    /// The identity members that the answer has.
    pub(super) found: IdentitySet,
    /// The identity members up to and including the last identity member that we replace.
    pub(super) found_in_start: IdentitySet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    /// A whole answer.
    Answer,
    /// An event of a stream. The answer may be inside an envelope.
    Event,
}

impl<'a> Inspection<'a> {
    pub(super) fn of_object(
        layout: &AnswerLayout,
        form: ObjectKind,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<Self, SyntaxError> {
        let mut inspection = Self {
            in_answer: form == ObjectKind::Answer || layout.envelope.is_none(),
            ..Self::default()
        };
        output.next_event();
        cursor.object(|cursor, name| inspection.member(layout, name, cursor, output))?;
        Ok(inspection)
    }

    /// Inspects the rest of an object whose first members are known.
    pub(super) fn of_rest(
        layout: &AnswerLayout,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<Self, SyntaxError> {
        let mut inspection = Self {
            has_members: true,
            in_answer: true,
            ..Self::default()
        };
        output.next_event();
        cursor.rest_of_object(|cursor, name| inspection.member(layout, name, cursor, output))?;
        Ok(inspection)
    }

    /// The members to replace, in the order of the text.
    pub(super) fn spans(&self) -> impl Iterator<Item = (IdentityMember, Range<usize>)> {
        let found = self.spans.iter().flatten();
        found.map(|(name, start, end)| (*name, *start..*end))
    }

    /// The end of the last identity member, if no member before it must be read in every event.
    /// Other events may then share the bytes up to this position.
    pub(super) fn plain_start(&self) -> Option<usize> {
        let mut identity = self.spans.iter().flatten();
        let (_, _, end) = identity.rfind(|(name, _, _)| *name != IdentityMember::Usage)?;
        let plain = self
            .other_member_end
            .is_none_or(|other_member_end| other_member_end > *end);
        (plain && !self.nested).then_some(*end)
    }

    /// Whether the text is an answer that lacks a part of the `required` identity. The `known` members count
    /// as present. An object without output and usage does not count as an answer.
    pub(super) fn lacks_identity(
        &self,
        output: &Output,
        required: IdentitySet,
        known: IdentitySet,
    ) -> bool {
        let is_answer = self.nested || output.has_items || self.has_usage();
        is_answer && !self.found.union(known).has_all(required)
    }

    /// Whether the client does not get the usage report.
    pub(super) fn hides_usage(&self, output: &Output) -> bool {
        output.hides_usage || output.owes_usage && self.usage_malformed
    }

    /// Whether there is a usage report, readable or not.
    pub(super) fn has_usage(&self) -> bool {
        self.usage.is_some() || self.usage_malformed
    }

    fn member(
        &mut self,
        layout: &AnswerLayout,
        name: Text<'a>,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<(), SyntaxError> {
        self.has_members = true;
        if self.in_answer && self.answer_start.is_none() {
            // The position of the opening quote.
            self.answer_start = Some(name.span().start.saturating_sub(1));
        }
        if let Some(identity) = layout.identity(name) {
            return self.record_identity(identity, cursor, output);
        }
        if name.is(layout.usage) {
            if cursor.shape()? == Shape::Null {
                cursor.value()?;
            } else {
                let start = cursor.position();
                let usage = (layout.read_usage)(cursor, output.usage)?;
                self.usage_malformed = usage.is_none();
                output.usage = usage.or(output.usage);
                self.usage = usage.or(self.usage);
                let has_output = layout.has_output;
                self.usage_lacks_output = has_output.is_some_and(|has| !has(cursor.since(start)));
                if self.hides_usage(output) || costs::has_costs(cursor.since(start)) {
                    self.record_span(IdentityMember::Usage, start..cursor.position())?;
                }
            }
        } else if name.is("error") {
            let value = cursor.value()?;
            if rejection::is_error(value) {
                self.error = Some(value);
            }
        } else if layout.envelope.is_some_and(|envelope| name.is(envelope))
            && cursor.shape()? == Shape::Object
        {
            let inside = AnswerLayout {
                envelope: None,
                ..*layout
            };
            self.nested = true;
            output.present = output.present.union(MemberSet::ENVELOPE);
            let outside = std::mem::replace(&mut self.in_answer, true);
            let is_typed = output.present.has(MemberSet::TYPE);
            cursor.object(|cursor, name| self.member(&inside, name, cursor, output))?;
            self.in_answer = outside;
            if !is_typed {
                // The type belongs to the answer, not to the event.
                output.present = output.present.without(MemberSet::TYPE);
            }
        } else if !(layout.read_output)(name, cursor, output)? {
            output.names_vendor |= is_vendor_member(name);
            cursor.value()?;
            return Ok(());
        } else if output.items == 0 && !output.failed {
            return Ok(());
        }
        self.other_member_end.get_or_insert(cursor.position());
        Ok(())
    }

    fn record_identity(
        &mut self,
        name: IdentityMember,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<(), SyntaxError> {
        if self.in_answer {
            self.found = self.found.with(name);
        }
        let value = cursor.value()?;
        if name == IdentityMember::Created {
            let created = count(value).filter(|created| *created > 0);
            output.opening.created = created.or(output.opening.created);
            // A positive time is not replaced, even if it has a fraction.
            if value.text().starts_with(|first| matches!(first, '1'..='9')) {
                return Ok(());
            }
        }
        self.found_in_start = self.found;
        self.record_span(name, value.span())
    }

    fn record_span(&mut self, name: IdentityMember, span: Range<usize>) -> Result<(), SyntaxError> {
        let place = self.spans.get_mut(self.count).ok_or(SyntaxError {
            kind: SyntaxErrorKind::Keys,
            at: span.start,
        })?;
        *place = Some((name, span.start, span.end));
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat;

    /// A dialect whose events contain the answer in a member.
    const WRAPPED: AnswerLayout = AnswerLayout {
        envelope: Some("message"),
        ..chat::ANSWER_LAYOUT
    };

    fn look(text: &str) -> Inspection<'_> {
        let mut output = Output::default();
        Inspection::of_object(
            &WRAPPED,
            ObjectKind::Event,
            &mut Cursor::new(text),
            &mut output,
        )
        .unwrap()
    }

    #[test]
    fn identity_is_found_inside_an_envelope() {
        let text = r#"{"type":"start","message":{"id":"x","model":"y","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#;
        let inspection = look(text);
        let found: Vec<_> = inspection.spans().map(|(_, span)| &text[span]).collect();
        assert_eq!(found, ["\"x\"", "\"y\""]);
        assert_eq!(inspection.usage.unwrap().output, 2);
        // The next event must not be read from the middle of the envelope.
        assert_eq!(inspection.plain_start(), None);
    }

    #[test]
    fn a_start_is_plain_only_if_it_has_just_identity_members() {
        for (text, plain) in [
            (
                r#"{"id":"x","created":1,"model":"y","choices":[{}]}"#,
                Some("\"y\""),
            ),
            (r#"{"id":"x","choices":[{}],"model":"y"}"#, None),
            (r#"{"usage":{},"id":"x"}"#, None),
            (r#"{"error":1,"id":"x"}"#, None),
            (r#"{"choices":[{}]}"#, None),
        ] {
            let start = look(text).plain_start().map(|end| &text[..end]);
            assert_eq!(start.is_some(), plain.is_some(), "{text}");
            assert!(start.is_none_or(|start| start.ends_with(plain.unwrap())));
        }
    }

    #[test]
    fn too_many_identity_members_are_an_error() {
        let text = format!("{{{}}}", [r#""id":"x""#; SPANS_MAX + 1].join(","));
        let mut output = Output::default();
        let result = Inspection::of_object(
            &WRAPPED,
            ObjectKind::Event,
            &mut Cursor::new(&text),
            &mut output,
        );
        assert!(result.is_err());
    }
}
