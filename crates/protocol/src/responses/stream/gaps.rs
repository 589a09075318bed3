//! Fills in what the events of an upstream's stream lack: numbers, indexes and ids of items.
//!
//! Some engines name items by their ids alone. Clients put an answer together by its indexes.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::patch::Edit;
use crate::json::write::object;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};
use crate::native::gap::{Gap, Item, Items, Marks};
use crate::native::places::{ITEMS_MAX, Output};
use crate::usage::count;

/// Longer ids are not remembered.
const ITEM_ID_BYTES_MAX: usize = 256;

const OF_ITEM: Marks = Marks::SEQUENCE.and(Marks::INDEX);
const INSIDE_ITEM: Marks = OF_ITEM.and(Marks::ITEM_ID);
const OF_PART: Marks = INSIDE_ITEM.and(Marks::PART);

/// The marks that an event of this type has to have.
pub(crate) fn required(kind: &str) -> Marks {
    match kind.strip_prefix("response.").unwrap_or_default() {
        "created" | "in_progress" => Marks::SEQUENCE.and(Marks::ITEMS),
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
        "reasoning_text.delta" => OF_PART.and(Marks::PART_BEGUN),
        "function_call_arguments.delta"
        | "function_call_arguments.done"
        | "custom_tool_call_input.delta"
        | "custom_tool_call_input.done" => INSIDE_ITEM,
        "output_item.added" | "output_item.done" => OF_ITEM,
        // A whole answer has no type.
        "" => Marks::NONE,
        _ => Marks::SEQUENCE,
    }
}

/// What an event says about its place in the stream.
#[derive(Debug, Default)]
struct Place<'a> {
    kind: Cow<'a, str>,
    item_id: Option<Text<'a>>,
    index: Option<u64>,
    part: Option<u64>,
}

/// The id of an item.
pub(crate) fn item_id(item: Raw<'_>) -> Option<Text<'_>> {
    if item.shape() != Shape::Object {
        return None;
    }
    let mut id = None;
    // The text has been checked already.
    let _ = Cursor::new(item.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("id") {
            id = value.string();
        }
        Ok::<(), SyntaxError>(())
    });
    id
}

/// Fills in numbers, the list of items of a response that has none yet, and the event that begins a
/// part of reasoning.
#[cold]
pub(crate) fn fill(gap: &mut Gap<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    if gap.lacks(Marks::ITEMS) {
        if let Some(wrong) = output_span(gap.text)? {
            edits.push(Edit::replace(wrong, &b"[]"[..]));
        } else if let Some(at) = gap.answer_start {
            edits.push(Edit::insert(at, &b"\"output\":[],"[..]));
        }
    }
    if !gap.output.required.has(Marks::INDEX) {
        return fill_sequence(gap, edits);
    }
    let place = Place::of(gap.text, gap.name)?;
    let index = place.item_index(gap.items, gap.output);
    let part = place.part_index(gap.items, index);
    let mut id = Vec::new();
    if let Some(item) = gap.items.0.get(index).filter(|item| !item.id.is_empty()) {
        write_string(&mut id, &item.id);
    }
    let id = String::from_utf8_lossy(&id);
    let index_u64 = u64::try_from(index).unwrap_or(u64::MAX);
    if place.kind == "response.content_part.added" {
        gap.output.note_part(index_u64);
    }
    if gap.lacks(Marks::PART_BEGUN) && !gap.output.items_with_part.contains(&index_u64) {
        begin_part(gap, &id, index_u64, part);
    }
    fill_sequence(gap, edits)?;
    if gap.lacks(Marks::ITEM_ID) && !id.is_empty() {
        gap.set("item_id", &id, edits)?;
    }
    if gap.lacks(Marks::INDEX) {
        gap.set("output_index", &index.to_string(), edits)?;
    }
    if gap.lacks(Marks::PART) {
        let name = if place.is_of_summary() {
            "summary_index"
        } else {
            "content_index"
        };
        gap.set(name, &part.to_string(), edits)?;
    }
    Ok(())
}

fn fill_sequence(gap: &mut Gap<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    if gap.lacks(Marks::SEQUENCE) {
        let next = next_sequence(gap.output);
        gap.set("sequence_number", &next.to_string(), edits)?;
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

/// Puts the event that begins a part of reasoning before the first text of the part. Clients fail on
/// text of a part that they do not know.
fn begin_part(gap: &mut Gap<'_>, id: &str, index: u64, part: u64) {
    gap.output.note_part(index);
    let sequence = if gap.lacks(Marks::SEQUENCE) {
        next_sequence(gap.output)
    } else {
        gap.output.opening.sequence.unwrap_or(0)
    };
    let name = "response.content_part.added";
    gap.before
        .extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    object(&mut gap.before, |it| {
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
    gap.before.extend_from_slice(b"\n\n");
}

/// Where the list of items stands in a response, whatever it is.
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

impl<'a> Place<'a> {
    /// `name` is the type of an event whose data does not say it.
    fn of(text: &'a str, name: Option<&'a str>) -> Result<Self, SyntaxError> {
        let mut place = Self {
            kind: Cow::Borrowed(name.unwrap_or_default()),
            ..Self::default()
        };
        Cursor::new(text).object(|cursor, name| {
            let value = cursor.value()?;
            match &*name.decode_lossy() {
                "type" => {
                    if let Some(kind) = value.string() {
                        place.kind = kind.decode_lossy();
                    }
                }
                "item_id" => place.item_id = value.string().or(place.item_id),
                "output_index" => place.index = count(value),
                "content_index" | "summary_index" => place.part = count(value),
                "item" => place.item_id = item_id(value).or(place.item_id),
                _ => {}
            }
            Ok::<(), SyntaxError>(())
        })?;
        Ok(place)
    }

    fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    fn is_of_summary(&self) -> bool {
        self.kind.starts_with("response.reasoning_summary_")
    }

    /// The index of the item: as the event says, else by the item's id, else that of the item which
    /// has begun last. An unknown id is a new item.
    fn item_index(&self, items: &mut Items, output: &Output) -> usize {
        let id = self.item_id.map(|id| id.decode_lossy());
        let id = id.filter(|id| id.len() <= ITEM_ID_BYTES_MAX);
        let id = id.unwrap_or_default();
        let items = &mut items.0;
        let last = usize::try_from(output.begun.saturating_sub(1)).unwrap_or(usize::MAX);
        let said = self.index.and_then(|index| usize::try_from(index).ok());
        let known = || {
            items
                .iter()
                .position(|item| !id.is_empty() && *item.id == *id)
        };
        let index = match said.or_else(known) {
            Some(index) => index,
            None if self.is("response.output_item.added") => last.max(items.len()),
            // Items from before the first gap were not noted, but the newest one is known.
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

    /// The index of the part: as the event says, else the next one for a part that is added, else
    /// the one that was added last.
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
