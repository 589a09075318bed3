//! Builds the edits for an answer or an event that cannot be relayed unchanged.

use std::borrow::Cow;
use std::ops::Range;

use super::inspection::Inspection;
use crate::answer_layout::{
    AnswerLayout, IdentityJson, IdentityMember, IdentitySet, MemberSet, Output, is_vendor_member,
};
use crate::json::patch::{Edit, cut_members};
use crate::json::{Cursor, SyntaxError};
use crate::usage::costs;

/// The new value of a member: a part of our identity or a usage report without costs. A usage report that is
/// hidden from the client becomes `null`.
pub(super) fn replacement<'a>(
    name: IdentityMember,
    span: Range<usize>,
    text: &str,
    identity_json: &'a IdentityJson,
    hides_usage: bool,
) -> Result<Cow<'a, [u8]>, SyntaxError> {
    match text.get(span) {
        Some(usage) if name == IdentityMember::Usage && !hides_usage => {
            Ok(Cow::Owned(costs::without_costs(usage)?))
        }
        _ => Ok(identity_json.get(name)),
    }
}

/// All edits for a text that `inspection` and `output` describe.
pub(super) fn edits_of(
    layout: &AnswerLayout,
    text: &str,
    inspection: &Inspection<'_>,
    output: &Output,
    identity_json: &IdentityJson,
) -> Result<Vec<Edit>, SyntaxError> {
    let mut edits = output.upstream_text_edits().to_vec();
    let hides_usage = inspection.hides_usage(output);
    for (name, span) in inspection.spans() {
        let value = replacement(name, span.clone(), text, identity_json, hides_usage)?;
        edits.push(Edit::replace(span, value.into_owned()));
    }
    if let Some(start) = inspection.answer_start
        && inspection.lacks_identity(output, layout.required_identity(), IdentitySet::default())
    {
        let missing = identity_json.missing(layout.identity_members(), inspection.found);
        edits.push(Edit::insert(start, missing));
    }
    // Interactions wraps an event that lacks its envelope, and then removes these members itself.
    // Each member must be removed only once.
    let is_wrapped =
        output.required.has(MemberSet::ENVELOPE) && !output.present.has(MemberSet::ENVELOPE);
    if output.names_vendor && !is_wrapped {
        let cursor = &mut Cursor::new(text);
        cut_members(cursor, layout.nested, is_vendor_member, &mut edits)?;
    }
    Ok(edits)
}

/// Removes the comma after the last inserted member if the object has no other members left.
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

/// Inserts an `event:` line before an event that has its name only in its data.
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
