//! Removes members that identify the upstream from an answer: request ids, names of models and servers.
//!
//! Used for answers that pass unchanged and into which the gateway inserts no identity of its own: images,
//! vectors, transcripts, voices. A model's name becomes the public id. Other identifying members are removed.

use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};

/// Members that name a server or an account. Their value does not matter.
const NAMING: [&str; 10] = [
    "account",
    "deployment",
    "endpoint",
    "host",
    "hostname",
    "organization",
    "provider",
    "region",
    "server",
    "system_fingerprint",
];

/// Members that name the model.
const MODEL: [&str; 6] = [
    "model",
    "modelName",
    "modelVersion",
    "model_id",
    "model_name",
    "model_version",
];

/// Members of transcripts that may hold the label of a speaker or a channel.
const LABELS: [&str; 4] = ["channelId", "channel_id", "speakerId", "speaker_id"];
const LABEL_DIGITS: usize = 3;

/// The treatment of labels of speakers and channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// The answer has none, so a member with such a name is an id of the upstream.
    Removed,
    Kept,
}

/// Removes identity from the members of one object, which it receives in order.
#[derive(Debug)]
pub(crate) struct Ids<'m> {
    /// The public id of the model, as JSON.
    model: &'m [u8],
    labels: Labels,
    /// The start of the object in the whole text.
    offset: usize,
    any_kept: bool,
    /// The end of the last member.
    end: usize,
    /// The start of the removed members at the front of the object, if no member was kept so far.
    leading: Option<usize>,
}

impl<'m> Ids<'m> {
    pub(crate) fn new(model: &'m [u8], offset: usize) -> Self {
        Self {
            model,
            labels: Labels::Removed,
            offset,
            any_kept: false,
            end: 0,
            leading: None,
        }
    }

    /// Reads a member and keeps it, whatever its name.
    pub(crate) fn keep(&mut self, name: Text<'_>, value: Raw<'_>, edits: &mut Vec<Edit>) {
        self.note(name, value, false, edits);
    }

    /// Reads a member, and removes it if it identifies the upstream. Objects and lists in it are
    /// searched too. The span of the value refers to the whole text.
    pub(crate) fn member(&mut self, name: Text<'_>, value: Raw<'_>, edits: &mut Vec<Edit>) {
        let is_model = MODEL.iter().any(|known| name.is(known));
        let is_label = self.labels == Labels::Kept && is_label(name, value);
        let is_cut = !is_model && is_identity(&name.decode_lossy()) && !is_label;
        self.note(name, value, is_cut, edits);
        if is_model {
            if value.shape() == Shape::String {
                edits.push(Edit::replace(value.span(), self.model.to_vec()));
            }
        } else if !is_cut {
            // The caller has validated the JSON.
            let _ = strip_value(value, self.model, self.labels, edits);
        }
    }

    pub(crate) fn end(self, edits: &mut Vec<Edit>) {
        if let Some(start) = self.leading {
            edits.push(Edit::remove(start..self.end));
        }
    }

    /// Records a member. A removed member takes a comma with it: the comma before it, or the comma after it if
    /// no member before it is kept.
    fn note(&mut self, name: Text<'_>, value: Raw<'_>, is_cut: bool, edits: &mut Vec<Edit>) {
        let start = (name.span().start + self.offset).saturating_sub(1);
        let end = value.span().end;
        if !is_cut {
            self.any_kept = true;
            if let Some(leading) = self.leading.take() {
                edits.push(Edit::remove(leading..start));
            }
        } else if self.any_kept {
            edits.push(Edit::remove(self.end..end));
        } else {
            self.leading.get_or_insert(start);
        }
        self.end = end;
    }
}

/// Removes identity from everything in a value, whose span refers to the whole text.
fn strip_value(
    value: Raw<'_>,
    model: &[u8],
    labels: Labels,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    let offset = value.span().start;
    let mut cursor = Cursor::new(value.text());
    match value.shape() {
        Shape::Object => {
            let mut ids = Ids {
                labels,
                ..Ids::new(model, offset)
            };
            cursor.object(|cursor, name| {
                ids.member(name, cursor.value()?.moved(offset), edits);
                Ok::<(), SyntaxError>(())
            })?;
            ids.end(edits);
            Ok(())
        }
        Shape::Array => {
            cursor.array(|cursor| strip_value(cursor.value()?.moved(offset), model, labels, edits))
        }
        _ => Ok(()),
    }
}

