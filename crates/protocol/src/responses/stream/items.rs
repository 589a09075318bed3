//! Puts the items of a stream in a row: one block at a time, each whole.
//!
//! Upstreams may work on several items at once. One item is live and its events go out as they
//! come; those of the others wait until it is done. What was not told piece by piece is taken from
//! the event that tells it whole.

use std::collections::BTreeMap;

use super::item::{PartKey, Progress, Source, State};
use crate::canon::{Event, Token};
use crate::native::Broken;
use crate::responses::response::{Citation, Item, Part};

/// All items of an answer.
#[derive(Debug)]
pub(super) struct Items {
    model: Box<str>,
    /// By output index.
    states: BTreeMap<u64, State>,
    /// The item whose events go out.
    live: Option<u64>,
}

impl Items {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            states: BTreeMap::new(),
            live: None,
        }
    }

    /// Whether a tool was called.
    pub(super) fn has_calls(&self) -> bool {
        let mut states = self.states.values();
        states.any(|state| state.has_call)
    }

    /// Whether the model refused.
    pub(super) fn is_refused(&self) -> bool {
        let mut states = self.states.values();
        states.any(|state| state.is_refused)
    }

    /// The item that an event without an index is about.
    pub(super) fn current(&self) -> u64 {
        let last = self.states.keys().next_back();
        last.copied().unwrap_or(0)
    }

    /// An item begins.
    pub(super) fn added(&mut self, index: u64, item: &Item<'_>, out: &mut Vec<Event>) {
        let state = self.state(index);
        if let ("function_call", Some(name)) = (&*item.kind, &item.name) {
            state.call(index, item, name);
        }
        self.flush(out);
    }

    /// A piece of a message.
    pub(super) fn text(
        &mut self,
        index: u64,
        part: PartKey,
        text: &str,
        tokens: Vec<Token>,
        out: &mut Vec<Event>,
    ) {
        self.state(index).text(part, text, tokens);
        self.flush(out);
    }

    /// A source of a message.
    pub(super) fn cite(&mut self, index: u64, at: u64, citation: Citation, out: &mut Vec<Event>) {
        self.state(index).cite(at, citation);
        self.flush(out);
    }

    /// A part of a message is complete.
    pub(super) fn part_done(&mut self, index: u64, at: u64, part: &Part<'_>, out: &mut Vec<Event>) {
        self.state(index).part_done(at, part);
        self.flush(out);
    }

    /// A piece of reasoning.
    pub(super) fn thought(&mut self, index: u64, source: Source, text: &str, out: &mut Vec<Event>) {
        self.state(index).thought(source, text);
        self.flush(out);
    }

    /// A piece of a call's arguments.
    pub(super) fn arguments(&mut self, index: u64, text: &str, out: &mut Vec<Event>) {
        self.state(index).arguments(text);
        self.flush(out);
    }

    /// An item is complete.
    pub(super) fn done(
        &mut self,
        index: u64,
        item: &Item<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        let state = self.states.entry(index).or_default();
        state.done(index, item, &self.model)?;
        self.flush(out);
        Ok(())
    }

    /// The answer is complete, and holds these items.
    pub(super) fn finish(
        &mut self,
        output: &[Item<'_>],
        out: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        // An upstream may count from one or leave items out here; what it told is not told again.
        let told = self.states.len();
        for (index, item) in (0..).zip(output) {
            if self.states.contains_key(&index) || output.len() > told {
                self.done(index, item, out)?;
            }
        }
        for state in self.states.values_mut() {
            state.abandon()?;
        }
        self.flush(out);
        Ok(())
    }

    fn state(&mut self, index: u64) -> &mut State {
        self.states.entry(index).or_default()
    }

    /// Lets out what waits, as far as it is its turn.
    fn flush(&mut self, out: &mut Vec<Event>) {
        loop {
            if self.live.is_none() {
                let mut states = self.states.iter();
                let next = states.find(|(_, state)| state.progress != Progress::Over);
                self.live = next.map(|(index, _)| *index);
            }
            let live = self.live.and_then(|index| self.states.get_mut(&index));
            let Some(state) = live else {
                return;
            };
            out.append(&mut state.waiting);
            if state.progress == Progress::Running {
                return;
            }
            state.progress = Progress::Over;
            self.live = None;
        }
    }
}
