//! Adds members that an answer or an event lacks although clients of its dialect need them.

use super::identity::{IdentityJson, IdentitySet};
use super::layout::AnswerLayout;
use super::members::MemberSet;
use super::output::Output;
use crate::json::patch::Edit;
use crate::json::{Cursor, SyntaxError};

/// An event with missing members, and the data for filling them in.
#[derive(Debug)]
pub(crate) struct IncompleteEvent<'a> {
    pub(crate) layout: &'a AnswerLayout,
    /// The data of the event.
    pub(crate) text: &'a str,
    /// The position of the first member of the answer inside the event, if the event contains an
    /// answer.
    pub(crate) answer_start: Option<usize>,
    pub(crate) identity_json: &'a IdentityJson,
    pub(crate) output: &'a mut Output,
    pub(crate) items: &'a mut Items,
    /// The name of the event, if only its `event:` line has it.
    pub(crate) name: Option<&'a str>,
    /// Members to add to the event, each followed by a comma.
    pub(crate) members: Vec<u8>,
    /// Events to send before this one.
    pub(crate) before: Vec<u8>,
}

pub(crate) type FillIn = fn(&mut IncompleteEvent<'_>, &mut Vec<Edit>) -> Result<(), SyntaxError>;

impl IncompleteEvent<'_> {
    pub(crate) fn lacks(&self, member: MemberSet) -> bool {
        self.output.required.has(member) && !self.output.present.has(member)
    }

    /// Sets a member of the event. Replaces a value of the wrong type, or adds the member.
    pub(crate) fn set(
        &mut self,
        name: &str,
        json: &str,
        edits: &mut Vec<Edit>,
    ) -> Result<(), SyntaxError> {
        let mut wrong = None;
        Cursor::new(self.text).object(|cursor, found| {
            let value = cursor.value()?;
            if found.is(name) {
                wrong = Some(value.span());
            }
            Ok::<(), SyntaxError>(())
        })?;
        if let Some(span) = wrong {
            edits.push(Edit::replace(span, json.as_bytes().to_vec()));
        } else {
            let member = format!("\"{name}\":{json},");
            self.members.extend_from_slice(member.as_bytes());
        }
        Ok(())
    }

    /// Inserts members, each followed by a comma, before the first member of the event.
    pub(crate) fn put_first(&self, mut members: Vec<u8>, edits: &mut Vec<Edit>) {
        if members.is_empty() {
            return;
        }
        if let Some(at) = self.text.find('"') {
            edits.push(Edit::insert(at, members));
        } else if let Some(at) = self.text.find('{') {
            members.pop();
            edits.push(Edit::insert(at + 1, members));
        }
    }

    /// The members of our identity that `found` does not contain, each followed by a comma.
    pub(crate) fn missing_identity(&self, found: IdentitySet) -> Vec<u8> {
        self.identity_json
            .missing(self.layout.identity_members(), found)
    }
}

/// Sets the index of an event that does not have one. The event belongs to the block or step that
/// started last.
pub(crate) fn fill_index(
    event: &mut IncompleteEvent<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    if event.lacks(MemberSet::INDEX) {
        let index = event.output.items_started.saturating_sub(1);
        event.set("index", &index.to_string(), edits)?;
    }
    Ok(())
}

/// The output items of a stream. Recording starts at the first event that does not name its item.
#[derive(Debug, Default)]
pub(crate) struct Items(pub(crate) Vec<Item>);

#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) id: Box<str>,
    /// The choice that a tool call belongs to. Each choice numbers its calls separately.
    pub(crate) choice: usize,
    /// The number of parts so far, in its content and in its summary.
    pub(crate) parts: [u64; 2],
}
