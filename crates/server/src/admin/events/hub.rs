//! Distributes live events to all listeners.
//!
//! While there are listeners, one task per node reads new rows from the store once a second. So calls are not slowed
//! down, and each node sees the events of all nodes. A listener that reads too slowly is dropped, and reconnects with
//! the id of the last event that it has seen.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::Engine;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::poller;

const LISTENERS_MAX: usize = 64;
/// How long a reconnecting listener waits for the first poll.
const START_MAX: Duration = Duration::from_secs(2);
/// The maximum number of events that a listener may be behind.
const BEHIND_MAX: usize = 1_024;

/// One event, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// The journal position of the call, if the event is about one.
    pub(crate) position: Option<i64>,
    pub(crate) frame: Bytes,
}

impl Event {
    /// An event with a JSON body. `id` is the position where a reconnecting listener continues.
    pub(crate) fn new(name: &str, id: Option<i64>, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).unwrap_or_default();
        let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
        Self {
            position: None,
            frame: format!("event: {name}\n{id}data: {body}\n\n").into(),
        }
    }

    /// Sets the journal position of the call that the event is about.
    pub(crate) fn at(mut self, position: i64) -> Self {
        self.position = Some(position);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Polling {
    Off,
    /// The poller runs, but has not finished its first poll.
    Starting,
    On,
}

#[derive(Debug)]
pub(crate) struct EventHub {
    events: broadcast::Sender<Event>,
    listeners: Arc<Semaphore>,
    polling: watch::Sender<Polling>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) events: broadcast::Receiver<Event>,
    pub(crate) stop: CancellationToken,
    polling: watch::Receiver<Polling>,
    _room: OwnedSemaphorePermit,
}

impl Subscription {
    /// Returns when the poller has finished its first poll, so that no later event is missed. If the store does not
    /// answer, returns after a timeout.
    pub(crate) async fn started(&mut self) {
        let is_on = self.polling.wait_for(|polling| *polling == Polling::On);
        drop(tokio::time::timeout(START_MAX, is_on).await);
    }
}

impl Default for EventHub {
    fn default() -> Self {
        Self {
            events: broadcast::Sender::new(BEHIND_MAX),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            polling: watch::Sender::new(Polling::Off),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl EventHub {
    /// Adds a listener. Returns `None` if there are too many, or if the node is stopping.
    pub(crate) fn subscribe(&self, engine: &Arc<Engine>) -> Option<Subscription> {
        let room = Arc::clone(&self.listeners).try_acquire_owned().ok()?;
        if self.stop.is_cancelled() {
            return None;
        }
        let subscription = Subscription {
            events: self.events.subscribe(),
            stop: self.stop.clone(),
            polling: self.polling.subscribe(),
            _room: room,
        };
        let is_first = self.polling.send_if_modified(|polling| {
            let is_off = *polling == Polling::Off;
            if is_off {
                *polling = Polling::Starting;
            }
            is_off
        });
        if is_first {
            let (events, polling) = (self.events.clone(), self.polling.clone());
            let poll = poller::run(Arc::clone(engine), events, polling);
            let stop = self.stop.clone();
            self.tasks.spawn(async move {
                stop.run_until_cancelled(poll).await;
            });
        }
        Some(subscription)
    }

    pub(crate) async fn finish(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
