//! Turns the events of one output item into blocks.

use super::items::Address;
use crate::canon::{Block, Delta, Event, Opaque, Token};
use crate::dialect::Dialect;
use crate::responses::response::{Citation, Item, Part};
use crate::unusable_answer::UnusableAnswer;

/// The kind of an item, which determines its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    /// An item that only this dialect has.
    Other,
}

impl Kind {
    pub(super) fn of(item: &Item<'_>) -> Self {
        match &*item.kind {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Call,
            _ => Self::Other,
        }
    }
}

/// A part of a message, and whether it is a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartKey {
    pub(super) index: u64,
    pub(super) is_refusal: bool,
}

/// The member in which reasoning was sent: a part of the summary, or the reasoning itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Summary(u64),
    Itself,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) kind: Kind,
    /// The first id that was used for the item.
    pub(super) id: Option<Box<str>>,
    pub(super) call_id: Option<Box<str>>,
    pub(super) index: Option<u64>,
    /// Whether the event that adds the item has arrived. Pieces of the item may arrive earlier.
    pub(super) added: bool,
    /// The number of summary parts that have started.
    pub(super) summary_parts: u64,
    open: OpenBlock,
    /// The parts of a message whose text was passed on, at least partly.
    parts_with_text: Vec<PartKey>,
    /// Whether a part without an index has started and has no text yet.
    part_begins: bool,
    /// The parts of a message that are complete.
    closed: Vec<u64>,
    /// The member in which the last piece of reasoning was sent.
    source: Option<Source>,
    /// Arguments that arrived before the name of their tool.
    early_arguments: String,
    /// Events that wait until this item is the live one.
    pub(super) waiting: Vec<Event>,
    pub(super) has_call: bool,
    pub(super) progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Running,
    Done,
    /// Complete, and all its events are passed on.
    Over,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    #[default]
    Nothing,
    Part {
        key: PartKey,
        is_cited: bool,
    },
    Thought,
    Call {
        has_arguments: bool,
    },
}

