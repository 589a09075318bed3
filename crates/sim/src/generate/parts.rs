//! Reads the parts of a content item.

use crate::google::{Field, Refusal, Spelling, linked, of_blob};
use crate::model::Media;
use serde_json::Value;

pub(super) const CONTENT: &[&str] = &["parts", "role"];
const PART: &[&str] = &[
    "audio_transcription",
    "code_execution_result",
    "executable_code",
    "file_data",
    "function_call",
    "function_response",
    "inline_data",
    "media_processing",
    "media_resolution",
    "part_metadata",
    "speech_metadata",
    "text",
    "thought",
    "thought_signature",
    "tool_call",
    "tool_response",
    "video_metadata",
];
/// The members of a part that hold its data. A part must have exactly one of them.
const DATA: &[&str] = &[
    "code_execution_result",
    "executable_code",
    "file_data",
    "function_call",
    "function_response",
    "inline_data",
    "text",
    "tool_call",
    "tool_response",
];
const BLOB: &[&str] = &["data", "display_name", "mime_type"];
const FILE: &[&str] = &["display_name", "file_uri", "mime_type"];
const CALL: &[&str] = &["args", "id", "name", "partial_args", "will_continue"];
const RESPONSE: &[&str] = &[
    "id",
    "name",
    "parts",
    "response",
    "scheduling",
    "will_continue",
];
const RESPONSE_PART: &[&str] = &["file_data", "inline_data", "media_processing"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Model,
}

pub(super) struct Content<'a> {
    pub(super) role: Role,
    pub(super) parts: Vec<Part<'a>>,
}

pub(super) struct Part<'a> {
    pub(super) kind: PartKind<'a>,
    pub(super) signature: Option<&'a str>,
}

pub(super) enum PartKind<'a> {
    Text(&'a str),
    Thought,
    Media(Media),
    Call(CallPart<'a>),
    Response(Response<'a>),
    /// An action of a server tool.
    Other,
}

pub(super) struct CallPart<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) arguments: String,
}

pub(super) struct Response<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) text: String,
    pub(super) media: Vec<Media>,
    pub(super) failed: bool,
    pub(super) path: String,
}

impl<'a> Content<'a> {
    pub(super) fn read(content: &Field<'a>) -> Result<Self, Refusal> {
        let role = match content.text("role")? {
            None | Some("" | "user" | "function") => Role::User,
            Some("model") => Role::Model,
            Some(_) => {
                return Err(Refusal::invalid("Please use a valid role: user, model.")
                    .field(&content.path("role")));
            }
        };
        let parts = content.children("parts", PART)?;
        if parts.is_empty() {
            let path = content.path("parts");
            return Err(Refusal::invalid(format!(
                "* GenerateContentRequest.{path}: contents.parts must not be empty.\n"
            ))
            .field(&path));
        }
        let parts = parts.iter().map(Part::read).collect::<Result<_, _>>()?;
        Ok(Self { role, parts })
    }

    /// Whether the user's content item has anything except results of calls.
    pub(super) fn is_question(&self) -> bool {
        let is_result = |part: &Part<'_>| matches!(part.kind, PartKind::Response(_));
        self.role == Role::User && !self.parts.iter().all(is_result)
    }
}

impl<'a> Part<'a> {
    pub(super) fn read(part: &Field<'a>) -> Result<Self, Refusal> {
        let mut data = DATA.iter().filter(|name| part.has(name));
        let (name, None) = (data.next(), data.next()) else {
            return Err(Refusal::invalid(format!(
                "Invalid value at '{}': oneof field 'data' is already set.",
                part.path("data")
            ))
            .field(&part.path("data")));
        };
        let signature = part.text("thought_signature")?;
        let kind = match name.copied() {
            Some("text") => {
                let text = part.text("text")?.unwrap_or_default();
                if part.flag("thought")? == Some(true) {
                    PartKind::Thought
                } else {
                    PartKind::Text(text)
                }
            }
            Some("inline_data" | "file_data") => PartKind::Media(media(part)?),
            Some("function_call") => PartKind::Call(CallPart::read(part)?),
            Some("function_response") => PartKind::Response(Response::read(part)?),
            Some(_) => PartKind::Other,
            None => {
                let path = part.path("data");
                return Err(Refusal::invalid(format!(
                    "* GenerateContentRequest.{path}: required oneof field 'data' must have one \
                     initialized field\n"
                ))
                .field(&path));
            }
        };
        Ok(Self { kind, signature })
    }
}

