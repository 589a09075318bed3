//! Reads `messages`: roles, parts, and the order of tool calls and results.

use crate::media;
use crate::model::{Media, MediaKind, PastCall, Turn};
use crate::openai::{Member, Refusal, bad_image, type_name};
use serde_json::Value;

const ROLES: &[&str] = &[
    "system",
    "assistant",
    "user",
    "function",
    "tool",
    "developer",
];
const KNOWN: &[&str] = &[
    "annotations",
    "audio",
    "content",
    "function_call",
    "name",
    "reasoning_content",
    "refusal",
    "role",
    "tool_call_id",
    "tool_calls",
];

#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) system: Vec<String>,
    pub(super) turns: Vec<Turn>,
    /// The text of all messages, except those with the deprecated role `function`. JSON mode requires that it contains
    /// the word JSON.
    pub(super) all_text: String,
}

pub(super) fn read(body: &Member<'_>, strict: bool) -> Result<Messages, Refusal> {
    body.required("messages")?;
    let list = body.list("messages")?.unwrap_or_default();
    if list.is_empty() {
        return Err(Refusal::invalid(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an \
             empty array instead.",
        )
        .param("messages")
        .code("empty_array"));
    }
    let mut reader = Reader::default();
    for (index, message) in list.iter().enumerate() {
        let message = Member::object(message, format!("messages[{index}]"))?;
        if strict {
            message.refuse_unknown(KNOWN)?;
        }
        reader.message(&message, index)?;
    }
    reader.check_all_answered(list.len())?;
    Ok(reader.messages)
}

#[derive(Default)]
struct Reader {
    messages: Messages,
    /// Calls of the last assistant message that have no result yet.
    unanswered: Vec<String>,
    /// Whether a tool result is allowed as the next message.
    calls_open: bool,
}

impl Reader {
    fn message(&mut self, message: &Member<'_>, index: usize) -> Result<(), Refusal> {
        message.required("role")?;
        let role = message.one_of("role", ROLES)?.unwrap_or_default();
        if role != "tool" {
            self.check_all_answered(index)?;
            self.calls_open = false;
        }
        match role {
            "tool" => self.result(message, index),
            "assistant" => self.assistant(message),
            "function" => {
                let name = message.required_text("name")?;
                let text = message.text("content")?.unwrap_or_default();
                self.push_result(name, text);
                Ok(())
            }
            "user" => {
                let content = content(message, AllowedParts::User)?;
                self.messages.all_text.push_str(&content.text);
                self.messages.turns.push(Turn::User {
                    text: content.text,
                    media: content.media,
                });
                Ok(())
            }
            _ => {
                let content = content(message, AllowedParts::Text)?;
                self.messages.all_text.push_str(&content.text);
                self.messages.system.push(content.text);
                Ok(())
            }
        }
    }

    fn assistant(&mut self, message: &Member<'_>) -> Result<(), Refusal> {
        let mut calls = Vec::new();
        for (index, call) in message
            .list("tool_calls")?
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let path = message.path(&format!("tool_calls[{index}]"));
            calls.push(past_call(&Member::object(call, path)?)?);
        }
        if let Some(call) = message.child("function_call")? {
            calls.push(PastCall {
                // The result of a deprecated call refers to the function by its name, because there is no call id.
                id: call.required_text("name")?.to_owned(),
                name: call.required_text("name")?.to_owned(),
                arguments: call.required_text("arguments")?.to_owned(),
            });
        } else {
            self.unanswered = calls.iter().map(|call| call.id.clone()).collect();
            self.calls_open = !calls.is_empty();
        }
        let silent = calls.is_empty()
            && message.text("refusal")?.is_none()
            && message.get("audio").is_none();
        let text = if message.get("content").is_some() || silent {
            content(message, AllowedParts::Assistant)?.text
        } else {
            String::new()
        };
        self.messages.all_text.push_str(&text);
        self.messages.turns.push(Turn::Assistant { text, calls });
        Ok(())
    }

    fn result(&mut self, message: &Member<'_>, index: usize) -> Result<(), Refusal> {
        let id = message.required_text("tool_call_id")?;
        let content = content(message, AllowedParts::Text)?;
        let place = self.unanswered.iter().position(|open| open == id);
        match place {
            Some(place) => {
                self.unanswered.remove(place);
            }
            None if self.calls_open => {
                return Err(Refusal::invalid(format!(
                    "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of \
                     previous message."
                ))
                .param(format!("messages.[{index}].tool_call_id")));
            }
            None => {
                return Err(Refusal::invalid(
                    "Invalid parameter: messages with role 'tool' must be a response to a \
                     preceeding message with 'tool_calls'.",
                )
                .param(format!("messages.[{index}].role")));
            }
        }
        self.messages.all_text.push_str(&content.text);
        self.push_result(id, &content.text);
        Ok(())
    }

    fn push_result(&mut self, call_id: &str, text: &str) {
        self.messages.turns.push(Turn::Result {
            call_id: call_id.to_owned(),
            text: text.to_owned(),
            media: Vec::new(),
            failed: false,
        });
    }

    fn check_all_answered(&self, index: usize) -> Result<(), Refusal> {
        if self.unanswered.is_empty() {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding \
             to each 'tool_call_id'. The following tool_call_ids did not have response messages: \
             {}",
            self.unanswered.join(", ")
        ))
        .param(format!("messages.[{index}].role")))
    }
}