impl State {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            id: None,
            call_id: None,
            index: None,
            added: false,
            summary_parts: 0,
            open: OpenBlock::Nothing,
            parts_with_text: Vec::new(),
            part_begins: false,
            closed: Vec::new(),
            source: None,
            early_arguments: String::new(),
            waiting: Vec::new(),
            has_call: false,
            progress: Progress::Running,
        }
    }

    /// Whether an event that names no known item can belong to this item. The item must be incomplete, and its
    /// id and index must not differ from those in the event.
    pub(super) fn may_be(&self, address: Address<'_>) -> bool {
        let has_other_id = address.id.is_some() && self.id.is_some();
        let has_other_index = address.index.is_some() && self.index.is_some();
        !self.is_done() && !has_other_id && !has_other_index
    }

    /// Whether `item` is another call that reuses the id of this item. Each call has its own call
    /// id.
    pub(super) fn is_other_call(&self, item: &Item<'_>) -> bool {
        let call_id = item.call_id.as_deref().filter(|id| !id.is_empty());
        call_id.is_some() && self.call_id.is_some() && self.call_id.as_deref() != call_id
    }

    /// Stores the id and the index of the item, unless they are known already.
    pub(super) fn learn(&mut self, address: Address<'_>) {
        if self.id.is_none() {
            self.id = address.id.map(Into::into);
        }
        self.index = self.index.or(address.index);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.parts_with_text.iter().any(|key| key.is_refusal)
    }

    /// Whether later items may be passed on before this one is complete. Without indexes, items arrive one
    /// after another, and some upstreams report the end of an item only at the end of the answer. A call must
    /// be one block, so nothing overtakes it.
    pub(super) fn may_be_overtaken(&self) -> bool {
        self.index.is_none() && self.kind != Kind::Call
    }

    /// Starts a part that has no index.
    pub(super) fn next_part(&mut self) {
        self.part_begins = true;
    }

    /// The part that a piece without an index belongs to.
    pub(super) fn part_in_progress(&mut self, is_refusal: bool) -> u64 {
        let begins = std::mem::take(&mut self.part_begins);
        let mut parts = self.parts_with_text.iter().rev();
        let current = parts.find(|key| self.is_in_progress(**key, is_refusal));
        match current {
            Some(key) if !begins => key.index,
            _ => self.next_index(),
        }
    }

    /// The part that an event without an index completes.
    pub(super) fn part_to_close(&self, is_refusal: bool) -> u64 {
        let mut parts = self.parts_with_text.iter();
        let first = parts.find(|key| self.is_in_progress(**key, is_refusal));
        first.map_or_else(|| self.next_index(), |key| key.index)
    }

    fn is_in_progress(&self, key: PartKey, is_refusal: bool) -> bool {
        key.is_refusal == is_refusal && !self.closed.contains(&key.index)
    }

    fn next_index(&self) -> u64 {
        let parts = self.parts_with_text.iter().map(|key| key.index);
        let last = parts.chain(self.closed.iter().copied()).max();
        last.map_or(0, |last| last.saturating_add(1))
    }

    pub(super) fn text(&mut self, key: PartKey, text: &str, tokens: Vec<Token>) {
        if (text.is_empty() && tokens.is_empty()) || self.is_done() {
            return;
        }
        if !matches!(self.open, OpenBlock::Part { key: open, .. } if open == key) {
            self.close();
            let block = if key.is_refusal {
                Block::Refusal
            } else {
                Block::Text
            };
            self.start(block);
            self.parts_with_text.push(key);
            self.open = OpenBlock::Part {
                key,
                is_cited: false,
            };
        }
        if !tokens.is_empty() && !key.is_refusal {
            self.push(Delta::Logprobs(tokens));
        }
        if !text.is_empty() {
            self.push(Delta::Text(text.to_owned()));
        }
    }

    /// Adds a citation. If its text is no longer open, the citation is dropped.
    pub(super) fn cite(&mut self, at: u64, citation: Citation) {
        if let OpenBlock::Part { key, is_cited } = &mut self.open
            && key.index == at
        {
            *is_cited = true;
            self.push(Delta::Citation {
                url: citation.url,
                title: citation.title,
                start: citation.start,
                end: citation.end,
            });
        }
    }

    pub(super) fn part_done(&mut self, index: u64, part: &Part<'_>) {
        let key = PartKey {
            index,
            is_refusal: part.is_refusal,
        };
        if self.closed.contains(&index) {
            return;
        }
        if self.parts_with_text.iter().all(|key| key.index != index) {
            self.text(key, &part.text, part.logprobs.clone());
        }
        if let OpenBlock::Part { key, is_cited } = self.open
            && key.index == index
        {
            for citation in part.citations.iter().filter(|_| !is_cited) {
                self.cite(index, citation.clone());
            }
            self.close();
        }
        self.closed.push(index);
    }

    /// Adds a piece of reasoning. Each part of a summary becomes a paragraph. If the upstream sends
    /// both a summary and the reasoning itself, the one that starts first is used.
    pub(super) fn thought(&mut self, source: Source, text: &str) {
        if text.is_empty() || self.is_done() {
            return;
        }
        match (self.source, source) {
            (Some(Source::Summary(_)), Source::Itself)
            | (Some(Source::Itself), Source::Summary(_)) => return,
            (Some(before), source) if before != source && self.open == OpenBlock::Thought => {
                self.push(Delta::Text("\n\n".to_owned()));
            }
            _ => {}
        }
        self.source = Some(source);
        if self.open != OpenBlock::Thought {
            self.close();
            self.start(Block::Thought);
            self.open = OpenBlock::Thought;
        }
        self.push(Delta::Text(text.to_owned()));
    }

    pub(super) fn call(&mut self, number: usize, item: &Item<'_>, name: &str) {
        if self.has_call || self.is_done() {
            return;
        }
        self.close();
        self.has_call = true;
        let id = item.call_id.as_ref().or(item.id.as_ref());
        self.start(Block::ToolCall {
            id: id.map_or_else(|| format!("call_{number}"), ToString::to_string),
            name: name.to_owned(),
        });
        self.open = OpenBlock::Call {
            has_arguments: false,
        };
        let early_arguments = std::mem::take(&mut self.early_arguments);
        self.arguments(&early_arguments);
    }

    pub(super) fn arguments(&mut self, text: &str) {
        if text.is_empty() || self.is_done() {
            return;
        }
        match &mut self.open {
            OpenBlock::Call { has_arguments } => {
                *has_arguments = true;
                self.push(Delta::Arguments(text.to_owned()));
            }
            _ if !self.has_call => self.early_arguments.push_str(text),
            _ => {}
        }
    }

    pub(super) fn done(
        &mut self,
        number: usize,
        item: &Item<'_>,
        model: &str,
    ) -> Result<(), UnusableAnswer> {
        if self.is_done() {
            return Ok(());
        }
        match &*item.kind {
            "message" => {
                for (at, part) in (0..).zip(&item.content) {
                    self.part_done(at, part);
                }
            }
            "reasoning" => {
                if self.source.is_none() {
                    self.thought(Source::Itself, &item.thought());
                }
                self.push_encrypted(&item.encrypted, model);
            }
            "function_call" => {
                let Some(name) = &item.name else {
                    return Err(UnusableAnswer::malformed("a tool call has no name"));
                };
                self.call(number, item, name);
                if self.open
                    == (OpenBlock::Call {
                        has_arguments: false,
                    })
                {
                    let arguments = match item.arguments.trim() {
                        "" => "{}",
                        _ => &item.arguments,
                    };
                    self.arguments(arguments);
                }
            }
            _ => {}
        }
        self.close();
        self.progress = Progress::Done;
        Ok(())
    }

    /// Adds the encrypted form of reasoning, which its model needs back.
    fn push_encrypted(&mut self, encrypted: &str, model: &str) {
        if encrypted.is_empty() {
            return;
        }
        if self.open != OpenBlock::Thought {
            self.close();
            self.start(Block::Thought);
            self.open = OpenBlock::Thought;
        }
        self.push(Delta::Opaque(Opaque {
            origin: Dialect::Responses,
            model: model.into(),
            text: encrypted.into(),
        }));
    }

    /// Ends an item that the upstream did not complete before the answer ended.
    pub(super) fn finish_incomplete(&mut self) -> Result<(), UnusableAnswer> {
        if self.is_done() {
            return Ok(());
        }
        if !self.early_arguments.is_empty() {
            return Err(UnusableAnswer::malformed("a tool call has no name"));
        }
        if self.open
            == (OpenBlock::Call {
                has_arguments: false,
            })
        {
            self.arguments("{}");
        }
        self.close();
        self.progress = Progress::Done;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.progress != Progress::Running
    }

    fn start(&mut self, block: Block) {
        self.waiting.push(Event::BlockStart(block));
    }

    fn push(&mut self, delta: Delta) {
        self.waiting.push(Event::Delta(delta));
    }

    pub(super) fn close(&mut self) {
        if std::mem::take(&mut self.open) != OpenBlock::Nothing {
            self.waiting.push(Event::BlockStop);
        }
    }
}
