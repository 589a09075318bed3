//! Queues faults for the next calls of a model.

use super::{Script, ScriptError};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;

const QUEUED_MAX: usize = 1000;
/// Matches every model.
const ANY: &str = "*";

/// Queued faults, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<QueuedFaults>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct QueuedFaults {
    /// The model's name without its own script, or `*`.
    pub(crate) model: String,
    pub(crate) faults: String,
    /// The number of calls that still get the faults.
    pub(crate) times: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueError {
    Script(ScriptError),
    Full,
}

impl QueueError {
    /// Converts to the error type of scripts.
    pub(crate) fn into_script(self) -> ScriptError {
        match self {
            Self::Script(error) => error,
            Self::Full => ScriptError::new(format!("more than {QUEUED_MAX} rows are queued")),
        }
    }
}

impl Queue {
    /// Adds a row. Parses its script immediately, so that the caller gets the error.
    pub(crate) fn push(&self, row: QueuedFaults) -> Result<(), QueueError> {
        Script::default()
            .apply(&row.faults)
            .map_err(QueueError::Script)?;
        let mut waiting = self.waiting.lock();
        if waiting.len() >= QUEUED_MAX {
            return Err(QueueError::Full);
        }
        if row.times > 0 {
            waiting.push_back(row);
        }
        Ok(())
    }

    /// Takes the faults of the oldest row for this model, and decrements the row's counter.
    pub(crate) fn take(&self, model: &str) -> Option<String> {
        let mut waiting = self.waiting.lock();
        let place = waiting
            .iter()
            .position(|row| row.model == model || row.model == ANY)?;
        let row = waiting.get_mut(place)?;
        row.times = row.times.saturating_sub(1);
        let faults = row.faults.clone();
        if row.times == 0 {
            waiting.remove(place);
        }
        Some(faults)
    }

    pub(crate) fn rows(&self) -> Vec<QueuedFaults> {
        self.waiting.lock().iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.waiting.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(model: &str, faults: &str, times: u32) -> QueuedFaults {
        QueuedFaults {
            model: model.to_owned(),
            faults: faults.to_owned(),
            times,
        }
    }

    #[test]
    fn a_row_hits_the_next_calls_of_its_model_and_no_other() {
        let queue = Queue::default();
        queue.push(row("a", "cut=1", 2)).unwrap();
        queue.push(row("a", "no-usage", 1)).unwrap();
        assert_eq!(queue.take("b"), None);
        assert_eq!(queue.take("a").as_deref(), Some("cut=1"));
        assert_eq!(queue.take("a").as_deref(), Some("cut=1"));
        assert_eq!(queue.take("a").as_deref(), Some("no-usage"));
        assert_eq!(queue.take("a"), None);
    }

    #[test]
    fn a_star_hits_any_model() {
        let queue = Queue::default();
        queue.push(row("*", "status=500", 1)).unwrap();
        assert_eq!(queue.take("x").as_deref(), Some("status=500"));
    }

    #[test]
    fn bad_scripts_and_a_full_queue_are_refused() {
        let queue = Queue::default();
        assert!(matches!(
            queue.push(row("a", "nonsense", 1)),
            Err(QueueError::Script(_))
        ));
        for _ in 0..QUEUED_MAX {
            queue.push(row("a", "garbage", 1)).unwrap();
        }
        assert_eq!(queue.push(row("a", "garbage", 1)), Err(QueueError::Full));
        queue.clear();
        assert_eq!(queue.rows(), vec![]);
    }
}
