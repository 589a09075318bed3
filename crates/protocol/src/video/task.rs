//! The types that describe a task in all video protocols.

use serde_json::Value;

use super::media::Delivery;
use crate::scrub::Names;

/// The data of a task that its protocol needs.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The gateway's id, which is part of every name that clients see.
    pub id: &'a str,
    /// The public id of the model.
    pub model: &'a str,
    /// The upstream's name of the model. It is never shown, and removed from the upstream's texts.
    pub upstream_model: &'a str,
    /// Words that identify the channel. They are removed from the upstream's texts too. Empty if no channel
    /// is called.
    pub hidden: &'a [Box<str>],
    /// The creation time, in Unix milliseconds.
    pub created_ms: i64,
    /// The time of this step, in Unix milliseconds.
    pub now_ms: i64,
    /// The value of [`CreationRequest::memo`](super::CreationRequest::memo) at its creation.
    pub memo: Option<&'a str>,
    /// The URL under which copied media are served.
    pub public_url: &'a str,
}

impl<'a> Task<'a> {
    /// The names by which the upstream's texts are cleaned.
    pub(super) fn names(&self) -> Names<'a> {
        Names {
            hidden: self.hidden,
            ..Names::of_model(self.upstream_model, self.model)
        }
    }
}

/// The state of a task that is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningState {
    /// The protocol's name of the state.
    pub status: &'static str,
    /// Per cent, if the protocol reports it.
    pub progress: Option<u8>,
    /// The bytes that lookups return.
    pub snapshot: Vec<u8>,
}

/// The meaning of an upstream's successful answer to a creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreationResult {
    /// The upstream has accepted the task under this id.
    Follow(String),
    /// The task has finished, and its media must be copied.
    Delivered(Delivery),
    /// The task has finished.
    Ended(Outcome),
    /// The answer does not say whether there is a task.
    Unclear,
}

/// The result of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollResult {
    /// The task is still running. `None` if there is nothing new to show.
    Running(Option<RunningState>),
    /// The task has finished, and its media must be copied before a client sees the result.
    Delivered(Delivery),
    /// The task has ended.
    Ended(Outcome),
    /// The upstream does not know the task.
    UnknownTask,
    /// The answer says nothing about the task.
    Unclear,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The protocol's name of the state.
    pub status: &'static str,
    /// Whether there is a result. A result is charged even if no usage is reported.
    pub is_success: bool,
    /// The usage that the upstream reports.
    pub used: ReportedUsage,
    /// The bytes that lookups and the callback contain from now on.
    pub snapshot: Vec<u8>,
}

/// The usage of a task as the upstream reports it. Members that are not reported are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportedUsage {
    /// The upstream's own cost, in ticks of 1e-10 US dollar.
    pub usd_ticks: Option<u64>,
    /// Video tokens.
    pub tokens: Option<u64>,
    /// Whole seconds of video.
    pub seconds: Option<u64>,
    /// Web searches that were made for the task.
    pub searches: Option<u64>,
    /// The resolution of the video, by which tokens and seconds may be priced.
    pub resolution: Option<&'static str>,
}

/// The upper bound for the usage of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageBound {
    /// Seconds of video.
    pub seconds: u64,
    /// Video tokens, if the protocol counts them.
    pub tokens: u64,
    /// The requested resolution. If it is absent, the hold is for the most expensive one.
    pub resolution: Option<String>,
}

/// The reason why the gateway itself ended a task as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The answer to the creation was lost.
    Ambiguous,
    /// The upstream refused the creation after the client had its answer.
    Refused,
    /// The upstream was overloaded when the task was created.
    Overloaded,
    /// The upstream could not be reached, so it never received the creation.
    Unreachable,
    /// The upstream rejected the gateway and not the client: our credential, or our name of the
    /// model.
    Upstream,
    /// The upstream no longer knows the task.
    Gone,
    /// The result is too large, is not valid, or could not be copied.
    Media,
}

/// The progress of a running task, in whole per cent. It stays below 100, which means finished to
/// clients.
pub(super) fn percent(reported: &Value) -> Option<u8> {
    let reported = reported.as_f64()?;
    let mut whole = (0..=99).rev();
    whole.find(|percent| f64::from(*percent) <= reported)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Protocol;
    use super::super::{content_task::ContentTask, predict::Predict, video_a::VideoA};
    use super::*;

    #[test]
    fn progress_is_in_whole_per_cent() {
        for (reported, shown) in [
            (json!(0), Some(0)),
            (json!(37), Some(37)),
            (json!(37.5), Some(37)),
            (json!(99.99), Some(99)),
            (json!(100), Some(99)),
            (json!(1e300), Some(99)),
            (json!(-0.5), None),
            (json!("37"), None),
            (json!(null), None),
        ] {
            assert_eq!(percent(&reported), shown, "{reported}");
        }
    }

    #[test]
    fn no_report_shows_the_name_of_the_channel() {
        let message = "The storage of primary is full.";
        let hidden: [Box<str>; 1] = ["primary".into()];
        let error = format!(r#"{{"code":"internal","message":"{message}"}}"#);
        let failed = format!(r#"{{"status":"failed","error":{error}}}"#);
        let operation = format!(
            r#"{{"name":"operations/1","done":true,"error":{{"code":13,"message":"{message}"}}}}"#
        );
        let protocols: [(&dyn Protocol, &str); 3] = [
            (&ContentTask, &failed),
            (&VideoA, &failed),
            (&Predict, &operation),
        ];
        for (protocol, report) in protocols {
            let shown = |hidden: &[Box<str>]| {
                let task = Task {
                    id: "task_1",
                    model: "maker/film",
                    upstream_model: "film-1",
                    hidden,
                    created_ms: 0,
                    now_ms: 0,
                    memo: None,
                    public_url: "http://localhost",
                };
                let polled = protocol.read_poll(200, report.as_bytes(), &task);
                let PollResult::Ended(outcome) = polled else {
                    panic!("{report}: {polled:?}");
                };
                String::from_utf8(outcome.snapshot).unwrap()
            };
            assert!(shown(&[]).contains("primary"), "{}", shown(&[]));
            let shown = shown(&hidden);
            assert!(shown.contains("storage of"), "{shown}");
            assert!(!shown.contains("primary"), "{shown}");
        }
    }
}
