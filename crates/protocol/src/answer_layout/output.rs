//! Facts about the output of an answer or a stream, which the native path collects.

use super::members::MemberSet;
use crate::count::Counter;
use crate::json::Raw;
use crate::json::patch::Edit;
use crate::scrub::{Names, WordEdits};
use crate::tool::ToolCalls;
use crate::usage::Usage;

/// Whether a stream may end here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum StreamEnd {
    /// More events must follow. A stream that closes here is broken.
    #[default]
    Open,
    /// More events may follow. A stream that closes here is complete.
    Closable,
    /// The last event was relayed.
    Reached,
}

/// The maximum number of items that are recorded. Later items of a stream are not repaired.
pub(crate) const ITEMS_MAX: usize = 1024;

/// Facts about the output, collected while the native path relays it.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "things that are seen or not, each by itself"
)]
pub(crate) struct Output {
    pub(crate) counter: Counter,
    /// Whether there was any output so far.
    pub(crate) content: bool,
    /// The number of items in the current event or answer.
    pub(crate) items: usize,
    /// Whether the current event or answer has a list of items.
    pub(crate) has_items: bool,
    pub(crate) event_has_content: bool,
    /// Whether an item of the current event has the members that clients read in every item.
    pub(crate) has_complete_item: bool,
    /// Whether the current event has results of a content filter.
    pub(crate) has_filter: bool,
    /// The members that the current event has, and those that it should have.
    pub(crate) present: MemberSet,
    pub(crate) required: MemberSet,
    /// The number of items, blocks or steps that have started.
    pub(crate) items_started: u64,
    /// The index of the item that the current event belongs to.
    pub(crate) index: Option<u64>,
    pub(crate) begins_part: bool,
    pub(crate) adds_reasoning: bool,
    /// The items that have started a part of their content.
    pub(crate) items_with_part: Vec<u64>,
    /// The id of the last item that an event named. Its buffer is reused.
    pub(crate) last_item: String,
    /// Whether usage is hidden from the client, because it did not ask for it.
    pub(crate) hides_usage: bool,
    /// Whether the client asked for usage. If the upstream's report is missing or unusable, we write our own
    /// and the client sees no other.
    pub(crate) owes_usage: bool,
    /// Whether a member of the current event or answer identifies the upstream.
    pub(crate) names_vendor: bool,
    /// Whether the current event is an error.
    pub(crate) failed: bool,
    /// Whether the stream may end, according to its own events. The value only moves forward.
    pub(crate) end: StreamEnd,
    /// Whether the usage reports so far are interim. Our own count may then be higher.
    pub(crate) usage_is_interim: bool,
    pub(crate) usage: Option<Usage>,
    /// Calls of built-in tools in the output. A usage report may have a better count.
    pub(crate) tools: ToolCalls,
    /// Pictures in the output, except those in thoughts.
    pub(crate) pictures: u64,
    /// The number of deltas since the last whole item. The next whole item repeats them.
    pub(crate) deltas: usize,
    /// Data for the event that ends a failed stream.
    pub(crate) opening: StreamOpening,
    /// Text that the upstream wrote about itself, if there is any.
    pub(crate) upstream_text: Option<Box<WordEdits>>,
}

/// Data from the events of a stream so far, for the event that ends the stream if it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StreamOpening {
    /// Whether the event that opens the answer was relayed.
    pub(crate) opened: bool,
    /// When the answer was created, in Unix seconds.
    pub(crate) created: Option<u64>,
    /// The number of the last event.
    pub(crate) sequence: Option<u64>,
}

impl Output {
    /// Resets everything that belongs to a single event.
    pub(crate) fn next_event(&mut self) {
        if std::mem::take(&mut self.begins_part)
            && let Some(index) = self.index
        {
            self.note_part(index);
        }
        self.index = None;
        self.adds_reasoning = false;
        self.items = 0;
        self.has_items = false;
        self.event_has_content = false;
        self.has_complete_item = false;
        self.has_filter = false;
        self.failed = false;
        self.names_vendor = false;
        self.present = MemberSet::NONE;
        self.required = MemberSet::NONE;
        if let Some(words) = &mut self.upstream_text {
            words.edits.clear();
        }
    }

    /// Records that a part of an item's content has started.
    pub(crate) fn note_part(&mut self, index: u64) {
        let is_new = !self.items_with_part.contains(&index);
        if is_new && self.items_with_part.len() < ITEMS_MAX {
            self.items_with_part.push(index);
        }
    }

    /// Records a value whose text the upstream wrote, not the model, so that the text is removed.
    // Cold, because few answers have text of the upstream.
    #[cold]
    pub(crate) fn withhold(&mut self, value: Raw<'_>) {
        if !value.is_null() && !value.is_empty() {
            let words = self.upstream_text.get_or_insert_default();
            words.clean("", value, Names::default());
        }
    }

    /// The edits that remove the upstream's own text from the current event or answer.
    pub(crate) fn upstream_text_edits(&self) -> &[Edit] {
        self.upstream_text
            .as_ref()
            .map_or(&[], |words| &words.edits)
    }

    pub(crate) fn withheld(&self) -> Option<&str> {
        self.upstream_text.as_ref()?.withheld()
    }
}
