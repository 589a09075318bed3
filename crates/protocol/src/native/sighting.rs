//! Looks through one answer or event for what its row of the table names.

use std::ops::Range;

use super::identity::Name;
use super::places::{Output, Places};
use super::report;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, What};
use crate::rejection;
use crate::usage::Usage;

/// Identity members of one event; a text with more of them is none we know.
const SPANS_MAX: usize = 8;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Sighting<'a> {
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
}

impl<'a> Sighting<'a> {
    /// Looks through a whole object.
    pub(super) fn of_object(
        places: &Places,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<Self, SyntaxError> {
        let mut sighting = Self::default();
        output.next_event();
        cursor.object(|cursor, name| sighting.member(places, name, cursor, output))?;
        if places.shown.is_some() {
            sighting.show_beside_id();
        }
        Ok(sighting)
    }

    /// Looks through the rest of an object whose beginning is known.
    pub(super) fn of_rest(
        places: &Places,
        cursor: &mut Cursor<'a>,
        output: &mut Output,
    ) -> Result<Self, SyntaxError> {
        let mut sighting = Self {
            any: true,
            ..Self::default()
        };
        output.next_event();
        cursor.rest_of_object(|cursor, name| sighting.member(places, name, cursor, output))?;
        Ok(sighting)
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
        if name.is(places.id) || places.id_again.is_some_and(|again| name.is(again)) {
            return self.note(Name::Id, cursor);
        }
        if name.is(places.model) {
            return self.note(Name::Model, cursor);
        }
        if places.shown.is_some_and(|(shown, _)| name.is(shown)) {
            return self.note(Name::Shown, cursor);
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
            cursor.object(|cursor, name| self.member(&inside, name, cursor, output))?;
        } else if !(places.read_output)(name, cursor, output)? {
            cursor.value()?;
            return Ok(());
        } else if output.items == 0 && !output.failed {
            return Ok(());
        }
        self.telling.get_or_insert(cursor.position());
        Ok(())
    }

    /// Has the member that is always shown put in, where an answer is that lacks it.
    fn show_beside_id(&mut self) {
        let mut found = self.spans.iter().flatten();
        if found.any(|(name, _, _)| *name == Name::Shown) {
            return;
        }
        let mut found = self.spans.iter_mut().flatten();
        if let Some((name, _, _)) = found.find(|(name, _, _)| *name == Name::Id) {
            *name = Name::IdAlone;
        }
    }

    fn note(&mut self, name: Name, cursor: &mut Cursor<'a>) -> Result<(), SyntaxError> {
        let span = cursor.value()?.span();
        self.note_span(name, span)
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

    fn look(text: &str) -> Sighting<'_> {
        let mut output = Output::default();
        Sighting::of_object(&WRAPPED, &mut Cursor::new(text), &mut output).unwrap()
    }

    #[test]
    fn identity_is_found_inside_an_envelope() {
        let text = r#"{"type":"start","message":{"id":"x","model":"y","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#;
        let sighting = look(text);
        let found: Vec<_> = sighting.spans().map(|(_, span)| &text[span]).collect();
        assert_eq!(found, ["\"x\"", "\"y\""]);
        assert_eq!(sighting.usage.unwrap().output, 2);
        // The next event may not be read from the middle of the envelope.
        assert_eq!(sighting.plain_start(), None);
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
        let result = Sighting::of_object(&WRAPPED, &mut Cursor::new(&text), &mut output);
        assert!(result.is_err());
    }
}
