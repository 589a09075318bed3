//! Fills in the members that an upstream's events lack.

use crate::answer_layout::{
    IdentitySet, IncompleteEvent, MemberSet, StreamEnd, fill_index, is_vendor_member,
};
use crate::json::patch::{Edit, cut_members};
use crate::json::{Cursor, SyntaxError, Text};

/// Fills in the index of a step, and wraps an interaction whose members are directly in the event.
#[cold]
pub(crate) fn fill_in(
    event: &mut IncompleteEvent<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    if event.lacks(MemberSet::ENVELOPE) {
        wrap_interaction(event, edits)?;
    }
    fill_index(event, edits)
}

/// Moves all members except the event's own into an `interaction` object, where clients read them.
fn wrap_interaction(event: &IncompleteEvent<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    let mut start = Vec::new();
    let mut found = IdentitySet::default();
    let (mut status, mut is_empty) = (None, true);
    let mut cursor = Cursor::new(event.text);
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if is_of_event(name) {
            start.extend_from_slice(format!("\"{}\":{},", name.raw(), value.text()).as_bytes());
            return Ok(());
        }
        if is_replaced(name) {
            return Ok(());
        }
        is_empty = false;
        status = status.or(name.is("status").then_some(value));
        // Clients read the id only from the member `id`.
        let identity = event.layout.identity(name);
        if let Some(identity) = identity.filter(|_| !name.is("interaction_id")) {
            found = found.with(identity);
        }
        Ok::<(), SyntaxError>(())
    })?;
    let end = cursor.position().saturating_sub(1);
    start.extend_from_slice(b"\"interaction\":{");
    start.extend(event.missing_identity(found));
    if status.is_none() {
        let is_over = event.output.end >= StreamEnd::Closable;
        let status = if is_over { "completed" } else { "in_progress" };
        start.extend_from_slice(format!("\"status\":\"{status}\",").as_bytes());
    }
    if is_empty {
        start.pop();
    }
    event.put_first(start, edits);
    let is_cut = |name: Text<'_>| is_of_event(name) || is_replaced(name);
    cut_members(&mut Cursor::new(event.text), &[], is_cut, edits)?;
    edits.push(Edit::insert(end, &b"}"[..]));
    Ok(())
}

/// Whether a member is removed: it identifies the upstream, or has the name of the new object.
fn is_replaced(name: Text<'_>) -> bool {
    is_vendor_member(name) || name.is("interaction")
}

fn is_of_event(name: Text<'_>) -> bool {
    name.is("event_type") || name.is("event_id")
}