/// The edits that remove identity from a whole answer.
pub(crate) fn strip(answer: Raw<'_>, public_model: &str) -> Vec<Edit> {
    strip_all(answer, public_model, Labels::Removed)
}

/// Like [`strip`], for a transcript, whose labels of speakers and channels stay.
pub(crate) fn strip_transcript(transcript: Raw<'_>, public_model: &str) -> Vec<Edit> {
    strip_all(transcript, public_model, Labels::Kept)
}

fn strip_all(answer: Raw<'_>, public_model: &str, labels: Labels) -> Vec<Edit> {
    let mut model = Vec::new();
    write_string(&mut model, public_model);
    let mut edits = Vec::new();
    // The caller has validated the JSON.
    let _ = strip_value(answer, &model, labels, &mut edits);
    edits
}

/// Whether a member identifies the upstream: `id`, `request_id`, `traceId`, `provider`.
pub(crate) fn is_identity(name: &str) -> bool {
    let endings = ["_id", "-id", "Id", "_ID", "_ids", "Ids"];
    name.eq_ignore_ascii_case("id")
        || endings.iter().any(|ending| name.ends_with(ending))
        || NAMING.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a member of a transcript tells its speakers or channels apart, as `speaker_1` and `0` do. A longer value may
/// be an id of the upstream.
fn is_label(name: Text<'_>, value: Raw<'_>) -> bool {
    if !LABELS.iter().any(|known| name.is(known)) {
        return false;
    }
    let text = value.string().map(|text| text.decode_lossy());
    let label = text.as_deref().unwrap_or(value.text());
    let number = ["speaker_", "channel_"]
        .iter()
        .find_map(|before| label.strip_prefix(before))
        .unwrap_or(label);
    (1..=LABEL_DIGITS).contains(&number.len()) && number.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::json::patch;

    fn stripped(text: &str) -> String {
        let edits = strip(Cursor::new(text).value().unwrap(), "maker/m");
        let text = patch::apply(&Bytes::copy_from_slice(text.as_bytes()), edits);
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn nothing_else_changes() {
        for (text, expected) in [
            (r#"{"a":1, "b" : [ 2 ]}"#, r#"{"a":1, "b" : [ 2 ]}"#),
            (r#"{"id":"x","a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"id":"x"}"#, r#"{"a":1}"#),
            (r#"{ "id":"x" , "request_id":7, "a":1}"#, r#"{ "a":1}"#),
            (r#"{"a":1,"id":"x","traceId":{},"b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"id":"x"}"#, "{}"),
            (r#"{"id":"x","task_id":"y"}"#, "{}"),
            (
                r#"[{"model":"up","id":1},{"x":{"provider":"p","valid":true}}]"#,
                r#"[{"model":"maker/m"},{"x":{"valid":true}}]"#,
            ),
            (
                r#"{"\u0069d":"x","modelVersion":"up-1","grid":1}"#,
                r#"{"modelVersion":"maker/m","grid":1}"#,
            ),
            (
                r#"{"words":[{"speaker_id":"speaker_0","a":1,"channel_id":12}]}"#,
                r#"{"words":[{"a":1}]}"#,
            ),
        ] {
            assert_eq!(stripped(text), expected);
        }
    }

    proptest! {
        #[test]
        fn the_rest_is_json_without_ids(names in prop::collection::vec(
            prop::sample::select(vec!["id", "request_id", "a", "b", "model", "provider", "n", "Id"]), 0..7,
        )) {
            let members: Vec<_> = names.iter().map(|name| format!(r#""{name}" :"v" "#)).collect();
            let text = format!("{{{}}}", members.join(" , "));
            let left: serde_json::Value = serde_json::from_str(&stripped(&text)).unwrap();
            let left = left.as_object().unwrap();
            for name in ["id", "request_id", "provider", "Id"] {
                prop_assert!(!left.contains_key(name));
            }
            for name in names.iter().filter(|name| ["a", "b", "n"].contains(*name)) {
                prop_assert!(left.contains_key(*name));
            }
        }
    }
}
