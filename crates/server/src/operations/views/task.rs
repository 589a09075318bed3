//! The view of a task for operators, with the same members for every protocol.

use ledger::UnixMs;
use serde::Serialize;
use serde_json::Value;
use store::{AccountNames, KeyId, Store, StoreError, TaskListed, WalletId};
use utoipa::ToSchema;

use crate::admin::{Credits, MicroText};

/// The maximum number of values in a snapshot that are searched for results.
const TEXTS_MAX: usize = 1_000;

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct TaskView {
    id: String,
    protocol: String,
    model: String,
    #[schema(required)]
    channel: Option<String>,
    #[schema(value_type = String)]
    wallet: WalletId,
    #[schema(required)]
    wallet_name: Option<String>,
    #[schema(value_type = Option<String>, required)]
    key: Option<KeyId>,
    #[schema(required)]
    key_name: Option<String>,
    status: TaskStatus,
    /// The status in the words of the protocol.
    protocol_status: String,
    /// In percent, if the protocol reports it.
    #[schema(required)]
    progress: Option<u8>,
    /// A sentence that says why the task failed.
    #[schema(required)]
    error: Option<String>,
    results: Vec<TaskResult>,
    /// Null until the task has ended.
    #[schema(required)]
    charge: Option<Credits>,
    #[schema(required)]
    charge_micro: Option<MicroText>,
    polls: u32,
    #[schema(value_type = i64)]
    created_at: UnixMs,
    #[schema(value_type = Option<i64>, required)]
    ended_at: Option<UnixMs>,
    /// The number of attempts to deliver the callback. Null if the task has no callback.
    #[schema(required)]
    callback_attempts: Option<u32>,
    /// `delivered` or `given_up`.
    #[schema(required)]
    callback_outcome: Option<String>,
}

/// The status of a task, the same for every protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskStatus {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

/// The status words of the protocols, by status. Any other word means that the task failed.
const WORDS: [(TaskStatus, &[&str]); 5] = [
    (TaskStatus::Queued, &["queued"]),
    (TaskStatus::Running, &["pending", "running", "in_progress"]),
    (TaskStatus::Done, &["done", "succeeded", "completed"]),
    (TaskStatus::Cancelled, &["cancelled"]),
    (
        TaskStatus::Failed,
        &["failed", "expired", "filtered", "incomplete"],
    ),
];

impl TaskStatus {
    fn of(word: &str) -> Self {
        let found = WORDS.iter().find(|(_, words)| words.contains(&word));
        found.map_or(Self::Failed, |(status, _)| *status)
    }

    /// The status words that a filter matches. A filter that is not one of our words matches only itself.
    pub(crate) fn words(filter: &str) -> Vec<String> {
        let status = match filter {
            "queued" => Some(Self::Queued),
            "running" => Some(Self::Running),
            "done" => Some(Self::Done),
            "failed" => Some(Self::Failed),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        };
        let words = WORDS.iter().find(|(known, _)| Some(*known) == status);
        words.map_or_else(
            || vec![filter.to_owned()],
            |(_, words)| words.iter().map(|word| (*word).to_owned()).collect(),
        )
    }
}

/// A result of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TaskResult {
    kind: ResultKind,
    /// The URL that the caller gets when it looks up the task.
    url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ResultKind {
    Video,
    Image,
    Audio,
}

impl TaskView {
    pub(crate) fn of(task: &TaskListed, names: &AccountNames) -> Self {
        let status = TaskStatus::of(&task.status);
        let snapshot: Value = serde_json::from_slice(&task.snapshot).unwrap_or_default();
        let error = match status {
            TaskStatus::Failed | TaskStatus::Cancelled => error_of(&snapshot),
            TaskStatus::Queued | TaskStatus::Running | TaskStatus::Done => None,
        };
        let mut results = Vec::new();
        if status == TaskStatus::Done {
            let mut left = TEXTS_MAX;
            collect(&snapshot, "", &mut left, &mut results);
        }
        Self {
            id: task.id.to_string(),
            protocol: task.protocol.to_string(),
            model: task.model.to_string(),
            channel: task.channel.as_deref().map(ToOwned::to_owned),
            wallet: task.wallet,
            wallet_name: names.wallets.get(&task.wallet).cloned(),
            key: task.key,
            key_name: task.key.and_then(|key| names.keys.get(&key).cloned()),
            status,
            protocol_status: task.status.to_string(),
            progress: task.progress,
            error,
            results,
            charge: task.charge.map(Credits),
            charge_micro: task.charge.map(MicroText),
            polls: task.polls,
            created_at: task.created_at,
            ended_at: task.ended_at,
            callback_attempts: task.callback_attempts,
            callback_outcome: task.callback_outcome.as_deref().map(ToOwned::to_owned),
        }
    }
}

