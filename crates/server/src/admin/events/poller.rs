//! Polls the store for new rows once a second, while there are listeners.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use serde_json::json;
use store::{
    AccountNames, AlertId, AlertQuery, JournalEntry, JournalQuery, Store, StoreError, TaskId,
    TaskListed, TaskQuery,
};
use tokio::sync::{broadcast, watch};

use super::hub::{Event, Polling};
use crate::operations::calls::{ShownRows, names_of_calls};
use crate::operations::views::{AlertView, CallView, TaskView, names_of_tasks};

const PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of calls per poll. If there are more, the newest are sent.
pub(crate) const CALLS_MAX: u32 = 200;
const TASKS_MAX: u32 = 200;
/// The maximum number of alerts per query: one query reads the open ones, one the newest.
const ALERTS_MAX: u32 = 100;
/// The number of newest tasks that are read in addition, because a task may begin and end between two polls.
const NEW_TASKS_MAX: u32 = 50;

/// Polls until there are no listeners.
pub(super) async fn run(
    engine: Arc<Engine>,
    events: broadcast::Sender<Event>,
    polling: watch::Sender<Polling>,
) {
    let mut poller = Poller::default();
    loop {
        match poller.poll(&engine).await {
            Ok(found) => {
                polling.send_if_modified(|polling| {
                    let is_new = *polling == Polling::Starting;
                    *polling = Polling::On;
                    is_new
                });
                for event in found {
                    // An error means that there are no listeners.
                    drop(events.send(event));
                }
            }
            Err(error) => tracing::debug!(%error, "live events wait for the store"),
        }
        // `send_if_modified` holds the lock under which `EventHub::subscribe` checks whether the poller runs. So no
        // listener is left without a poller.
        let is_over = polling.send_if_modified(|polling| {
            let is_over = events.receiver_count() == 0;
            if is_over {
                *polling = Polling::Off;
            }
            is_over
        });
        if is_over {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The state at the last poll.
#[derive(Debug, Default)]
struct Poller {
    calls: Option<ShownRows>,
    tasks: Option<HashMap<TaskId, TaskState>>,
    channels: Option<HashMap<String, &'static str>>,
    alerts: Option<HashMap<AlertId, bool>>,
    /// Events that were found by a poll that failed later.
    unsent: Vec<Event>,
}

/// The values of a task whose changes cause an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TaskState {
    status: Box<str>,
    progress: Option<u8>,
    is_ended: bool,
}

impl Poller {
    async fn poll(&mut self, engine: &Engine) -> Result<Vec<Event>, StoreError> {
        let store = engine.store();
        let calls = self.calls(store).await?;
        self.unsent.extend(calls);
        let tasks = self.tasks(store).await?;
        self.unsent.extend(tasks);
        let alerts = self.alerts(store).await?;
        self.unsent.extend(alerts);
        let channels = self.channels(engine);
        self.unsent.extend(channels);
        Ok(std::mem::take(&mut self.unsent))
    }

    async fn calls(&mut self, store: &Store) -> Result<Vec<Event>, StoreError> {
        let query = JournalQuery {
            after: self.calls.as_ref().and_then(ShownRows::look_after),
            limit: CALLS_MAX,
            without_bodies: true,
            ..JournalQuery::default()
        };
        let mut entries = store.journal(query).await?;
        entries.reverse();
        let Some(shown) = &mut self.calls else {
            self.calls.get_or_insert_default().keep_new(entries);
            return Ok(Vec::new());
        };
        // Look up the names first: if the lookup fails, the rows must not count as shown.
        let names = names_of_calls(store, &entries).await?;
        let entries = shown.keep_new(entries);
        Ok(entries
            .iter()
            .map(|entry| call_event(entry, &names))
            .collect())
    }

    /// The journal position where a reconnecting listener continues.
    fn position(&self) -> Option<i64> {
        let newest = self.calls.as_ref().and_then(ShownRows::newest);
        newest.map(store::JournalCursor::get)
    }

    async fn tasks(&mut self, store: &Store) -> Result<Vec<Event>, StoreError> {
        let newest = TaskQuery {
            with_hidden: true,
            uncounted: true,
            limit: NEW_TASKS_MAX,
            ..TaskQuery::default()
        };
        let open = TaskQuery {
            only_open: true,
            limit: TASKS_MAX,
            ..newest.clone()
        };
        let mut found = store.tasks(newest.clone()).await?.tasks;
        found.extend(store.tasks(open).await?.tasks);
        // A formerly open task is in neither list if it has ended, or if newer open tasks fill the list.
        let before = self.tasks.as_ref();
        let gone = before
            .into_iter()
            .flatten()
            .filter(|(id, state)| !state.is_ended && found.iter().all(|task| task.id != **id));
        let gone: Vec<TaskId> = gone.map(|(id, _)| *id).collect();
        if !gone.is_empty() {
            let ended = TaskQuery {
                ids: gone,
                limit: TASKS_MAX,
                ..newest
            };
            found.extend(store.tasks(ended).await?.tasks);
        }
        let states = found
            .iter()
            .map(|task| (task.id, TaskState::of(task)))
            .collect();
        let Some(before) = &self.tasks else {
            self.tasks = Some(states);
            return Ok(Vec::new());
        };
        found.retain(|task| before.get(&task.id) != Some(&TaskState::of(task)));
        found.sort_by_key(|task| task.id);
        found.dedup_by_key(|task| task.id);
        // Look up the names first: if the lookup fails, the old states must stay.
        let names = names_of_tasks(store, &found).await?;
        self.tasks = Some(states);
        let event =
            |task: &TaskListed| Event::new("task", self.position(), &TaskView::of(task, &names));
        Ok(found.iter().map(event).collect())
    }

    /// Events of alerts that began or ended. Only open alerts and the newest alerts are read, so the end of an older
    /// alert is not sent.
    async fn alerts(&mut self, store: &Store) -> Result<Vec<Event>, StoreError> {
        let newest = AlertQuery {
            limit: ALERTS_MAX,
            ..AlertQuery::default()
        };
        let open = AlertQuery {
            only_open: true,
            ..newest.clone()
        };
        let mut found = store.alerts(open).await?;
        found.extend(store.alerts(newest).await?);
        found.sort_by_key(|alert| alert.cursor);
        found.dedup_by_key(|alert| alert.cursor);
        let states = found
            .iter()
            .map(|alert| (alert.id, alert.ended_at.is_some()));
        let Some(before) = self.alerts.replace(states.collect()) else {
            return Ok(Vec::new());
        };
        found.retain(|alert| before.get(&alert.id) != Some(&alert.ended_at.is_some()));
        let position = self.position();
        let event = |alert| Event::new("alert", position, &AlertView::from(alert));
        Ok(found.into_iter().map(event).collect())
    }

    fn channels(&mut self, engine: &Engine) -> Vec<Event> {
        let states: HashMap<String, &'static str> = engine.channel_states().into_iter().collect();
        let Some(before) = self.channels.replace(states.clone()) else {
            return Vec::new();
        };
        let changed = states
            .iter()
            .filter(|(name, state)| before.get(*name) != Some(*state));
        let event = |(name, breaker)| {
            Event::new(
                "channel",
                self.position(),
                &json!({ "name": name, "breaker": breaker }),
            )
        };
        changed.map(event).collect()
    }
}

impl TaskState {
    fn of(task: &TaskListed) -> Self {
        Self {
            status: task.status.clone(),
            progress: task.progress,
            is_ended: task.ended_at.is_some(),
        }
    }
}

pub(crate) fn call_event(entry: &JournalEntry, names: &AccountNames) -> Event {
    let position = entry.cursor.get();
    Event::new("call", Some(position), &CallView::of(&entry.row, names)).at(position)
}