fn media(part: &Field<'_>) -> Result<Media, Refusal> {
    if let Some(blob) = part.child("inline_data", BLOB)? {
        let mime_type = blob.required_text("mime_type")?;
        return of_blob(mime_type, blob.required_text("data")?, &blob.path("data"));
    }
    match part.child("file_data", FILE)? {
        Some(file) => {
            let mime_type = file.text("mime_type")?.unwrap_or_default();
            let uri = file.required_text("file_uri")?;
            linked(mime_type, uri, &file.path("file_uri"))
        }
        None => Err(Refusal::invalid("A part without data.").field(&part.path("data"))),
    }
}

/// The JSON text of a member that must be an object.
fn object_text(field: &Field<'_>, name: &str) -> Result<Option<String>, Refusal> {
    match field.get(name) {
        None => Ok(None),
        Some(object @ Value::Object(_)) => Ok(Some(object.to_string())),
        Some(other) => {
            let path = field.path(name);
            Err(Refusal::invalid(format!(
                "Invalid value at '{path}' (type.googleapis.com/google.protobuf.Struct), {other}"
            ))
            .field(&path))
        }
    }
}

impl<'a> CallPart<'a> {
    pub(super) fn read(part: &Field<'a>) -> Result<Self, Refusal> {
        let call = Field::object(
            part.required("function_call")?,
            part.path("function_call"),
            Spelling::Both,
            CALL,
        )?;
        Ok(Self {
            id: call.text("id")?.filter(|id| !id.is_empty()),
            name: call.required_text("name")?,
            arguments: object_text(&call, "args")?.unwrap_or_else(|| "{}".to_owned()),
        })
    }
}

impl<'a> Response<'a> {
    pub(super) fn read(part: &Field<'a>) -> Result<Self, Refusal> {
        let response = Field::object(
            part.required("function_response")?,
            part.path("function_response"),
            Spelling::Both,
            RESPONSE,
        )?;
        response.required("response")?;
        object_text(&response, "response")?;
        let value = response.get("response").unwrap_or(&Value::Null);
        let (result, failed) = match (value.get("error"), value.get("output")) {
            (Some(error), _) => (error, true),
            (None, Some(output)) => (output, false),
            (None, None) => (value.get("result").unwrap_or(value), false),
        };
        let media = response
            .children("parts", RESPONSE_PART)?
            .iter()
            .map(media)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            id: response.text("id")?.filter(|id| !id.is_empty()),
            name: response.required_text("name")?,
            text: match result {
                Value::String(text) => text.clone(),
                // The object is empty if the result is only a picture.
                Value::Object(map) if map.is_empty() => String::new(),
                other => other.to_string(),
            },
            media,
            failed,
            path: response.path("name"),
        })
    }
}

/// Reads the texts of the system instruction. Some clients send a string instead of a content item.
pub(super) fn system(body: &Field<'_>) -> Result<Vec<String>, Refusal> {
    if let Some(Value::String(text)) = body.get("system_instruction") {
        return Ok(vec![text.clone()]);
    }
    let Some(system) = body.child("system_instruction", CONTENT)? else {
        return Ok(Vec::new());
    };
    let parts = system.children("parts", PART)?;
    let texts: Vec<_> = parts
        .iter()
        .map(|part| part.text("text").map(Option::unwrap_or_default))
        .collect::<Result<_, _>>()?;
    Ok(vec![texts.join("\n")])
}
