//! Writes the system prompt and the conversation.

use std::collections::{HashMap, HashSet, VecDeque};

use super::sendable::{image_type, is_not_blank, signed};
use crate::canon::{
    Document, Image, ImageSource, MergedTurn, Part, Role, Target, Thought, ToolCall, ToolResult,
    arguments, base64, data_uri,
};
use crate::json::write::{Array, Object};
use crate::messages::call_id::plain_id;
use crate::messages::redacted;

/// The user message before a conversation that starts with an assistant turn.
const OPENING: &str = ".";

/// Writes `system`, unless it is empty.
pub(super) fn write_system(it: &mut Object<'_>, system: &[&str]) {
    let texts = system.iter().copied().filter(|text| is_not_blank(text));
    let texts: Vec<&str> = texts.collect();
    match texts.as_slice() {
        [] => {}
        [text] => {
            it.text("system", text);
        }
        texts => {
            it.array("system", |it| {
                for text in texts {
                    write_text(it, text);
                }
            });
        }
    }
}

pub(super) fn write_messages(it: &mut Object<'_>, turns: &[MergedTurn<'_>], target: &Target<'_>) {
    let mut conversation = Conversation {
        target,
        ids: CallIds::default(),
    };
    it.array("messages", |it| {
        if turns
            .first()
            .is_some_and(|turn| turn.role == Role::Assistant)
        {
            write_message(it, Role::User, |it| write_text(it, OPENING));
        }
        for turn in turns {
            write_message(it, turn.role, |it| {
                for (_, part) in &turn.parts {
                    conversation.part(it, part);
                }
            });
        }
    });
}

fn write_message(it: &mut Array<'_>, role: Role, content: impl FnOnce(&mut Array<'_>)) {
    let role = match role {
        Role::Assistant => "assistant",
        Role::System | Role::Developer | Role::User => "user",
    };
    it.object(|it| {
        it.text("role", role).array("content", content);
    });
}

struct Conversation<'t> {
    target: &'t Target<'t>,
    ids: CallIds,
}

impl Conversation<'_> {
    fn part(&mut self, it: &mut Array<'_>, part: &Part) {
        match part {
            Part::ToolCall(call) => self.call(it, call),
            Part::ToolResult(result) => self.answer(it, result),
            Part::Thought(thought) => {
                if let Some(value) = signed(thought, self.target) {
                    write_thought(it, thought, value);
                }
            }
            part => write_part(it, part),
        }
    }

    fn call(&mut self, it: &mut Array<'_>, call: &ToolCall) {
        let id = self.ids.assign(&call.id);
        it.object(|it| {
            it.text("type", "tool_use")
                .text("id", &id)
                .text("name", &call.name)
                .raw("input", &arguments::object(&call.arguments));
        });
    }

    fn answer(&mut self, it: &mut Array<'_>, result: &ToolResult) {
        let id = self.ids.take(&result.call_id);
        it.object(|it| {
            it.text("type", "tool_result").text("tool_use_id", &id);
            let written = result.parts.iter().map(|(_, part)| part);
            let written: Vec<&Part> = written.filter(|it| is_written(it)).collect();
            match (result.parts.as_slice(), written.as_slice()) {
                ([(_, Part::Text(text))], _) | (_, [Part::Text(text) | Part::Refusal(text)]) => {
                    it.text("content", text);
                }
                // `content` is left out, because even an empty list would count as content.
                (_, []) => {}
                (_, parts) => {
                    it.array("content", |it| {
                        for part in parts {
                            write_part(it, part);
                        }
                    });
                }
            }
            if result.is_error {
                it.boolean("is_error", true);
            }
        });
    }
}

/// Whether a part is one that users and tools can send, and is not a blank text.
fn is_written(part: &Part) -> bool {
    match part {
        Part::Text(text) | Part::Refusal(text) => is_not_blank(text),
        Part::Image(_) | Part::Document(_) => true,
        Part::Thought(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Foreign => false,
    }
}

/// Writes a part that users and tools can send.
fn write_part(it: &mut Array<'_>, part: &Part) {
    if !is_written(part) {
        return;
    }
    match part {
        Part::Text(text) | Part::Refusal(text) => write_text(it, text),
        Part::Image(image) => write_image(it, image),
        Part::Document(document) => write_document(it, document),
        Part::Thought(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Foreign => {}
    }
}

fn write_text(it: &mut Array<'_>, text: &str) {
    it.object(|it| {
        it.text("type", "text").text("text", text);
    });
}

fn write_image(it: &mut Array<'_>, image: &Image) {
    it.object(|it| {
        it.text("type", "image");
        match &image.source {
            ImageSource::Url(url) => {
                it.object("source", |it| {
                    it.text("type", "url").text("url", url);
                });
            }
            ImageSource::Inline { mime, data } => {
                let mime = image_type(mime).filter(|mime| !mime.is_empty());
                write_source(it, mime.unwrap_or_else(|| data_uri::sniff(data)), data);
            }
        }
    });
}

fn write_document(it: &mut Array<'_>, document: &Document) {
    let is_text = document.mime.starts_with("text/");
    let text = is_text.then(|| base64::decode(&document.data)).flatten();
    it.object(|it| {
        it.text("type", "document");
        match text {
            Some(text) => {
                it.object("source", |it| {
                    it.text("type", "text")
                        .text("media_type", "text/plain")
                        .text("data", &String::from_utf8_lossy(&text));
                });
            }
            None => write_source(it, &document.mime, &document.data),
        }
        if let Some(name) = &document.name {
            it.text("title", name);
        }
    });
}

fn write_source(it: &mut Object<'_>, mime: &str, data: &str) {
    it.object("source", |it| {
        it.text("type", "base64")
            .text("media_type", mime)
            .text("data", data);
    });
}

fn write_thought(it: &mut Array<'_>, thought: &Thought, value: &str) {
    it.object(|it| match redacted::data(value) {
        None if !thought.redacted => {
            it.text("type", "thinking")
                .text("thinking", &thought.text)
                .text("signature", value);
        }
        data => {
            it.text("type", "redacted_thinking")
                .text("data", data.unwrap_or(value));
        }
    });
}

/// The ids of tool calls as they are sent: unique, and without characters that are not allowed.
#[derive(Debug, Default)]
struct CallIds {
    assigned: HashSet<String>,
    /// The last number that was appended to make an id unique.
    numbers: HashMap<String, u32>,
    /// Calls without a result so far, by their original id.
    waiting: HashMap<String, VecDeque<String>>,
}

impl CallIds {
    fn assign(&mut self, id: &str) -> String {
        let plain = plain_id(id);
        let mut unique = plain.clone();
        while !self.assigned.insert(unique.clone()) {
            let number = self.numbers.entry(plain.clone()).or_insert(1);
            *number = number.saturating_add(1);
            unique = format!("{plain}_{number}");
        }
        let waiting = self.waiting.entry(id.to_owned()).or_default();
        waiting.push_back(unique.clone());
        unique
    }

    /// The id of the call that a result belongs to.
    fn take(&mut self, id: &str) -> String {
        let waiting = self.waiting.get_mut(id);
        let next = waiting.and_then(VecDeque::pop_front);
        next.unwrap_or_else(|| plain_id(id))
    }
}
