//! Stores the simulator's video tasks, except content tasks.

use crate::bounded_map::BoundedMap;
use parking_lot::Mutex;

/// The maximum number of stored tasks. The oldest are dropped first.
const JOBS_MAX: usize = 20_000;

/// A video task.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) prompt: String,
    pub(crate) seconds: u64,
    pub(crate) polls: u64,
}

impl Job {
    /// Whether the prompt contains the word in brackets.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.prompt.contains(&format!("[{word}]"))
    }

    /// The number of polls that show the task as running.
    pub(crate) fn polls_pending(&self) -> u64 {
        let given = self.prompt.split_once("[polls=");
        let given = given.and_then(|(_, rest)| rest.split_once(']')?.0.parse().ok());
        given.unwrap_or(2)
    }
}

#[derive(Debug)]
pub(crate) struct Jobs(Mutex<BoundedMap<Job>>);

impl Default for Jobs {
    fn default() -> Self {
        Self(Mutex::new(BoundedMap::new(JOBS_MAX)))
    }
}

impl Jobs {
    pub(crate) fn add(&self, job: Job) {
        let id = job.id.clone();
        self.0.lock().add(&id, job);
    }

    pub(crate) fn find(&self, id: &str) -> Option<Job> {
        self.0.lock().get(id).cloned()
    }

    /// Counts a poll, and returns the task.
    pub(crate) fn poll(&self, id: &str) -> Option<Job> {
        let mut jobs = self.0.lock();
        let job = jobs.get_mut(id)?;
        job.polls += 1;
        Some(job.clone())
    }
}
