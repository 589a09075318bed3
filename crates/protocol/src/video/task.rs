//! What all video protocols say of a task.

use serde_json::Value;

use super::media::Delivery;

/// A task as its protocol sees it.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The platform's id, which stands in every name that is shown.
    pub id: &'a str,
    /// The public model.
    pub model: &'a str,
    /// What the upstream calls the model: never shown, and taken out of what it says.
    pub upstream_model: &'a str,
    /// When it was created, in Unix milliseconds.
    pub created_ms: i64,
    /// The time of this step, in Unix milliseconds.
    pub now_ms: i64,
    /// What [`Creation::memo`](super::Creation::memo) said when it was created.
    pub memo: Option<&'a str>,
    /// Where media that we keep are served.
    pub public_url: &'a str,
}

/// How a task stands that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The protocol's word for it.
    pub status: &'static str,
    /// Per cent, where the protocol tells it.
    pub progress: Option<u8>,
    /// The bytes that look-ups show.
    pub snapshot: Vec<u8>,
}

/// What an upstream's good answer to a creation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It has the task, under this name.
    Follow(String),
    /// It has finished, and its media are ours to keep.
    Delivered(Delivery),
    /// It has finished.
    Ended(Outcome),
    /// Nothing that says whether there is a task.
    Unclear,
}

/// What a poll has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Polled {
    /// It goes on; without a standing there is nothing new to show.
    Running(Option<Standing>),
    /// It has finished, and its media are ours to keep before anybody is shown them.
    Delivered(Delivery),
    /// It has ended.
    Ended(Outcome),
    /// The upstream knows no such task.
    Missing,
    /// The answer says nothing of the task.
    Unclear,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The protocol's word for it.
    pub status: &'static str,
    /// Whether there is a result: then it is charged for also when nothing is reported.
    pub is_success: bool,
    /// What the upstream reports to have been used.
    pub used: Used,
    /// The bytes that look-ups and the callback show from now on.
    pub snapshot: Vec<u8>,
}

/// What an upstream reports of a task's use; what it does not report is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Its own cost, in ticks of 1e-10 US dollar.
    pub usd_ticks: Option<u64>,
    /// Video tokens.
    pub tokens: Option<u64>,
    /// Seconds of video, rounded up.
    pub seconds: Option<u64>,
    /// Searches of the web that were made for it.
    pub searches: Option<u64>,
}

/// The most that a task can use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bound {
    /// Seconds of video.
    pub seconds: u64,
    /// Video tokens, where the protocol counts them.
    pub tokens: u64,
    /// The resolution that is asked for; the dearest one is held for in its absence.
    pub resolution: Option<String>,
}

/// Why a task fails by our own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The creation was never answered.
    Ambiguous,
    /// The upstream refused the creation after the caller had its answer.
    Refused,
    /// The upstream had no room for the creation.
    Overloaded,
    /// The upstream could not be reached, so that it never heard of the creation.
    Unreachable,
    /// The upstream refused us and not the caller: our credential, or our name of the model.
    Upstream,
    /// The upstream no longer knows the task.
    Gone,
    /// The result is no film.
    Media,
}

/// The progress that an upstream tells of a task that goes on, in whole per cent: 100 means done to a reader.
pub(super) fn percent(told: &Value) -> Option<u8> {
    let told = told.as_f64()?;
    let mut whole = (0..=99).rev();
    whole.find(|percent| f64::from(*percent) <= told)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_is_told_in_whole_per_cent() {
        for (told, shown) in [
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
            assert_eq!(percent(&told), shown, "{told}");
        }
    }
}
