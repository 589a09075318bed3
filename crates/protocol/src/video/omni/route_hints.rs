//! Decides whether a request to the Interactions endpoint is for text or for video.

use std::borrow::Cow;

use crate::interactions::asks_for_video;
use crate::json::{Cursor, Raw, Shape, SyntaxError, utf8};

/// The members that decide between the two paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RouteHints<'a> {
    /// The model, if it is a string.
    pub model: Option<Cow<'a, str>>,
    /// Whether the request mentions video, regardless of its model.
    pub video: bool,
}

/// Reads the members that decide between the two paths. The text path refuses a body that cannot be
/// read.
pub fn read_route_hints(body: &[u8]) -> RouteHints<'_> {
    let mut asked = RouteHints::default();
    let Ok(text) = utf8(body) else {
        return asked;
    };
    let mut cursor = Cursor::new(text);
    if cursor.shape() != Ok(Shape::Object) {
        return asked;
    }
    let read = cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("model") {
            asked.model = value.string().and_then(|text| text.decode().ok());
        } else if name.is("response_format") {
            asked.video |= asks_for_video(value);
        } else if name.is("generation_config") {
            asked.video |= has_video_config(value);
        }
        Ok::<(), SyntaxError>(())
    });
    match read {
        Ok(()) => asked,
        Err(_) => RouteHints::default(),
    }
}

fn has_video_config(config: Raw<'_>) -> bool {
    let mut found = false;
    if config.shape() == Shape::Object {
        // The caller has validated the JSON.
        let _ = Cursor::new(config.text()).object(|cursor, name| {
            let value = cursor.value()?;
            found |= name.is("video_config") && !value.is_null();
            Ok::<(), SyntaxError>(())
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn video_is_asked_for_by_format_or_configuration() {
        for (body, model, video) in [
            (r#"{"model":"a/b","input":"x"}"#, Some("a/b"), false),
            (
                r#"{"response_format":{"type":"video"},"mod\u0065l":"a\/b"}"#,
                Some("a/b"),
                true,
            ),
            (
                r#"{"response_format":[{"type":"text"},{"type":"video"}]}"#,
                None,
                true,
            ),
            (r#"{"response_format":{"type":"text"}}"#, None, false),
            (r#"{"response_format":"video"}"#, None, false),
            (
                r#"{"model":7,"generation_config":{"video_config":{}}}"#,
                None,
                true,
            ),
            (
                r#"{"generation_config":{"video_config":null,"x":{"video_config":1}}}"#,
                None,
                false,
            ),
            (
                r#"{"model":"a/b","response_format":{"type":"video"}"#,
                None,
                false,
            ),
            ("[]", None, false),
            ("", None, false),
        ] {
            let asked = read_route_hints(body.as_bytes());
            assert_eq!(
                (asked.model.as_deref(), asked.video),
                (model, video),
                "{body}"
            );
        }
    }
}
