//! Orders the items of a stream: one block at a time, each complete.
//!
//! Upstreams may work on several items at once. One item is live, and its events are passed on at once.
//! Events of the other items wait until the live item is complete. Text that came without deltas is taken
//! from the event that repeats the whole text.
//!
//! An event names its item by id, by index, by both or by neither. The id decides. The index is
//! used if the id is unknown, because some upstreams send a new id with every event of an item.

use super::item::{Kind, PartKey, Progress, Source, State};
use crate::canon::{Event, Token};
use crate::responses::response::{Citation, Item, Part};
use crate::unusable_answer::UnusableAnswer;

/// Limit for the items of an answer, because each event searches all of them.
pub(super) const ITEMS_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Items {
    model: Box<str>,
    /// In the order of their first events.
    states: Vec<State>,
    /// The item whose events are passed on at once.
    live: Option<usize>,
}

/// The names by which an event refers to its item.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Address<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) index: Option<u64>,
}

impl<'a> Address<'a> {
    fn of(item: &'a Item<'_>, index: Option<u64>) -> Self {
        let id = item.id.as_deref().filter(|id| !id.is_empty());
        Self { id, index }
    }
}

impl Items {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            states: Vec::new(),
            live: None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.states.iter().any(|state| state.has_call)
    }

    pub(super) fn is_refused(&self) -> bool {
        self.states.iter().any(State::is_refused)
    }

    pub(super) fn added(&mut self, index: Option<u64>, item: &Item<'_>, out: &mut Vec<Event>) {
        let number = self.number_of_added(index, item);
        if let Some(state) = self.states.get_mut(number) {
            state.added = true;
            if let (Kind::Call, Some(name)) = (state.kind, &item.name) {
                state.call(number, item, name);
            }
        }
        self.flush(out);
    }

    pub(super) fn part_added(&mut self, address: Address<'_>, index: Option<u64>) {
        if let (None, Some(state)) = (index, self.state(address, Kind::Message)) {
            state.next_part();
        }
    }

    pub(super) fn text(
        &mut self,
        address: Address<'_>,
        part: (Option<u64>, bool),
        text: &str,
        tokens: Vec<Token>,
        out: &mut Vec<Event>,
    ) {
        if let Some(state) = self.state(address, Kind::Message) {
            let (index, is_refusal) = part;
            let index = index.unwrap_or_else(|| state.part_in_progress(is_refusal));
            state.text(PartKey { index, is_refusal }, text, tokens);
        }
        self.flush(out);
    }

    pub(super) fn cite(
        &mut self,
        address: Address<'_>,
        part: Option<u64>,
        citation: Citation,
        out: &mut Vec<Event>,
    ) {
        if let Some(state) = self.state(address, Kind::Message) {
            let part = part.unwrap_or_else(|| state.part_in_progress(false));
            state.cite(part, citation);
        }
        self.flush(out);
    }

    pub(super) fn part_done(
        &mut self,
        address: Address<'_>,
        index: Option<u64>,
        part: &Part<'_>,
        out: &mut Vec<Event>,
    ) {
        if let (false, Some(state)) = (part.is_reasoning, self.state(address, Kind::Message)) {
            let index = index.unwrap_or_else(|| state.part_to_close(part.is_refusal));
            state.part_done(index, part);
        }
        self.flush(out);
    }

    pub(super) fn summary_added(&mut self, address: Address<'_>) {
        if let Some(state) = self.state(address, Kind::Reasoning) {
            state.summary_parts = state.summary_parts.saturating_add(1);
        }
    }

    pub(super) fn summary(
        &mut self,
        address: Address<'_>,
        part: Option<u64>,
        text: &str,
        out: &mut Vec<Event>,
    ) {
        if let Some(state) = self.state(address, Kind::Reasoning) {
            let part = part.unwrap_or_else(|| state.summary_parts.saturating_sub(1));
            state.thought(Source::Summary(part), text);
        }
        self.flush(out);
    }

    pub(super) fn thought(&mut self, address: Address<'_>, text: &str, out: &mut Vec<Event>) {
        if let Some(state) = self.state(address, Kind::Reasoning) {
            state.thought(Source::Itself, text);
        }
        self.flush(out);
    }

    pub(super) fn arguments(&mut self, address: Address<'_>, text: &str, out: &mut Vec<Event>) {
        if let Some(state) = self.state(address, Kind::Call) {
            state.arguments(text);
        }
        self.flush(out);
    }

    pub(super) fn done(
        &mut self,
        index: Option<u64>,
        item: &Item<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let number = self.number_of_done(index, item);
        self.complete(number, item, out)
    }

    /// Completes the answer, which consists of these items.
    pub(super) fn finish(
        &mut self,
        output: &[Item<'_>],
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        // Upstreams leave items out of this list, number them from one, or change their ids. An
        // item whose id is unknown is matched with the next item of its kind. Text that was passed
        // on is not repeated.
        if output.len() > ITEMS_MAX {
            return Err(UnusableAnswer::malformed("the answer has too many items"));
        }
        let named: Vec<Option<usize>> = output.iter().map(|item| self.named(item)).collect();
        let mut taken = vec![false; self.states.len() + output.len()];
        let mut matched = taken.clone();
        let set = |marks: &mut Vec<bool>, number: usize| {
            marks
                .get_mut(number)
                .is_some_and(|mark| !std::mem::replace(mark, true))
        };
        for number in named.iter().flatten() {
            set(&mut taken, *number);
        }
        for (item, known) in output.iter().zip(&named) {
            let kind = Kind::of(item);
            // A second item with the same id is a different item.
            let known = known.filter(|number| set(&mut matched, *number));
            let next = known.or_else(|| {
                let mut states = self.states.iter().zip(&taken);
                states.position(|(state, is_taken)| state.kind == kind && !is_taken)
            });
            let number = next.unwrap_or_else(|| self.open(Address::default(), kind));
            set(&mut taken, number);
            self.complete(number, item, out)?;
        }
        for state in &mut self.states {
            state.finish_incomplete()?;
        }
        self.flush(out);
        Ok(())
    }

    fn complete(
        &mut self,
        number: usize,
        item: &Item<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if let Some(state) = self.states.get_mut(number) {
            state.done(number, item, &self.model)?;
        }
        self.flush(out);
        Ok(())
    }

    /// The item that a piece of this kind belongs to.
    fn state(&mut self, address: Address<'_>, kind: Kind) -> Option<&mut State> {
        let fits = |state: &State| state.kind == kind;
        let number = self
            .by_id(address.id)
            .or_else(|| self.by_index(address.index).filter(|it| self.is(*it, fits)))
            .or_else(|| {
                let is_open = |state: &State| fits(state) && state.may_be(address);
                self.states.iter().rposition(is_open)
            })
            .unwrap_or_else(|| self.open(address, kind));
        let state = self.states.get_mut(number)?;
        state.learn(address);
        Some(state)
    }

    fn number_of_added(&mut self, index: Option<u64>, item: &Item<'_>) -> usize {
        let kind = Kind::of(item);
        let address = Address::of(item, index);
        // Pieces of the item may have arrived before the event that adds it.
        let is_it = |state: &State| state.kind == kind && (!state.added || address.id.is_none());
        let known = self
            .by_id(address.id)
            .filter(|it| !self.is(*it, |state| state.is_other_call(item)))
            .or_else(|| self.by_index(index).filter(|it| self.is(*it, is_it)))
            .or_else(|| {
                let is_it = |state: &State| is_it(state) && !state.added && state.may_be(address);
                self.states.iter().rposition(is_it)
            });
        self.named_or_open(known, address, item)
    }

    fn number_of_done(&mut self, index: Option<u64>, item: &Item<'_>) -> usize {
        let kind = Kind::of(item);
        let address = Address::of(item, index);
        let is_it = |state: &State| {
            let is_unnamed = state.id.is_none() || address.id.is_none();
            state.kind == kind && (is_unnamed || state.progress == Progress::Running)
        };
        let known = self
            .named(item)
            .or_else(|| self.by_index(index).filter(|it| self.is(*it, is_it)))
            .or_else(|| {
                let is_it = |state: &State| state.kind == kind && state.may_be(address);
                self.states.iter().position(is_it)
            });
        self.named_or_open(known, address, item)
    }

    /// The known item that has the id or the call id of `item`.
    fn named(&self, item: &Item<'_>) -> Option<usize> {
        let call_id = item.call_id.as_deref().filter(|id| !id.is_empty());
        let by_id = self.by_id(Address::of(item, None).id);
        let by_id = by_id.filter(|it| !self.is(*it, |state| state.is_other_call(item)));
        by_id.or_else(|| {
            let is_it = |state: &State| call_id.is_some() && state.call_id.as_deref() == call_id;
            self.states.iter().rposition(is_it)
        })
    }

    fn by_id(&self, id: Option<&str>) -> Option<usize> {
        let id = id?;
        let is_it = |state: &State| state.id.as_deref() == Some(id);
        self.states.iter().rposition(is_it)
    }

    /// The last item with this index, because some upstreams use one index for all items.
    fn by_index(&self, index: Option<u64>) -> Option<usize> {
        let index = index?;
        let is_it = |state: &State| state.index == Some(index);
        self.states.iter().rposition(is_it)
    }

    fn is(&self, number: usize, test: impl Fn(&State) -> bool) -> bool {
        self.states.get(number).is_some_and(test)
    }

    fn named_or_open(
        &mut self,
        known: Option<usize>,
        address: Address<'_>,
        item: &Item<'_>,
    ) -> usize {
        let number = known.unwrap_or_else(|| self.open(address, Kind::of(item)));
        if let Some(state) = self.states.get_mut(number) {
            state.learn(address);
            if state.call_id.is_none() {
                state.call_id = item.call_id.as_deref().map(Into::into);
            }
        }
        number
    }

    fn open(&mut self, address: Address<'_>, kind: Kind) -> usize {
        let mut state = State::new(kind);
        state.learn(address);
        self.states.push(state);
        self.states.len() - 1
    }

    /// Passes on waiting events in the order of items, up to the first incomplete item that later
    /// items must not overtake.
    fn flush(&mut self, out: &mut Vec<Event>) {
        loop {
            let Some(live) = self.live.or_else(|| self.next_live()) else {
                return;
            };
            self.live = Some(live);
            let after = self.after(live);
            let Some(state) = self.states.get_mut(live) else {
                return;
            };
            out.append(&mut state.waiting);
            if state.progress != Progress::Running {
                state.progress = Progress::Over;
                self.live = None;
            } else if let Some(after) = after.filter(|_| state.may_be_overtaken()) {
                state.close();
                out.append(&mut state.waiting);
                self.live = Some(after);
            } else {
                return;
            }
        }
    }

    /// The next item with events to pass on: the one with the lowest index, if items have indexes.
    fn next_live(&self) -> Option<usize> {
        let states = self.states.iter().enumerate();
        let waiting = states.filter(|(_, state)| state.progress != Progress::Over);
        let place = |number: usize, state: &State| {
            let number = u64::try_from(number).unwrap_or(u64::MAX);
            state.index.unwrap_or(number)
        };
        let next = waiting.min_by_key(|(number, state)| (place(*number, state), *number));
        next.map(|(number, _)| number)
    }

    /// The next item in the order of arrival.
    fn after(&self, number: usize) -> Option<usize> {
        let mut later = self.states.iter().enumerate().skip(number + 1);
        let next = later.find(|(_, state)| state.progress != Progress::Over);
        next.map(|(number, _)| number)
    }
}
