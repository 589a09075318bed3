//! Reads `response_format`: the requested properties of the video.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::json::{Cursor, Members, Raw, Shape, Spelling};
use crate::video::check;

/// The members that a video format may have. `delivery` is accepted and ignored, because the
/// gateway keeps every result itself.
const KNOWN: [&str; 7] = [
    "type",
    "resolution",
    "aspect_ratio",
    "duration",
    "delivery",
    "gcs_uri",
    "mime_type",
];

/// The properties that the client has set. The others have defaults.
#[derive(Debug, Default)]
pub(super) struct Format {
    pub(super) resolution: Option<String>,
    pub(super) aspect_ratio: Option<String>,
    pub(super) seconds: Option<i64>,
}

/// Reads one format, or a list with one format.
pub(super) fn read(raw: Raw<'_>) -> Result<Format, Failure> {
    let mut items = vec![raw];
    if raw.shape() == Shape::Array {
        items.clear();
        Cursor::new(raw.text()).array(|cursor| {
            items.push(cursor.value()?);
            Ok::<(), Failure>(())
        })?;
    }
    if let [item] = items.as_slice() {
        return read_video(*item);
    }
    let message = "`response_format` must hold exactly one format, of type `video`.";
    Err(Failure::invalid(message).param("response_format"))
}

fn read_video(raw: Raw<'_>) -> Result<Format, Failure> {
    let members = Members::nested(raw, "response_format.", Spelling::One)?;
    if members.string("type")?.as_deref() != Some("video") {
        let message = "`response_format.type` must be `video` with this model.";
        return Err(Failure::invalid(message).param("response_format.type"));
    }
    check::refuse_member(&members, "gcs_uri", "response_format.gcs_uri")?;
    refuse_other_members(&members, &KNOWN, "response_format.")?;
    members.string("delivery")?;
    if members
        .string("mime_type")?
        .is_some_and(|it| it != "video/mp4")
    {
        let message = "`response_format.mime_type` must be `video/mp4`.";
        return Err(Failure::invalid(message).param("response_format.mime_type"));
    }
    let seconds = match members.string("duration")? {
        Some(text) => Some(read_seconds(&text)?),
        None => None,
    };
    Ok(Format {
        resolution: members.string("resolution")?.map(Cow::into_owned),
        aspect_ratio: members.string("aspect_ratio")?.map(Cow::into_owned),
        seconds,
    })
}

/// Reads a duration of the form `<n>s`.
fn read_seconds(text: &str) -> Result<i64, Failure> {
    let number = text.strip_suffix('s');
    let is_plain = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.filter(is_plain).and_then(|it| it.parse().ok());
    number.ok_or_else(|| {
        let message = "`response_format.duration` must be whole seconds, such as `8s`.";
        Failure::invalid(message).param("response_format.duration")
    })
}

/// Refuses members that have no meaning for a video, instead of dropping them.
pub(super) fn refuse_other_members(
    members: &Members<'_>,
    known: &[&str],
    path: &'static str,
) -> Result<(), Failure> {
    let unknown = members
        .iter()
        .find(|member| !member.value.is_null() && !known.contains(&&*member.name));
    match unknown {
        Some(member) => {
            let param = format!("{path}{}", member.name);
            let message = format!("`{param}` is not supported for videos.");
            Err(Failure::unsupported_parameter(param, message))
        }
        None => Ok(()),
    }
}
