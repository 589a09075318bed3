//! Looks through one answer or event for what its row of the table names.

use std::ops::Range;

use super::gap::Marks;
use super::identity::{Name, NameSet};
use super::places::{Output, Places};
use super::report;
use super::server;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, What};
use crate::rejection;
use crate::usage::{Usage, count};

/// Identity members of one event; a text with more of them is none we know.
const SPANS_MAX: usize = 8;

/// What was found.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is found, or not, by itself"
)]
pub(super) struct Inspection<'a> {
    spans: [Option<(Name, usize, usize)>; SPANS_MAX],
    count: usize,
    /// A usage report that can be billed by.
    pub(super) usage: Option<Usage>,
    /// A usage report that cannot.
    pub(super) usage_malformed: bool,
    /// An error where an answer should be.
    pub(super) error: Option<Raw<'a>>,
    /// Whether there was any member at all.
    pub(super) any: bool,
    /// Where the first member ends that says more than who answers.
    telling: Option<usize>,
    /// Whether identity was found inside an envelope.
    nested: bool,
    /// Whether the members being read are those of the answer itself.
    in_answer: bool,
    /// Where the first member of the answer begins, if there is an answer in the text.
    pub(super) answer_start: Option<usize>,
    /// What the answer says about its identity.
    pub(super) found: NameSet,
    /// What of it stands before the end of the last member that we replace.
    pub(super) found_in_start: NameSet,
}

/// What an object is that is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole answer.
    Answer,
    /// An event of a stream. The answer may stand in an envelope.
    Event,
}

impl<'a> Inspection<'a> {
    /// Looks through a whole object.
    pub(super) fn of_object(
        places: &Places,
        form: Form,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<Self, SyntaxError> {
        let mut inspection = Self {
            in_answer: form == Form::Answer || places.envelope.is_none(),
            ..Self::default()
        };
        output.next_event();
        cursor.object(|cursor, name| inspection.member(places, name, cursor, output))?;
        Ok(inspection)
    }

    /// Looks through the rest of an object whose beginning is known.
    pub(super) fn of_rest(
        places: &Places,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<Self, SyntaxError> {
        let mut inspection = Self {
            any: true,
            in_answer: true,
            ..Self::default()
        };
        output.next_event();
        cursor.rest_of_object(|cursor, name| inspection.member(places, name, cursor, output))?;
        Ok(inspection)
    }

    /// The identity members, in the order of the text.
    pub(super) fn spans(&self) -> impl Iterator<Item = (Name, Range<usize>)> {
        let found = self.spans.iter().flatten();
        found.map(|(name, start, end)| (*name, *start..*end))
    }

    /// Where the beginning ends that says nothing but who answers, if it is all of the identity.
    pub(super) fn plain_start(&self) -> Option<usize> {
        let mut identity = self.spans.iter().flatten();
        let (_, _, end) = identity.rfind(|(name, _, _)| *name != Name::Usage)?;
        let plain = self.telling.is_none_or(|telling| telling > *end);
        (plain && !self.nested).then_some(*end)
    }

    /// Whether the text is an answer that lacks a part of the `required` identity, beyond what is `known` to be
    /// in it. An object without output and usage is not known to be an answer.
    pub(super) fn lacks_identity(
        &self,
        output: &Output,
        required: NameSet,
        known: NameSet,
    ) -> bool {
        let is_answer = self.nested || output.has_items || self.has_usage();
        is_answer && !self.found.and(known).has_all(required)
    }

    /// Whether usage was reported, readable or not.
    pub(super) fn has_usage(&self) -> bool {
        self.usage.is_some() || self.usage_malformed
    }

    fn member(
        &mut self,
        places: &Places,
        name: Text<'a>,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<(), SyntaxError> {
        self.any = true;
        if self.in_answer && self.answer_start.is_none() {
            // Before the quotation mark.
            self.answer_start = Some(name.span().start.saturating_sub(1));
        }
        if let Some(identity) = places.identity(name) {
            return self.note(identity, cursor, output);
        }
        if name.is(places.usage) {
            let value = cursor.value()?;
            if !value.is_null() {
                let usage = (places.read_usage)(value, output.usage);
                self.usage_malformed = usage.is_none();
                output.usage = usage.or(output.usage);
                self.usage = usage.or(self.usage);
                if output.hides_usage || report::has_foreign(value) {
                    self.note_span(Name::Usage, value.span())?;
                }
            }
        } else if name.is("error") {
            let value = cursor.value()?;
            if rejection::is_error(value) {
                self.error = Some(value);
            }
        } else if places.envelope.is_some_and(|envelope| name.is(envelope))
            && cursor.shape()? == Shape::Object
        {
            let inside = Places {
                envelope: None,
                ..*places
            };
            self.nested = true;
            output.present = output.present.and(Marks::ENVELOPE);
            let outside = std::mem::replace(&mut self.in_answer, true);
            let is_typed = output.present.has(Marks::TYPE);
            cursor.object(|cursor, name| self.member(&inside, name, cursor, output))?;
            self.in_answer = outside;
            if !is_typed {
                // That was the type of the answer, not of the event.
                output.present = output.present.without(Marks::TYPE);
            }
        } else if !(places.read_output)(name, cursor, output)? {
            output.names_server |= server::is_named_by(name);
            cursor.value()?;
            return Ok(());
        } else if output.items == 0 && !output.failed {
            return Ok(());
        }
        self.telling.get_or_insert(cursor.position());
        Ok(())
    }

    fn note(
        &mut self,
        name: Name,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<(), SyntaxError> {
        if self.in_answer {
            self.found = self.found.with(name);
        }
        let value = cursor.value()?;
        if name == Name::Created {
            let created = count(value).filter(|created| *created > 0);
            output.opening.created = created.or(output.opening.created);
            // A time may have a fraction.
            if value.text().starts_with(|first| matches!(first, '1'..='9')) {
                return Ok(());
            }
        }
        self.found_in_start = self.found;
        self.note_span(name, value.span())
    }

    fn note_span(&mut self, name: Name, span: Range<usize>) -> Result<(), SyntaxError> {
        let place = self.spans.get_mut(self.count).ok_or(SyntaxError {
            what: What::Keys,
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

    /// A dialect whose answer stands inside a member of its events.
    const WRAPPED: Places = Places {
        envelope: Some("message"),
        ..chat::PLACES
    };

    fn look(text: &str) -> Inspection<'_> {
        let mut output = Output::default();
        Inspection::of_object(&WRAPPED, Form::Event, &mut Cursor::new(text), &mut output).unwrap()
    }

    #[test]
    fn identity_is_found_inside_an_envelope() {
        let text = r#"{"type":"start","message":{"id":"x","model":"y","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#;
        let inspection = look(text);
        let found: Vec<_> = inspection.spans().map(|(_, span)| &text[span]).collect();
        assert_eq!(found, ["\"x\"", "\"y\""]);
        assert_eq!(inspection.usage.unwrap().output, 2);
        // The next event may not be read from the middle of the envelope.
        assert_eq!(inspection.plain_start(), None);
    }

    #[test]
    fn a_beginning_is_plain_only_if_it_tells_nothing_else() {
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
    fn too_many_identities_are_none() {
        let text = format!("{{{}}}", [r#""id":"x""#; SPANS_MAX + 1].join(","));
        let mut output = Output::default();
        let result =
            Inspection::of_object(&WRAPPED, Form::Event, &mut Cursor::new(&text), &mut output);
        assert!(result.is_err());
    }
}
