//! Where each dialect keeps what the native path must find or change in an answer.

use super::gap::{Fill, Marks};
use super::identity::{Name, NameSet, Shown};
use crate::count::Counter;
use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, SyntaxError, Text};
use crate::needle::Needle;
use crate::scrub::{Names, Words};
use crate::tool::ToolCalls;
use crate::usage::Usage;

/// The row of one dialect. Names are those of the members of an answer or of an event.
#[derive(Debug)]
pub(crate) struct Places {
    /// The member of an event in which the answer's own members stand, if there is one.
    pub(crate) envelope: Option<&'static str>,
    /// Members in which more members may say who served the answer: the envelope, or the lists and
    /// objects of the output.
    pub(crate) nested: &'static [&'static str],
    /// The response id.
    pub(crate) id: &'static str,
    /// Another member that repeats the response id, if there is one.
    pub(crate) id_again: Option<&'static str>,
    /// The model.
    pub(crate) model: &'static str,
    /// The time at which the answer was made, in Unix seconds, if the dialect has it.
    pub(crate) created: Option<&'static str>,
    /// A member beside the id and what it always says, whatever the upstream put there.
    pub(crate) shown: Option<Shown>,
    /// The usage report.
    pub(crate) usage: &'static str,
    /// Reads a usage report, which may only add to the one before; nothing if it cannot be billed
    /// by.
    pub(crate) read_usage: fn(Raw<'_>, Option<Usage>) -> Option<Usage>,
    /// Reads a member that carries output; `false` if it is none and was not read.
    pub(crate) read_output: fn(Text<'_>, &mut Cursor<'_>, &mut Output) -> Result<bool, SyntaxError>,
    /// Words without which an answer or event tells of no built-in tool, its usage aside.
    pub(crate) tool_needles: &'static [Needle],
    /// Whether a whole answer without items (choices, candidates) is none.
    pub(crate) needs_items: bool,
    /// The event that ends a stream, where one says nothing else.
    pub(crate) done: Option<Done>,
    /// Whether clients of the dialect read nothing but lines that begin with `data: `: a comment
    /// or the name of an event ends the stream for them.
    pub(crate) data_only: bool,
    /// Whether usage comes in an event of its own, which a caller gets only on request.
    pub(crate) usage_event: bool,
    /// The member that repeats the name of an event, where events have names.
    pub(crate) event_name: Option<&'static str>,
    /// Fills in the marks that an event lacks, if the dialect requires any.
    pub(crate) fill: Option<Fill>,
}

