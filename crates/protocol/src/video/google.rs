//! Code that the two Google video protocols share.

use bytes::Bytes;
use serde_json::Value;

use super::media::{Delivery, HostedMedium, MediaKind, Medium, Source};
use super::task::{Cause, ReportedUsage, Task};
use crate::scrub::explain;

/// `google.rpc.Code`: the request is invalid.
const INVALID_ARGUMENT: i64 = 3;
/// `google.rpc.Code`: the deadline has passed.
pub(super) const DEADLINE_EXCEEDED: i64 = 4;
/// `google.rpc.Code`: the object does not exist.
const NOT_FOUND: i64 = 5;
/// `google.rpc.Code`: a quota or the capacity is exhausted.
const RESOURCE_EXHAUSTED: i64 = 8;
/// `google.rpc.Code`: an internal error.
pub(super) const INTERNAL: i64 = 13;
/// `google.rpc.Code`: the service is unavailable.
const UNAVAILABLE: i64 = 14;
/// The largest `google.rpc.Code`.
const CODE_MAX: i64 = 16;

/// The code for a failure that the gateway decided.
pub(super) const fn code_of(cause: Cause) -> i64 {
    match cause {
        Cause::Refused => INVALID_ARGUMENT,
        Cause::Overloaded => RESOURCE_EXHAUSTED,
        Cause::Unreachable => UNAVAILABLE,
        Cause::Gone => NOT_FOUND,
        Cause::Ambiguous | Cause::Upstream | Cause::Media => INTERNAL,
    }
}

/// The code and the message of an upstream's error.
pub(super) fn read_error(error: &Value, task: &Task<'_>) -> (i64, Option<String>) {
    let code = match &error["code"] {
        Value::Number(number) => number.as_i64().and_then(code_of_number),
        Value::String(label) => code_of_label(label),
        _ => None,
    };
    let code = code.or_else(|| code_of_label(error["status"].as_str()?));
    let message = error["message"].as_str().map(|text| clean(text, task));
    let message = message.filter(|message| !message.is_empty());
    (code.unwrap_or(INTERNAL), message)
}

/// The code for a number, which is a code itself or an HTTP status. `None` for other statuses, such as those
/// that reject our credential. They become internal errors, because the client cannot fix them.
fn code_of_number(number: i64) -> Option<i64> {
    match number {
        1..=CODE_MAX => Some(number),
        400 | 413 | 422 => Some(INVALID_ARGUMENT),
        404 => Some(NOT_FOUND),
        429 => Some(RESOURCE_EXHAUSTED),
        503 => Some(UNAVAILABLE),
        408 | 504 => Some(DEADLINE_EXCEEDED),
        _ => None,
    }
}

fn code_of_label(label: &str) -> Option<i64> {
    const LABELS: [(&str, i64); 6] = [
        ("INVALID_ARGUMENT", INVALID_ARGUMENT),
        ("DEADLINE_EXCEEDED", DEADLINE_EXCEEDED),
        ("NOT_FOUND", NOT_FOUND),
        ("RESOURCE_EXHAUSTED", RESOURCE_EXHAUSTED),
        ("INTERNAL", INTERNAL),
        ("UNAVAILABLE", UNAVAILABLE),
    ];
    let mut labels = LABELS.into_iter();
    let found = labels.find(|(known, _)| known.eq_ignore_ascii_case(label));
    found.map(|(_, code)| code)
}

/// An upstream's text without its identity.
pub(super) fn clean(text: &str, task: &Task<'_>) -> String {
    explain(text, task.names()).unwrap_or_default()
}

/// The location of a video: inside the answer in one of `members`, or at its `uri`. The gateway
/// cannot read the upstream's buckets.
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
    is_web.then(|| Source::Url(media_url(uri)))
}

/// The URL of a file's bytes. Some upstreams give the URL of the file's description, which is JSON.
fn media_url(uri: &str) -> String {
    let file = uri.strip_suffix("?alt=json").unwrap_or(uri);
    let is_file = file
        .rsplit_once("/v1beta/files/")
        .is_some_and(|(before, id)| {
            let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            !before.contains(['?', '#']) && !id.is_empty() && id.bytes().all(is_id)
        });
    if is_file {
        format!("{file}:download?alt=media")
    } else {
        uri.to_owned()
    }
}

/// The delivery of a task that has one video.
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

/// The usage: the requested seconds from the memo, or fewer if the video is shorter.
pub(super) fn used(task: &Task<'_>, hosted: &HostedMedium) -> ReportedUsage {
    let asked: Option<u64> = task.memo.and_then(|memo| memo.parse().ok());
    let seconds = match (asked, hosted.seconds) {
        (Some(asked), Some(made)) => Some(asked.min(made)),
        (asked, made) => asked.or(made),
    };
    ReportedUsage {
        seconds,
        ..ReportedUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TASK: Task<'_> = Task {
        id: "t",
        model: "maker/film",
        upstream_model: "film-1",
        hidden: &[],
        created_ms: 0,
        now_ms: 0,
        memo: None,
        public_url: "",
    };

    #[test]
    fn each_cause_has_its_code() {
        for (cause, code) in [
            (Cause::Refused, 3),
            (Cause::Gone, 5),
            (Cause::Overloaded, 8),
            (Cause::Ambiguous, 13),
            (Cause::Upstream, 13),
            (Cause::Media, 13),
            (Cause::Unreachable, 14),
        ] {
            assert_eq!(code_of(cause), code, "{cause:?}");
        }
    }

    #[test]
    fn the_url_of_a_file_becomes_the_url_of_its_bytes() {
        const FILE: &str = "https://up.example/v1beta/files/ab_1-C";
        let media = format!("{FILE}:download?alt=media");
        let with = |rest: &str| format!("{FILE}{rest}");
        for (uri, expected) in [
            (with(""), Some(media.as_str())),
            (with("?alt=json"), Some(&media)),
            (media.clone(), Some(&media)),
            (with(":download"), Some(&with(":download"))),
            (with("?key=k"), Some(&with("?key=k"))),
            (with("/x"), Some(&with("/x"))),
            (with(".mp4"), Some(&with(".mp4"))),
            (
                "https://up.example/v1beta/files/".to_owned(),
                Some("https://up.example/v1beta/files/"),
            ),
            (
                "https://up.example/?u=/v1beta/files/a".to_owned(),
                Some("https://up.example/?u=/v1beta/files/a"),
            ),
            ("files/ab".to_owned(), None),
            ("gs://bucket/v1beta/files/a".to_owned(), None),
        ] {
            let found = read_video(&mut json!({ "uri": uri }), &["data"]);
            let expected = expected.map(|url| Source::Url(url.to_owned()));
            assert_eq!(found, expected, "{uri}");
        }
    }

    #[test]
    fn codes_of_upstreams_are_read_as_numbers_statuses_and_labels() {
        for (error, code) in [
            (json!({ "code": 3 }), 3),
            (json!({ "code": 8, "status": "INTERNAL" }), 8),
            (json!({ "code": 14 }), 14),
            (json!({ "code": 400 }), 3),
            (json!({ "code": 429 }), 8),
            (json!({ "code": 503 }), 14),
            (json!({ "code": 504 }), 4),
            (json!({ "code": "resource_exhausted" }), 8),
            (json!({ "code": 401, "status": "UNAUTHENTICATED" }), 13),
            (json!({ "status": "UNAVAILABLE" }), 14),
            (json!({ "code": "generation_failed" }), 13),
            (json!({ "code": 17 }), 13),
            (json!(null), 13),
        ] {
            assert_eq!(read_error(&error, &TASK).0, code, "{error}");
        }
    }
}