/// Looks up the names of all wallets and keys of these tasks.
pub(crate) async fn names_of_tasks(
    store: &Store,
    tasks: &[TaskListed],
) -> Result<AccountNames, StoreError> {
    let mut wallets: Vec<_> = tasks.iter().map(|task| task.wallet).collect();
    let mut keys: Vec<_> = tasks.iter().filter_map(|task| task.key).collect();
    wallets.sort_unstable();
    wallets.dedup();
    keys.sort_unstable();
    keys.dedup();
    store.account_names(wallets, keys).await
}

/// The message of a failure, from the member that the protocol uses.
fn error_of(snapshot: &Value) -> Option<String> {
    let messages = [
        &snapshot["error"]["message"],
        &snapshot["errors"][0]["message"],
        &snapshot["response"]["generateVideoResponse"]["raiMediaFilteredReasons"][0],
    ];
    let found = messages.into_iter().find_map(Value::as_str);
    found.map(ToOwned::to_owned)
}

/// Collects the URLs of a snapshot. The members of an object are searched in the order of their names.
fn collect(value: &Value, name: &str, left: &mut usize, results: &mut Vec<TaskResult>) {
    *left = left.saturating_sub(1);
    match value {
        _ if *left == 0 => {}
        Value::String(text) if text.starts_with("http://") || text.starts_with("https://") => {
            let url = text.clone();
            let kind = kind_of(name, text);
            if results.iter().all(|result| result.url != url) {
                results.push(TaskResult { kind, url });
            }
        }
        Value::Array(values) => {
            for value in values {
                collect(value, name, left, results);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                collect(value, name, left, results);
            }
        }
        _ => {}
    }
}

fn kind_of(name: &str, url: &str) -> ResultKind {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ends = |extensions: &[&str]| extensions.iter().any(|extension| path.ends_with(extension));
    if ends(&[".png", ".jpg", ".jpeg", ".webp"]) || name.contains("image") || name.contains("frame")
    {
        ResultKind::Image
    } else if ends(&[".mp3", ".wav", ".opus"]) || name.contains("audio") {
        ResultKind::Audio
    } else {
        ResultKind::Video
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use store::TaskId;

    use super::*;

    fn task(status: &str, snapshot: &Value) -> TaskListed {
        TaskListed {
            id: TaskId::random(UnixMs::new(0)),
            wallet: WalletId::random(),
            key: None,
            protocol: "content-task".into(),
            model: "a/b".into(),
            status: status.into(),
            progress: None,
            channel: None,
            polls: 0,
            created_at: UnixMs::new(0),
            next_at: None,
            ended_at: None,
            callback_attempts: None,
            callback_outcome: None,
            snapshot: snapshot.to_string().into_bytes().into(),
            charge: None,
        }
    }

    #[test]
    fn results_are_the_addresses_of_the_snapshot() {
        let view = |status: &str, snapshot: Value| {
            TaskView::of(&task(status, &snapshot), &AccountNames::default())
        };
        let done = view(
            "succeeded",
            json!({"content": {"video_url": "https://us/media/v.mp4", "last_frame_url": "https://us/media/f?x=.mp4"}}),
        );
        let results: Vec<_> = done
            .results
            .iter()
            .map(|result| (result.kind, &*result.url))
            .collect();
        assert_eq!(
            results,
            [
                (ResultKind::Image, "https://us/media/f?x=.mp4"),
                (ResultKind::Video, "https://us/media/v.mp4"),
            ]
        );
        let omni = json!({"steps": [{"content": [{"type": "video", "uri": "http://us/v"}, {"text": "https is safe"}]}]});
        assert_eq!(view("completed", omni).results.len(), 1);
        // The snapshot of a task that has not ended may repeat URLs of its request.
        let running = view("running", json!({"image": "https://caller/i.png"}));
        assert_eq!(
            (running.results, running.status),
            (vec![], TaskStatus::Running)
        );
    }

    #[test]
    fn a_failure_is_a_sentence_in_every_protocol() {
        for (status, snapshot, error) in [
            (
                "failed",
                json!({"error": {"code": "x", "message": "Broken."}}),
                Some("Broken."),
            ),
            (
                "incomplete",
                json!({"errors": [{"message": "Cut."}]}),
                Some("Cut."),
            ),
            (
                "filtered",
                json!({"response": {"generateVideoResponse": {"raiMediaFilteredReasons": ["Blocked."]}}}),
                Some("Blocked."),
            ),
            ("resting", json!("nothing"), None),
        ] {
            let view = TaskView::of(&task(status, &snapshot), &AccountNames::default());
            assert_eq!(
                (view.status, view.error.as_deref()),
                (TaskStatus::Failed, error)
            );
        }
    }

    #[test]
    fn a_status_stands_for_the_words_of_all_protocols() {
        assert_eq!(
            TaskStatus::words("done"),
            ["done", "succeeded", "completed"]
        );
        assert_eq!(TaskStatus::words("in_progress"), ["in_progress"]);
        for (status, words) in WORDS {
            assert!(words.iter().all(|word| TaskStatus::of(word) == status));
        }
    }
}
