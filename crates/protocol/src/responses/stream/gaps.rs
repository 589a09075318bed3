//! Fills in what the events of an upstream's stream lack: numbers, indexes and ids of items.
//!
//! Some engines name items by their ids alone. Clients put an answer together by its indexes.

use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};
use crate::native::gap::{Gap, Item, Items, Marks};
use crate::native::places::Output;
use crate::usage::count;

/// The most items that are noted; a longer stream is not repaired any further.
const ITEMS_MAX: usize = 1024;
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
        | "reasoning_text.delta"
        | "reasoning_text.done"
        | "reasoning_summary_part.added"
        | "reasoning_summary_part.done"
        | "reasoning_summary_text.delta"
        | "reasoning_summary_text.done" => OF_PART,
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
    kind: Option<Raw<'a>>,
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

/// Fills in numbers, and the list of items of a response that has none yet.
#[cold]
pub(crate) fn fill(gap: &mut Gap<'_>, edits: &mut Vec<Edit>) -> Result<(), SyntaxError> {
    let mut members = Vec::new();
    if gap.lacks(Marks::SEQUENCE) {
        let last = gap.output.opening.sequence;
        let next = last.map_or(0, |last| last.saturating_add(1));
        gap.output.opening.sequence = Some(next);
        members.extend_from_slice(format!("\"sequence_number\":{next},").as_bytes());
    }
    if gap.lacks(Marks::ITEMS)
        && let Some(at) = gap.answer_start
    {
        edits.push(Edit::insert(at, &b"\"output\":[],"[..]));
    }
    if gap.output.required.has(Marks::INDEX) {
        let place = Place::of(gap.text)?;
        let index = place.item_index(gap.items, gap.output);
        let part = place.part_index(gap.items, index);
        if gap.lacks(Marks::ITEM_ID)
            && let Some(item) = gap.items.0.get(index).filter(|item| !item.id.is_empty())
        {
            members.extend_from_slice(b"\"item_id\":");
            write_string(&mut members, &item.id);
            members.push(b',');
        }
        if gap.lacks(Marks::INDEX) {
            members.extend_from_slice(format!("\"output_index\":{index},").as_bytes());
        }
        if gap.lacks(Marks::PART) {
            let name = if place.is_of_summary() {
                "summary_index"
            } else {
                "content_index"
            };
            members.extend_from_slice(format!("\"{name}\":{part},").as_bytes());
        }
    }
    gap.put_first(members, edits);
    Ok(())
}

impl<'a> Place<'a> {
    fn of(text: &'a str) -> Result<Self, SyntaxError> {
        let mut place = Self::default();
        Cursor::new(text).object(|cursor, name| {
            let value = cursor.value()?;
            match &*name.decode_lossy() {
                "type" => place.kind = Some(value),
                "item_id" => place.item_id = value.string(),
                "output_index" => place.index = count(value),
                "content_index" | "summary_index" => place.part = count(value),
                "item" => place.item_id = item_id(value),
                _ => {}
            }
            Ok::<(), SyntaxError>(())
        })?;
        Ok(place)
    }

    fn is(&self, kind: &str) -> bool {
        let text = self.kind.and_then(|kind| kind.string());
        text.is_some_and(|text| text.is(kind))
    }

    fn is_of_summary(&self) -> bool {
        let text = self.kind.and_then(|kind| kind.string());
        text.is_some_and(|text| text.raw().starts_with("response.reasoning_summary_"))
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
