//! What the two Google protocols of videos share.

use bytes::Bytes;
use serde_json::Value;

use super::media::{Delivery, Hosted, MediaKind, Medium, Source};
use super::task::{Cause, Task, Used};
use crate::scrub::{Names, explain};

/// `google.rpc.Code`: the request is at fault.
const INVALID_ARGUMENT: i64 = 3;
/// `google.rpc.Code`: the time was over.
pub(super) const DEADLINE_EXCEEDED: i64 = 4;
/// `google.rpc.Code`: it is not there.
const NOT_FOUND: i64 = 5;
/// `google.rpc.Code`: something broke inside.
pub(super) const INTERNAL: i64 = 13;
/// The greatest of those codes.
const CODE_MAX: i64 = 16;

/// The code of a failure by our own word.
pub(super) const fn code_of(cause: Cause) -> i64 {
    match cause {
        Cause::Refused => INVALID_ARGUMENT,
        Cause::Gone => NOT_FOUND,
        Cause::Ambiguous | Cause::Media => INTERNAL,
    }
}

/// The code and the message of an upstream's error.
pub(super) fn read_error(error: &Value, task: &Task<'_>) -> (i64, Option<String>) {
    let code = error["code"].as_i64();
    let code = code.filter(|code| (1..=CODE_MAX).contains(code));
    let message = error["message"].as_str().map(|text| clean(text, task));
    let message = message.filter(|message| !message.is_empty());
    (code.unwrap_or(INTERNAL), message)
}

/// What an upstream says, without its name.
pub(super) fn clean(text: &str, task: &Task<'_>) -> String {
    let names = Names::of_model(task.upstream_model, task.model);
    explain(text, names).unwrap_or_default()
}

/// Where a video stands: inside the answer, in one of `members`, or at its `uri`. A bucket of the upstream's
/// cannot be read from here.
pub(super) fn read_video(video: &mut Value, members: &[&str]) -> Option<Source> {
    for name in members {
        if let Some(Value::String(data)) = video.get_mut(*name)
            && !data.is_empty()
        {
            return Some(Source::Base64(Bytes::from(std::mem::take(data))));
        }
    }
    let uri = video["uri"].as_str()?;
    let is_web = uri.starts_with("https://") || uri.starts_with("http://");
    is_web.then(|| Source::Url(uri.to_owned()))
}

/// The one video that such a task delivers.
pub(super) fn delivery(source: Source, facts: String) -> Delivery {
    Delivery {
        facts,
        media: vec![Medium {
            kind: MediaKind::Mp4,
            source,
            is_optional: false,
        }],
    }
}

/// What was used: the seconds that were asked for, which the memo holds, or fewer when the film is shorter.
pub(super) fn used(task: &Task<'_>, hosted: &Hosted) -> Used {
    let asked: Option<u64> = task.memo.and_then(|memo| memo.parse().ok());
    let seconds = match (asked, hosted.seconds) {
        (Some(asked), Some(made)) => Some(asked.min(made)),
        (asked, made) => asked.or(made),
    };
    Used {
        seconds,
        ..Used::default()
    }
}