fn past_call(call: &Member<'_>) -> Result<PastCall, Refusal> {
    let id = call.required_text("id")?.to_owned();
    call.required("type")?;
    let custom = call.one_of("type", &["function", "custom"])? == Some("custom");
    let (kind, arguments) = if custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    };
    let called = call.required_child(kind)?;
    Ok(PastCall {
        id,
        name: called.required_text("name")?.to_owned(),
        arguments: called.required_text(arguments)?.to_owned(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowedParts {
    User,
    Assistant,
    Text,
}

#[derive(Default)]
struct Contents {
    text: String,
    media: Vec<Media>,
}

fn content(message: &Member<'_>, of: AllowedParts) -> Result<Contents, Refusal> {
    let path = message.path("content");
    let parts = match message.get("content") {
        Some(Value::String(text)) => {
            return Ok(Contents {
                text: text.clone(),
                media: Vec::new(),
            });
        }
        Some(Value::Array(parts)) => parts,
        other => {
            return Err(Refusal::invalid(format!(
                "Invalid value for 'content': expected a string, got {}.",
                type_name(other.unwrap_or(&Value::Null))
            ))
            .param(path));
        }
    };
    if parts.is_empty() && of != AllowedParts::Assistant {
        return Err(Refusal::invalid(format!(
            "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an \
             empty array instead."
        ))
        .param(path)
        .code("empty_array"));
    }
    let mut contents = Contents::default();
    for (index, part) in parts.iter().enumerate() {
        let part = Member::object(part, format!("{path}[{index}]"))?;
        read_part(&part, of, &mut contents)?;
    }
    Ok(contents)
}

fn read_part(part: &Member<'_>, of: AllowedParts, contents: &mut Contents) -> Result<(), Refusal> {
    let allowed: &[&str] = match of {
        AllowedParts::User => &["text", "image_url", "input_audio", "file"],
        AllowedParts::Assistant => &["text", "refusal"],
        AllowedParts::Text => &["text"],
    };
    part.required("type")?;
    match part.one_of("type", allowed)? {
        Some("image_url") => {
            let image = part.required_child("image_url")?;
            let detail = image.one_of("detail", &["auto", "low", "high", "original"])?;
            let path = image.path("url");
            let mut media = media::of_url(MediaKind::Image, image.required_text("url")?)
                .map_err(|error| bad_image(error, path))?;
            media.low_detail = detail == Some("low");
            contents.media.push(media);
        }
        Some("input_audio") => {
            let sound = part.required_child("input_audio")?;
            sound.required("format")?;
            let format = sound.one_of("format", &["wav", "mp3"])?.unwrap_or_default();
            let path = sound.path("data");
            let media = media::of_base64(MediaKind::Sound, format, sound.required_text("data")?)
                .map_err(|_| {
                    Refusal::invalid("The audio data is not valid base64.")
                        .param(path)
                        .code("invalid_value")
                })?;
            contents.media.push(media);
        }
        Some("file") => contents.media.push(file(&part.required_child("file")?)?),
        Some("refusal") => contents.text.push_str(part.required_text("refusal")?),
        _ => {
            let text = part.required_text("text")?;
            if !contents.text.is_empty() {
                contents.text.push('\n');
            }
            contents.text.push_str(text);
        }
    }
    Ok(())
}

fn file(file: &Member<'_>) -> Result<Media, Refusal> {
    if let Some(id) = file.text("file_id")? {
        return Err(Refusal::invalid(format!("No such File object: {id}"))
            .param(file.path("file_id"))
            .code("not_found"));
    }
    // The vendor asks for an id if the data has no name.
    if file.text("filename")?.is_none() {
        file.required_text("file_id")?;
    }
    let data = file.required_text("file_data")?;
    media::of_url(MediaKind::File, data)
        .or_else(|_| media::of_base64(MediaKind::File, "application/octet-stream", data))
        .map_err(|_| {
            Refusal::invalid("The file data is neither a data URL nor valid base64.")
                .param(file.path("file_data"))
                .code("invalid_value")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_all(messages: &Value) -> Result<Messages, Refusal> {
        let body = json!({"messages": messages});
        read(&Member::object(&body, "").unwrap(), true)
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
    }

    #[test]
    fn wrong_messages_are_refused_by_path() {
        let user = json!({"role": "user", "content": "hi"});
        let calls =
            json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
        for (messages, param) in [
            (json!([]), "messages"),
            (json!("hi"), "messages"),
            (json!([1]), "messages[0]"),
            (json!([{"content": "hi"}]), "messages[0].role"),
            (
                json!([{"role": "king", "content": "hi"}]),
                "messages[0].role",
            ),
            (json!([{"role": "user"}]), "messages[0].content"),
            (
                json!([{"role": "user", "content": 7}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": []}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": "x", "mood": 1}]),
                "messages[0].mood",
            ),
            (
                json!([{"role": "user", "content": [{"type": "video"}]}]),
                "messages[0].content[0].type",
            ),
            (
                json!([{"role": "user", "content": [{"type": "text"}]}]),
                "messages[0].content[0].text",
            ),
            (
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
                "messages[0].content[0].image_url.url",
            ),
            (
                json!([{"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
                "messages[0].content[0].type",
            ),
            (json!([{"role": "assistant"}]), "messages[0].content"),
            (json!([user, result("a")]), "messages.[1].role"),
            (json!([user, calls, result("a"), user]), "messages.[3].role"),
            (json!([user, calls, result("a")]), "messages.[3].role"),
            (
                json!([user, calls, result("c")]),
                "messages.[2].tool_call_id",
            ),
            (
                json!([user, calls, result("a"), result("b"), result("b")]),
                "messages.[4].tool_call_id",
            ),
        ] {
            let refusal = read_all(&messages).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(param), "{messages}");
        }
    }

    #[test]
    fn history_comes_back_as_clients_dump_it() {
        let messages = json!([
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"content": null, "refusal": null, "role": "assistant", "annotations": [], "tool_calls": [call("a")]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "42"}]},
            {"role": "assistant", "content": "", "tool_calls": [call("b")]},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "assistant", "content": "done"},
            {"role": "assistant", "content": null, "refusal": "no"},
            {"role": "assistant", "content": null, "function_call": {"name": "g", "arguments": "{}"}},
            {"role": "function", "name": "g", "content": null}
        ]);
        let read = read_all(&messages).unwrap();
        assert_eq!(read.system, ["Be brief."]);
        assert_eq!(read.turns.len(), 9);
        assert_eq!(
            read.turns[0],
            Turn::User {
                text: "one\ntwo".to_owned(),
                media: vec![]
            }
        );
    }

    #[test]
    fn media_are_taken() {
        let messages = json!([{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "UklGRgAAAABXQVZF", "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}
        ]}]);
        let read = read_all(&messages).unwrap();
        let Turn::User { media, .. } = &read.turns[0] else {
            panic!("a user turn");
        };
        assert_eq!(media.len(), 3);
        assert!(media[0].low_detail);
    }

    #[test]
    fn the_data_of_a_file_needs_a_name() {
        let file =
            json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg=="}});
        let messages = json!([{"role": "user", "content": [file]}]);
        assert!(read_all(&messages).is_err());
    }
}
