//! Stores the simulator's tasks and their state.

use crate::bounded_map::BoundedMap;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

/// The maximum number of stored tasks. The oldest are dropped first.
const TASKS_MAX: usize = 20_000;
/// The length of a video in seconds if the request leaves it to the model.
const SECONDS: u64 = 5;
const FRAMES_PER_SECOND: u64 = 24;

/// The target of a path: all tasks, one task, or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskPath<'a> {
    All,
    One(&'a str),
    File(&'a str),
}

/// Parses a path under either of the vendor's two base paths.
pub(crate) fn task_path(path: &str) -> Option<TaskPath<'_>> {
    let path = path
        .strip_prefix("/v1/contents/generations/")
        .or_else(|| path.strip_prefix("/api/v3/contents/generations/"))?;
    match path.split_once('/') {
        None if path == "tasks" => Some(TaskPath::All),
        Some(("tasks", id)) if !id.is_empty() => Some(TaskPath::One(id)),
        Some(("files", name)) => Some(TaskPath::File(name)),
        _ => None,
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) request: Value,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    /// The signature in the URLs of the task's files.
    pub(crate) signature: String,
    polls: u64,
    is_cancelled: bool,
    is_deleted: bool,
    billed_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
    Expired,
    Cancelled,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The true state of a task, for tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRecord {
    pub id: String,
    pub model: String,
    pub status: &'static str,
    pub polls: u64,
    pub is_deleted: bool,
    /// The tokens for which the account is billed.
    pub billed_tokens: u64,
}

impl Task {
    pub(crate) fn new(id: String, model: &str, request: Value, at: u64, signature: String) -> Self {
        Self {
            id,
            model: model.to_owned(),
            request,
            created_at: at,
            updated_at: at,
            signature,
            polls: 0,
            is_cancelled: false,
            is_deleted: false,
            billed_tokens: 0,
        }
    }

    /// The texts of the request, joined.
    pub(crate) fn prompt(&self) -> String {
        let items = self.request["content"].as_array();
        let texts = items.into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|item| item["text"].as_str()).collect();
        texts.join(" ")
    }

    /// Whether the prompt contains the word in brackets.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.prompt().contains(&format!("[{word}]"))
    }

    pub(crate) fn status(&self) -> Status {
        let pending = self.polls_pending();
        if self.is_cancelled {
            Status::Cancelled
        } else if self.has_word("queue") || self.has_word("race") {
            Status::Queued
        } else if self.has_word("run") {
            Status::Running
        } else if self.polls <= pending.div_ceil(2) {
            Status::Queued
        } else if self.polls <= pending {
            Status::Running
        } else if self.has_word("fail") || self.has_word("refuse") {
            Status::Failed
        } else if self.has_word("expire") {
            Status::Expired
        } else if self.has_word("cancel") {
            Status::Cancelled
        } else {
            Status::Succeeded
        }
    }

    /// The number of polls that show the task as not ended.
    fn polls_pending(&self) -> u64 {
        let prompt = self.prompt();
        let given = prompt.split_once("[polls=");
        let given = given.and_then(|(_, rest)| rest.split_once(']')?.0.parse().ok());
        given.unwrap_or(2)
    }

    /// The length of the video in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        if let Some(frames) = self.request["frames"].as_u64() {
            return frames.div_ceil(FRAMES_PER_SECOND);
        }
        let in_text = || self.text_option("dur")?.parse().ok();
        let asked = self.request["duration"].as_u64().or_else(in_text);
        asked.unwrap_or(SECONDS)
    }

    pub(crate) fn resolution(&self) -> String {
        if self.request["draft"] == true {
            return "480p".to_owned();
        }
        let member = self.request["resolution"].as_str().map(str::to_owned);
        let asked = member.or_else(|| self.text_option("rs"));
        asked.unwrap_or_else(|| "720p".to_owned())
    }

    /// An option in the text of the request, such as `--rs 1080p`. A member takes precedence.
    fn text_option(&self, name: &str) -> Option<String> {
        let prompt = self.prompt();
        let (_, rest) = prompt.split_once(&format!("--{name} "))?;
        rest.split_whitespace().next().map(str::to_owned)
    }

    /// The vendor's token count: width x height x frames / 1024.
    pub(crate) fn tokens(&self) -> u64 {
        let pixels = match &*self.resolution() {
            "480p" => 864 * 480,
            "1080p" => 1920 * 1088,
            "4k" => 3840 * 2160,
            _ => 1280 * 720,
        };
        let frames = self.request["frames"].as_u64();
        let frames = frames.unwrap_or(self.seconds() * FRAMES_PER_SECOND + 1);
        pixels * frames / 1024
    }

    fn record(&self) -> TaskRecord {
        TaskRecord {
            id: self.id.clone(),
            model: self.model.clone(),
            status: self.status().as_str(),
            polls: self.polls,
            is_deleted: self.is_deleted,
            billed_tokens: self.billed_tokens,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteError {
    Missing,
    Running,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct Tasks(Mutex<BoundedMap<Task>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Mutex::new(BoundedMap::new(TASKS_MAX)))
    }
}

impl Tasks {
    pub(crate) fn add(&self, task: Task) {
        let id = task.id.clone();
        self.0.lock().add(&id, task);
    }

    /// Finds a task that was not deleted.
    pub(crate) fn find(&self, id: &str) -> Option<Task> {
        let tasks = self.0.lock();
        tasks.get(id).filter(|task| !task.is_deleted).cloned()
    }

    /// Counts a poll and returns the task in its new state. A success is billed once.
    pub(crate) fn poll(&self, id: &str, at: u64) -> Option<Task> {
        let mut tasks = self.0.lock();
        let task = tasks.get_mut(id)?;
        if task.is_deleted {
            return None;
        }
        let before = task.status();
        task.polls += 1;
        if task.status() != before {
            task.updated_at = at;
        }
        if task.status() == Status::Succeeded {
            task.billed_tokens = task.tokens();
        }
        Some(task.clone())
    }

    /// Cancels a queued task, or deletes an ended one. Refuses a task that is running or cancelled.
    pub(crate) fn delete(&self, id: &str, at: u64) -> Result<(), DeleteError> {
        let mut tasks = self.0.lock();
        let task = tasks.get_mut(id);
        let task = task
            .filter(|task| !task.is_deleted)
            .ok_or(DeleteError::Missing)?;
        match task.status() {
            Status::Queued if task.has_word("race") => Err(DeleteError::Running),
            Status::Queued => {
                task.is_cancelled = true;
                task.updated_at = at;
                Ok(())
            }
            Status::Running => Err(DeleteError::Running),
            Status::Cancelled => Err(DeleteError::Cancelled),
            Status::Succeeded | Status::Failed | Status::Expired => {
                task.is_deleted = true;
                Ok(())
            }
        }
    }

    /// All tasks that were not deleted, newest first.
    pub(crate) fn all(&self) -> Vec<Task> {
        let tasks = self.0.lock();
        let kept = tasks.iter().rev().filter(|task| !task.is_deleted);
        kept.cloned().collect()
    }

    pub(crate) fn records(&self) -> Vec<TaskRecord> {
        self.0.lock().iter().map(Task::record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(text: &str) -> Task {
        let request = json!({ "content": [{ "type": "text", "text": text }], "duration": 5 });
        Task::new("cgt-1".to_owned(), "m", request, 7, "s".to_owned())
    }

    #[test]
    fn a_task_queues_runs_and_ends_and_is_billed_once() {
        use Status::{Queued, Running, Succeeded};
        let tasks = Tasks::default();
        tasks.add(task("a cat"));
        let polled: Vec<_> = (0..4)
            .map(|at| tasks.poll("cgt-1", at).unwrap().status())
            .collect();
        assert_eq!(polled, [Queued, Running, Succeeded, Succeeded]);
        assert_eq!(tasks.records()[0].billed_tokens, 108_900);
    }

    #[test]
    fn only_what_waits_or_has_ended_is_deleted() {
        for (text, polls, deleted) in [
            ("a cat", 0, Ok(())),
            ("a cat", 2, Err(DeleteError::Running)),
            ("a cat", 3, Ok(())),
            ("[fail]", 3, Ok(())),
            ("[expire]", 3, Ok(())),
            ("[cancel]", 3, Err(DeleteError::Cancelled)),
            ("[race]", 0, Err(DeleteError::Running)),
        ] {
            let tasks = Tasks::default();
            tasks.add(task(text));
            for at in 0..polls {
                tasks.poll("cgt-1", at);
            }
            assert_eq!(tasks.delete("cgt-1", 9), deleted, "{text} {polls}");
        }
        let tasks = Tasks::default();
        assert_eq!(tasks.delete("cgt-1", 9), Err(DeleteError::Missing));
    }

    #[test]
    fn paths_lead_to_their_places() {
        for (path, expected) in [
            ("/v1/contents/generations/tasks", Some(TaskPath::All)),
            ("/api/v3/contents/generations/tasks", Some(TaskPath::All)),
            ("/v1/contents/generations/tasks/a", Some(TaskPath::One("a"))),
            (
                "/v1/contents/generations/files/a.mp4",
                Some(TaskPath::File("a.mp4")),
            ),
            ("/v1/contents/generations/tasks/", None),
            ("/v1/contents/generations", None),
        ] {
            assert_eq!(task_path(path), expected, "{path}");
        }
    }
}
