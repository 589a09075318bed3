//! The changes to an answer or an event that is not relayed as it is.

use std::borrow::Cow;
use std::ops::Range;

use super::gap::Marks;
use super::identity::{Name, NameSet, Written};
use super::inspection::Inspection;
use super::places::{Output, Places};
use super::report;
use super::server;
use crate::json::patch::{Edit, cut_members};
use crate::json::{Cursor, SyntaxError};

/// What takes the place of a member: our identity, or a usage report without costs.
pub(super) fn replacement<'a>(
    name: Name,
    span: Range<usize>,
    text: &str,
    written: &'a Written,
    hides_usage: bool,
) -> Result<Cow<'a, [u8]>, SyntaxError> {
    match text.get(span) {
        Some(usage) if name == Name::Usage && !hides_usage => {
            Ok(Cow::Owned(report::without_foreign(usage)?))
        }
        _ => Ok(written.get(name)),
    }
}

/// Everything that changes in a text that `inspection` and `output` have looked through.
pub(super) fn edits(
    places: &Places,
    text: &str,
    inspection: &Inspection<'_>,
    output: &Output,
    written: &Written,
) -> Result<Vec<Edit>, SyntaxError> {
    let mut edits = output.word_edits().to_vec();
    for (name, span) in inspection.spans() {
        let value = replacement(name, span.clone(), text, written, output.hides_usage)?;
        edits.push(Edit::replace(span, value.into_owned()));
    }
    if let Some(start) = inspection.answer_start
        && inspection.lacks_identity(output, places.required_identity(), NameSet::default())
    {
        let missing = written.missing(places.identity_members(), inspection.found);
        edits.push(Edit::insert(start, missing));
    }
    // An event whose members get an envelope is cut where it is wrapped: each member is cut once.
    let is_wrapped = output.required.has(Marks::ENVELOPE) && !output.present.has(Marks::ENVELOPE);
    if output.names_server && !is_wrapped {
        let cursor = &mut Cursor::new(text);
        cut_members(cursor, places.nested, server::is_named_by, &mut edits)?;
    }
    Ok(edits)
}

/// Takes the comma behind the last member that is put into an object of which nothing else stays.
pub(super) fn close_emptied_objects(text: &str, edits: &mut [Edit]) {
    let bytes = text.as_bytes();
    let is_emptied = |edit: &&Edit| {
        let before = bytes.get(..edit.span.start).unwrap_or_default();
        let after = bytes.get(edit.span.end..).unwrap_or_default();
        !edit.span.is_empty()
            && edit.text.is_empty()
            && before.trim_ascii_end().ends_with(b"{")
            && after.trim_ascii_start().starts_with(b"}")
    };
    let emptied: Vec<usize> = edits
        .iter()
        .filter(is_emptied)
        .map(|edit| edit.span.start)
        .collect();
    for at in emptied {
        let last = edits.iter_mut().rfind(|edit| edit.span == (at..at));
        if let Some(edit) = last.filter(|edit| edit.text.ends_with(b",")) {
            edit.text.to_mut().pop();
        }
    }
}

/// Puts the line with its name before an event whose data alone has it.
pub(super) fn event_line(member: &str, text: &str) -> Result<Option<Edit>, SyntaxError> {
    let mut line = None;
    Cursor::new(text).object(|cursor, name| {
        let value = cursor.value()?;
        let named = value
            .string()
            .filter(|value| name.is(member) && !value.is_escaped());
        if let Some(named) = named {
            line = Some(format!("event: {}\n", named.raw()));
        }
        Ok::<(), SyntaxError>(())
    })?;
    Ok(line.map(|line| Edit::insert(0, line.into_bytes())))
}
