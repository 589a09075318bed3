//! Adds missing deltas, and missing indexes of choices and tool calls, to a chunk. Clients read
//! `delta.content` of every choice and fail on a delta that is `null`.

use std::fmt::Write as _;

use super::super::answer_layout::is_wrong_delta;
use crate::answer_layout::{ITEMS_MAX, IncompleteEvent, Item, Items};
use crate::json::patch::Edit;
use crate::json::{Cursor, Integer, Raw, Shape, SyntaxError, Text};

/// Adds each missing `index` of a choice or a tool call. A missing or wrong delta becomes an empty one.
#[cold]
pub(in crate::chat) fn fill_in(
    event: &mut IncompleteEvent<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    let items = &mut *event.items;
    Cursor::new(event.text).object(|cursor, name| {
        if !name.is("choices") {
            return cursor.value().map(drop);
        }
        each_object(cursor, |cursor, position| {
            let mut choice = IndexedObject::at(cursor);
            let mut calls = ToolCalls {
                items: &mut *items,
                choice: index_of_choice(cursor.clone(), position)?,
            };
            let mut has_delta = false;
            cursor.object(|cursor, name| {
                let shape = cursor.shape()?;
                let is_delta = name.is("delta");
                has_delta |= is_delta || name.is("message") && shape == Shape::Object;
                if is_delta && shape == Shape::Object {
                    choice.is_empty = false;
                    return fill_delta(cursor, &mut calls, edits);
                }
                let value = choice.read(cursor, name)?;
                if is_delta && is_wrong_delta(shape) {
                    edits.push(Edit::replace(value.span(), &b"{}"[..]));
                }
                Ok(())
            })?;
            if !has_delta && !choice.is_empty {
                choice.other_missing = "\"delta\":{},";
            }
            choice.number_if_missing(position, edits);
            Ok(())
        })
    })
}

/// The index of the choice at the cursor. Calls are numbered per choice, so the index must be known before
/// the delta is read. The index may stand after the delta.
fn index_of_choice(mut cursor: Cursor<'_>, position: usize) -> Result<usize, SyntaxError> {
    let mut choice = IndexedObject::at(&cursor);
    cursor.object(|cursor, name| choice.read(cursor, name).map(drop))?;
    Ok(choice.number().unwrap_or(position))
}

fn fill_delta(
    cursor: &mut Cursor<'_>,
    calls: &mut ToolCalls<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    cursor.object(|cursor, name| {
        if !name.is("tool_calls") {
            return cursor.value().map(drop);
        }
        each_object(cursor, |cursor, _| {
            let mut call = IndexedObject::at(cursor);
            let mut id = None;
            cursor.object(|cursor, name| {
                let value = call.read(cursor, name)?;
                if name.is("id") {
                    id = value.string().map(|id| id.raw());
                }
                Ok::<(), SyntaxError>(())
            })?;
            match call.number() {
                Some(index) => calls.note(index, id),
                None => call.number_if_missing(calls.index_of(id), edits),
            }
            Ok(())
        })
    })
}

struct ToolCalls<'a> {
    items: &'a mut Items,
    choice: usize,
}

impl ToolCalls<'_> {
    fn all(&self) -> impl Iterator<Item = &Item> {
        let is_ours = |call: &&Item| call.choice == self.choice;
        self.items.0.iter().filter(is_ours)
    }

    /// Records the id of a call whose index is known.
    fn note(&mut self, index: usize, id: Option<&str>) {
        let choice = self.choice;
        let known = self.all().count();
        if index < ITEMS_MAX {
            let room = ITEMS_MAX.saturating_sub(self.items.0.len());
            let more = (index + 1).saturating_sub(known).min(room);
            let new = || Item {
                choice,
                ..Item::default()
            };
            self.items.0.extend(std::iter::repeat_with(new).take(more));
        }
        let mut calls = self.items.0.iter_mut().filter(|it| it.choice == choice);
        if let (Some(call), Some(id)) = (calls.nth(index), id) {
            call.id = id.into();
        }
    }

    /// The index of a call. A new id gets the next index. A piece without an id belongs to the last call.
    fn index_of(&mut self, id: Option<&str>) -> usize {
        let count = self.all().count();
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return count.saturating_sub(1);
        };
        if let Some(index) = self.all().position(|call| &*call.id == id) {
            return index;
        }
        self.note(count, Some(id));
        count
    }
}

/// Calls `read` with each object of a list and its position. Other values are skipped.
fn each_object<'a>(
    cursor: &mut Cursor<'a>,
    mut read: impl FnMut(&mut Cursor<'a>, usize) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Array {
        return cursor.value().map(drop);
    }
    let mut position = 0;
    cursor.array(|cursor| {
        match cursor.shape()? {
            Shape::Object => read(cursor, position)?,
            _ => drop(cursor.value()?),
        }
        position += 1;
        Ok(())
    })
}

/// An object that should have an `index`.
struct IndexedObject<'a> {
    /// The position of its opening brace.
    start: usize,
    is_empty: bool,
    index: Option<Raw<'a>>,
    /// Another missing member to add, followed by a comma.
    other_missing: &'static str,
}

impl<'a> IndexedObject<'a> {
    fn at(cursor: &Cursor<'a>) -> Self {
        Self {
            start: cursor.position(),
            is_empty: true,
            index: None,
            other_missing: "",
        }
    }

    fn read(&mut self, cursor: &mut Cursor<'a>, name: Text<'a>) -> Result<Raw<'a>, SyntaxError> {
        let value = cursor.value()?;
        self.is_empty = false;
        if name.is("index") {
            self.index = Some(value);
        }
        Ok(value)
    }

    fn number(&self) -> Option<usize> {
        match self.index?.integer()? {
            Integer::Value(index) => usize::try_from(index).ok(),
            Integer::Negative | Integer::Huge => None,
        }
    }

    fn number_if_missing(&self, number: usize, edits: &mut Vec<Edit>) {
        let mut missing = self.other_missing.to_owned();
        match self.index {
            Some(_) if self.number().is_some() => {}
            Some(wrong) => edits.push(Edit::replace(wrong.span(), number.to_string().into_bytes())),
            None => {
                let comma = if self.is_empty { "" } else { "," };
                // Writing into a String cannot fail.
                let _ = write!(missing, "\"index\":{number}{comma}");
            }
        }
        if !missing.is_empty() {
            edits.push(Edit::insert(self.start + 1, missing.into_bytes()));
        }
    }
}
