//! What an answer or an event lacks although clients of its dialect need it.

use super::identity::{NameSet, Written};
use super::places::{Output, Places};
use crate::json::patch::Edit;
use crate::json::{Cursor, SyntaxError};

/// Members of an event that say where in its stream it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    pub(crate) const NONE: Self = Self(0);
    /// The number of the event.
    pub(crate) const SEQUENCE: Self = Self(1);
    /// The number of the item, block or step.
    pub(crate) const INDEX: Self = Self(1 << 1);
    /// The id of the item.
    pub(crate) const ITEM_ID: Self = Self(1 << 2);
    /// The number of the part within its item.
    pub(crate) const PART: Self = Self(1 << 3);
    /// The list of items.
    pub(crate) const ITEMS: Self = Self(1 << 4);
    /// The object in which the members of the answer stand.
    pub(crate) const ENVELOPE: Self = Self(1 << 5);

    /// The type of the event.
    pub(crate) const TYPE: Self = Self(1 << 6);
    /// That the part has begun to which the event adds.
    pub(crate) const PART_BEGUN: Self = Self(1 << 7);

    #[must_use]
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// An event that lacks something, and what is known for filling it in.
#[derive(Debug)]
pub(crate) struct Gap<'a> {
    pub(crate) places: &'a Places,
    /// The data of the event.
    pub(crate) text: &'a str,
    /// Where the first member begins of the answer in the event, if there is one.
    pub(crate) answer_start: Option<usize>,
    pub(crate) written: &'a Written,
    pub(crate) output: &'a mut Output,
    pub(crate) items: &'a mut Items,
    /// The name of the event, where only its line says it.
    pub(crate) name: Option<&'a str>,
    /// Members for the event, each followed by a comma.
    pub(crate) members: Vec<u8>,
    /// Events that must come before this one.
    pub(crate) before: Vec<u8>,
}

/// Fills in what an event lacks.
pub(crate) type Fill = fn(&mut Gap<'_>, &mut Vec<Edit>) -> Result<(), SyntaxError>;

impl Gap<'_> {
    /// Whether the event lacks this.
    pub(crate) fn lacks(&self, mark: Marks) -> bool {
        self.output.required.has(mark) && !self.output.present.has(mark)
    }

    /// Sets a member of the event: in place of a value of another type, or as a new member.
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

    /// Puts members, each followed by a comma, before the first member of the event.
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

    /// The members of our identity that are not in `found`, each followed by a comma.
    pub(crate) fn identity_but(&self, found: NameSet) -> Vec<u8> {
        self.written.missing(self.places.identity_members(), found)
    }
}

/// Numbers an event that does not say which block or step it is about: the one that has begun last.
pub(crate) fn fill_index(gap: &mut Gap<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    if gap.lacks(Marks::INDEX) {
        let index = gap.output.begun.saturating_sub(1);
        gap.set("index", &index.to_string(), edits)?;
    }
    Ok(())
}

/// The output items of a stream, noted once an event has come that does not say which it is about.
#[derive(Debug, Default)]
pub(crate) struct Items(pub(crate) Vec<Item>);

/// One output item.
#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) id: Box<str>,
    /// Its parts so far, those of its content and those of its summary.
    pub(crate) parts: [u64; 2],
}