impl Places {
    /// The members of an answer's identity, with the names that the dialect has for them.
    pub(super) fn identity_members(&self) -> [(Name, Option<&'static str>); 4] {
        [
            (Name::Id, Some(self.id)),
            (Name::Created, self.created),
            (Name::Model, Some(self.model)),
            (Name::Shown, self.shown.map(|(name, _)| name)),
        ]
    }

    /// What an answer has to say about its identity.
    pub(super) fn required_identity(&self) -> NameSet {
        let members = self.identity_members().into_iter();
        let required = members.filter(|(_, member)| member.is_some());
        required.fold(NameSet::default(), |all, (name, _)| all.with(name))
    }

    /// Which part of the answer's identity the member of this name is.
    pub(crate) fn identity(&self, name: Text<'_>) -> Option<Name> {
        if name.is(self.id) || self.id_again.is_some_and(|again| name.is(again)) {
            Some(Name::Id)
        } else if name.is(self.model) {
            Some(Name::Model)
        } else if self.created.is_some_and(|created| name.is(created)) {
            Some(Name::Created)
        } else if self.shown.is_some_and(|(shown, _)| name.is(shown)) {
            Some(Name::Shown)
        } else {
            None
        }
    }
}

/// An event that ends a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// Its data, by which it is known.
    pub(crate) data: &'static str,
    /// The event as it is sent.
    pub(crate) frame: &'static str,
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum End {
    /// More must come: a close would be a break.
    #[default]
    Open,
    /// More may come, and a close is an end.
    Closable,
    /// The last event has gone by.
    Reached,
}

/// The most items that are noted; a longer stream is not repaired any further.
pub(crate) const ITEMS_MAX: usize = 1024;

/// What is learnt of the output in passing.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "things that are seen or not, each by itself"
)]
pub(crate) struct Output {
    /// Counts all output.
    pub(crate) counter: Counter,
    /// Whether there was any output.
    pub(crate) content: bool,
    /// Items of the current event or answer.
    pub(crate) items: usize,
    /// Whether the current event or answer has a list of items.
    pub(crate) has_items: bool,
    /// Whether the items of the current event say anything.
    pub(crate) said: bool,
    /// The marks that the current event has, and those that it should have.
    pub(crate) present: Marks,
    pub(crate) required: Marks,
    /// Items, blocks or steps that have begun.
    pub(crate) begun: u64,
    /// The index of the item that the current event is about.
    pub(crate) index: Option<u64>,
    /// Whether the current event begins a part of its item, or adds reasoning to one.
    pub(crate) begins_part: bool,
    pub(crate) adds_reasoning: bool,
    /// The items of which a part of the content has begun.
    pub(crate) items_with_part: Vec<u64>,
    /// The id of the item that an event told of last; its room is used again.
    pub(crate) last_item: String,
    /// Whether usage is not for the caller, who has not asked for it.
    pub(crate) hides_usage: bool,
    /// Whether a member of the current event or answer says who served it.
    pub(crate) names_server: bool,
    /// Whether the current event says that it is an error.
    pub(crate) failed: bool,
    /// How far the stream is, as its own events tell. It never goes back.
    pub(crate) end: End,
    /// Whether usage reports are interim for now: what we count ourselves may be more.
    pub(crate) interim: bool,
    /// The usage so far.
    pub(crate) usage: Option<Usage>,
    /// Calls of built-in tools that went by; a usage report may count them better.
    pub(crate) tools: ToolCalls,
    /// Pictures that went by; those of thoughts are none.
    pub(crate) pictures: u64,
    /// Deltas since the last whole item, which the next one repeats.
    pub(crate) deltas: usize,
    /// What the event that ends a failed stream repeats, where the dialect has it.
    pub(crate) opening: Opening,
    /// What the upstream says of itself, where it says anything.
    pub(crate) words: Option<Box<Words>>,
}

/// What a stream has said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Opening {
    /// Whether the event has gone by that opens the answer.
    pub(crate) opened: bool,
    /// When the answer was made, in unix seconds.
    pub(crate) created: Option<u64>,
    /// The number of the last event.
    pub(crate) sequence: Option<u64>,
}

impl Output {
    /// Forgets what belongs to one event alone.
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
        self.said = false;
        self.failed = false;
        self.names_server = false;
        self.present = Marks::NONE;
        self.required = Marks::NONE;
        if let Some(words) = &mut self.words {
            words.edits.clear();
        }
    }

    /// Notes that a part of an item's content has begun.
    pub(crate) fn note_part(&mut self, index: u64) {
        let is_new = !self.items_with_part.contains(&index);
        if is_new && self.items_with_part.len() < ITEMS_MAX {
            self.items_with_part.push(index);
        }
    }

    /// Notes a value in which the upstream, not the model, says something in free words.
    // Few answers have one.
    #[cold]
    pub(crate) fn clean(&mut self, value: Raw<'_>) {
        if !value.is_null() && !value.is_empty() {
            let words = self.words.get_or_insert_default();
            words.clean("", value, Names::default());
        }
    }

    /// The changes to such words in the current event or answer.
    pub(crate) fn word_edits(&self) -> &[Edit] {
        self.words.as_ref().map_or(&[], |words| &words.edits)
    }

    /// The words that were not shown so far.
    pub(crate) fn withheld(&self) -> Option<&str> {
        self.words.as_ref()?.withheld()
    }
}
