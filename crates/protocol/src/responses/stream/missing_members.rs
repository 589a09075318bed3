//! Fills in the members that an upstream's events lack: sequence numbers, indexes and item ids.
//!
//! Some engines identify items only by id. Clients assemble an answer by its indexes.

use std::borrow::Cow;
use std::ops::Range;

use crate::answer_layout::{ITEMS_MAX, IncompleteEvent, Item, Items, MemberSet, Output};
use crate::json::patch::Edit;
use crate::json::write::object;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};
use crate::usage::count;

/// Longer ids are not remembered.
const ITEM_ID_BYTES_MAX: usize = 256;

const OF_ITEM: MemberSet = MemberSet::SEQUENCE.union(MemberSet::INDEX);
const INSIDE_ITEM: MemberSet = OF_ITEM.union(MemberSet::ITEM_ID);
const OF_PART: MemberSet = INSIDE_ITEM.union(MemberSet::PART);

pub(crate) fn required(kind: &str) -> MemberSet {
    match kind.strip_prefix("response.").unwrap_or_default() {
        "created" | "in_progress" => MemberSet::SEQUENCE.union(MemberSet::ITEMS),
        "output_text.delta"
        | "output_text.done"
        | "output_text.annotation.added"
        | "content_part.added"
        | "content_part.done"
        | "refusal.delta"
        | "refusal.done"
        | "reasoning_text.done"
        | "reasoning_summary_part.added"
        | "reasoning_summary_part.done"
        | "reasoning_summary_text.delta"
        | "reasoning_summary_text.done" => OF_PART,
        "reasoning_text.delta" => OF_PART.union(MemberSet::PART_STARTED),
        "function_call_arguments.delta"
        | "function_call_arguments.done"
        | "custom_tool_call_input.delta"
        | "custom_tool_call_input.done" => INSIDE_ITEM,
        "output_item.added" | "output_item.done" => OF_ITEM,
        // A type without the prefix, such as `error`. Its event needs no members.
        "" => MemberSet::NONE,
        _ => MemberSet::SEQUENCE,
    }
}

/// The members of an event that give its position in the stream.
#[derive(Debug, Default)]
struct EventPosition<'a> {
    kind: Cow<'a, str>,
    item_id: Option<Text<'a>>,
    index: Option<u64>,
    part: Option<u64>,
}

pub(crate) fn item_id(item: Raw<'_>) -> Option<Text<'_>> {
    if item.shape() != Shape::Object {
        return None;
    }
    let mut id = None;
    // The caller has validated the JSON.
    let _ = Cursor::new(item.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("id") {
            id = value.string();
        }
        Ok::<(), SyntaxError>(())
    });
    id
}

/// Fills in sequence numbers, indexes and item ids. Adds the list of items to a response that has none yet,
/// and the event that starts a part of reasoning.
#[cold]
pub(crate) fn fill_in(
    event: &mut IncompleteEvent<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    if event.lacks(MemberSet::ITEMS) {
        if let Some(wrong) = output_span(event.text)? {
            edits.push(Edit::replace(wrong, &b"[]"[..]));
        } else if let Some(at) = event.answer_start {
            edits.push(Edit::insert(at, &b"\"output\":[],"[..]));
        }
    }
    if !event.output.required.has(MemberSet::INDEX) {
        return fill_sequence(event, edits);
    }
    let position = EventPosition::of(event.text, event.name)?;
    let index = position.item_index(event.items, event.output);
    let part = position.part_index(event.items, index);
    let mut id = Vec::new();
    if let Some(item) = event.items.0.get(index).filter(|item| !item.id.is_empty()) {
        write_string(&mut id, &item.id);
    }
    let id = String::from_utf8_lossy(&id);
    let index_u64 = u64::try_from(index).unwrap_or(u64::MAX);
    if position.kind == "response.content_part.added" {
        event.output.note_part(index_u64);
    }
    if event.lacks(MemberSet::PART_STARTED) && !event.output.items_with_part.contains(&index_u64) {
        begin_part(event, &id, index_u64, part);
    }
    fill_sequence(event, edits)?;
    if event.lacks(MemberSet::ITEM_ID) && !id.is_empty() {
        event.set("item_id", &id, edits)?;
    }
    if event.lacks(MemberSet::INDEX) {
        event.set("output_index", &index.to_string(), edits)?;
    }
    if event.lacks(MemberSet::PART) {
        let name = if position.is_of_summary() {
            "summary_index"
        } else {
            "content_index"
        };
        event.set(name, &part.to_string(), edits)?;
    }
    Ok(())
}

fn fill_sequence(
    event: &mut IncompleteEvent<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    if event.lacks(MemberSet::SEQUENCE) {
        let next = next_sequence(event.output);
        event.set("sequence_number", &next.to_string(), edits)?;
    }
    Ok(())
}

