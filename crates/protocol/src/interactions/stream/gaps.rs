//! Fills in what the events of an upstream's stream lack.

use crate::json::patch::{Edit, cut_members};
use crate::json::{Cursor, SyntaxError, Text};
use crate::native::gap::{Gap, Marks, fill_index};
use crate::native::identity::NameSet;
use crate::native::places::End;
use crate::native::server;

/// Fills in the index of a step, and the object of an interaction whose members stand in the event.
#[cold]
pub(crate) fn fill(gap: &mut Gap<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    if gap.lacks(Marks::ENVELOPE) {
        wrap_interaction(gap, edits)?;
    }
    fill_index(gap, edits)
}

/// Wraps all members but those of the event in an object: clients read the interaction there.
fn wrap_interaction(gap: &Gap<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    let mut start = Vec::new();
    let mut found = NameSet::default();
    let (mut status, mut is_empty) = (None, true);
    let mut cursor = Cursor::new(gap.text);
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
        // Clients read the id in the member `id` alone.
        let identity = gap.places.identity(name);
        if let Some(identity) = identity.filter(|_| !name.is("interaction_id")) {
            found = found.with(identity);
        }
        Ok::<(), SyntaxError>(())
    })?;
    let end = cursor.position().saturating_sub(1);
    start.extend_from_slice(b"\"interaction\":{");
    start.extend(gap.identity_but(found));
    if status.is_none() {
        let is_over = gap.output.end >= End::Closable;
        let status = if is_over { "completed" } else { "in_progress" };
        start.extend_from_slice(format!("\"status\":\"{status}\",").as_bytes());
    }
    if is_empty {
        start.pop();
    }
    gap.put_first(start, edits);
    let is_cut = |name: Text<'_>| is_of_event(name) || is_replaced(name);
    cut_members(&mut Cursor::new(gap.text), &[], is_cut, edits)?;
    edits.push(Edit::insert(end, &b"}"[..]));
    Ok(())
}

/// Whether a member says who served the answer, or stands in the place of the interaction.
fn is_replaced(name: Text<'_>) -> bool {
    server::is_named_by(name) || name.is("interaction")
}

fn is_of_event(name: Text<'_>) -> bool {
    name.is("event_type") || name.is("event_id")
}
