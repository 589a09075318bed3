//! Tests of content tasks: the rules for requests, and the bytes on the wire.

mod rules;
mod wire;

use BuiltInProfile::{Content10 as V10, Content15Pro as V15, Content20 as V20, Content25 as V25};
use bytes::Bytes;

use super::*;
use crate::profile::{AllowedValues, BuiltInProfile, Profile};
use crate::video::{
    Cause, CreationRequest, CreationResult, CreationTarget, Deletion, Draft, HostedMedium,
    PollResult, Protocol, Source, Task,
};

const TEXT: &str = r#"{"type":"text","text":"a cat"}"#;
const FIRST: &str =
    r#"{"type":"image_url","image_url":{"url":"https://x.example/a.png"},"role":"first_frame"}"#;
const LAST: &str =
    r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"},"role":"last_frame"}"#;
const LONE: &str = r#"{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}"#;
const IMAGE: &str =
    r#"{"type":"image_url","image_url":{"url":"asset://a-1"},"role":"reference_image"}"#;
const VIDEO: &str = r#"{"type":"video_url","video_url":{"url":"https://x.example/a.mp4"},"role":"reference_video"}"#;
const AUDIO: &str = r#"{"type":"audio_url","audio_url":{"url":"data:audio/wav;base64,AA"},"role":"reference_audio"}"#;
const DRAFT: &str = r#"{"type":"draft_task","draft_task":{"id":"0190-ours"}}"#;

fn profile(base: BuiltInProfile) -> Profile {
    let profile = Profile {
        base: Some(base),
        ..Profile::default()
    };
    profile.over_base()
}

fn body(items: &[&str], rest: &str) -> Bytes {
    let items = items.join(",");
    Bytes::from(format!(r#"{{"model":"a/b","content":[{items}]{rest}}}"#))
}

/// The code and the member of the refusal.
fn refusal(base: BuiltInProfile, body: &Bytes) -> Option<(String, String)> {
    let checked = read_request(body).and_then(|request| request.check(&profile(base)));
    let mut failure = checked.err()?;
    assert_eq!(failure.status(), 400, "{body:?}");
    let param = failure.param.take().unwrap_or_default().into_owned();
    Some((failure.code.as_str().to_owned(), param))
}

fn written(request: &Request, draft: Option<&str>) -> String {
    let model = "up-1";
    let pieces = request.write(&CreationTarget { model, draft }).unwrap();
    String::from_utf8(pieces.concat()).unwrap()
}

/// Checks rows of base, items, other members and the refusal. A refusal that names only a member
/// has the code `invalid_request`.
fn holds(rows: &[(BuiltInProfile, &[&str], &str, &str)]) {
    for (base, items, rest, refused) in rows {
        let body = body(items, rest);
        let expected = match refused.split_once(' ') {
            _ if refused.is_empty() => None,
            Some((code, param)) => Some((code.to_owned(), param.to_owned())),
            None => Some(("invalid_request".to_owned(), (*refused).to_owned())),
        };
        assert_eq!(refusal(*base, &body), expected, "{base:?} {body:?}");
    }
}