fn next_sequence(output: &mut Output) -> u64 {
    let next = output
        .opening
        .sequence
        .map_or(0, |last| last.saturating_add(1));
    output.opening.sequence = Some(next);
    next
}

/// Inserts the event that starts a part of reasoning before the first text of the part. Clients
/// fail on text of an unknown part.
fn begin_part(event: &mut IncompleteEvent<'_>, id: &str, index: u64, part: u64) {
    event.output.note_part(index);
    let sequence = if event.lacks(MemberSet::SEQUENCE) {
        next_sequence(event.output)
    } else {
        event.output.opening.sequence.unwrap_or(0)
    };
    let name = "response.content_part.added";
    event
        .before
        .extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    object(&mut event.before, |it| {
        it.text("type", name).number("sequence_number", sequence);
        if !id.is_empty() {
            it.raw("item_id", id);
        }
        it.number("output_index", index)
            .number("content_index", part);
        it.object("part", |it| {
            it.text("type", "reasoning_text").text("text", "");
        });
    });
    event.before.extend_from_slice(b"\n\n");
}

/// The span of a response's list of items, even if its value is not a list.
fn output_span(text: &str) -> Result<Option<Range<usize>>, SyntaxError> {
    let mut span = None;
    Cursor::new(text).object(|cursor, name| {
        if !name.is("response") || cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            if name.is("output") {
                span = Some(value.span());
            }
            Ok::<(), SyntaxError>(())
        })
    })?;
    Ok(span)
}

impl<'a> EventPosition<'a> {
    /// `name` is the type of an event whose data does not contain it.
    fn of(text: &'a str, name: Option<&'a str>) -> Result<Self, SyntaxError> {
        let mut position = Self {
            kind: Cow::Borrowed(name.unwrap_or_default()),
            ..Self::default()
        };
        Cursor::new(text).object(|cursor, name| {
            let value = cursor.value()?;
            match &*name.decode_lossy() {
                "type" => {
                    if let Some(kind) = value.string() {
                        position.kind = kind.decode_lossy();
                    }
                }
                "item_id" => position.item_id = value.string().or(position.item_id),
                "output_index" => position.index = count(value),
                "content_index" | "summary_index" => position.part = count(value),
                "item" => position.item_id = item_id(value).or(position.item_id),
                _ => {}
            }
            Ok::<(), SyntaxError>(())
        })?;
        Ok(position)
    }

    fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    fn is_of_summary(&self) -> bool {
        self.kind.starts_with("response.reasoning_summary_")
    }

    /// The index of the item, from the event or found by the item's id. An unknown id belongs to a new item.
    /// Without an id, the event belongs to the item that started last.
    fn item_index(&self, items: &mut Items, output: &Output) -> usize {
        let id = self.item_id.map(|id| id.decode_lossy());
        let id = id.filter(|id| id.len() <= ITEM_ID_BYTES_MAX);
        let id = id.unwrap_or_default();
        let items = &mut items.0;
        let last = usize::try_from(output.items_started.saturating_sub(1)).unwrap_or(usize::MAX);
        let said = self.index.and_then(|index| usize::try_from(index).ok());
        let known = || {
            items
                .iter()
                .position(|item| !id.is_empty() && *item.id == *id)
        };
        let index = match said.or_else(known) {
            Some(index) => index,
            None if self.is("response.output_item.added") => last.max(items.len()),
            // Items before the first incomplete event were not recorded. Only the newest of them is known.
            None if id.is_empty() || *id == *output.last_item => last,
            None => items.len(),
        };
        if index < ITEMS_MAX && index >= items.len() {
            items.resize_with(index + 1, Item::default);
        }
        if let Some(item) = items.get_mut(index).filter(|item| item.id.is_empty()) {
            let is_last = id.is_empty() && index == last;
            item.id = if is_last {
                output.last_item.as_str()
            } else {
                &*id
            }
            .into();
        }
        index
    }

    /// The index of the part, from the event. Otherwise an event that adds a part gets the next index, and
    /// any other event belongs to the part that was added last.
    fn part_index(&self, items: &mut Items, index: usize) -> u64 {
        let parts = items.0.get_mut(index).map(|item| &mut item.parts);
        let Some([content, summary]) = parts else {
            return self.part.unwrap_or(0);
        };
        let parts = if self.is_of_summary() {
            summary
        } else {
            content
        };
        if self.is("response.content_part.added")
            || self.is("response.reasoning_summary_part.added")
        {
            let part = self.part.unwrap_or(*parts);
            *parts = part.saturating_add(1);
            return part;
        }
        self.part.unwrap_or(parts.saturating_sub(1))
    }
}
