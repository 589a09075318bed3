//! Reads the input of an interaction: a text, content blocks, or the steps of a conversation.

use std::borrow::Cow;

use super::read_parts::{is_contents, kind_of, read_content, text, typed_content};
use crate::canon::{
    Opaque, Part, Path, Role, SignedAt, Thought, ToolCall, ToolResult, Turn, note_unknown,
    note_unless_empty,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::typed::{self, compact};
use crate::json::{Cursor, Raw, Shape};
use crate::shared::signature;

#[derive(Debug, Default)]
pub(in crate::interactions) struct Steps {
    pub(in crate::interactions) turns: Vec<Turn>,
    /// Paths of members that only this dialect has.
    pub(in crate::interactions) unknown: Vec<String>,
    /// Whether the last item was a bare content block. Consecutive bare blocks form one turn.
    bare: bool,
    /// Whether the last turn consists of tool results. Consecutive results form one turn.
    answering: bool,
}

impl Steps {
    /// Reads `input` in any of its forms. A list may mix content blocks and steps.
    pub(in crate::interactions) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        match cursor.shape()? {
            Shape::String => {
                let text = typed::string(cursor, "input")?.unwrap_or_default();
                self.push_step(
                    Role::User,
                    Path::item("input", 0),
                    Part::Text(text.into_owned()),
                );
                Ok(())
            }
            Shape::Object => self.item(cursor.value()?, Path::item("input", 0)),
            _ => typed::array(cursor, "input", |cursor, number| {
                self.item(cursor.value()?, Path::item("input", number))
            }),
        }
    }

    fn item(&mut self, item: Raw<'_>, path: Path) -> Result<(), Failure> {
        let kind = kind_of(item, path)?;
        let goes_on = std::mem::take(&mut self.bare);
        match kind.as_ref() {
            "user_input" => self.read_message(item, Role::User, path)?,
            "model_output" => self.read_message(item, Role::Assistant, path)?,
            "thought" => self.thought(item, path)?,
            "function_call" => self.call(item, path)?,
            "function_result" => self.result(item, path)?,
            "text" | "image" | "audio" | "document" | "video" => {
                if !goes_on {
                    self.open(Role::User);
                }
                self.bare = true;
                let part = read_content(item, &kind, path, &mut self.unknown)?;
                self.push(path, part);
            }
            // Steps of tools that the upstream runs.
            _ => self.push_step(Role::Assistant, path, Part::Foreign),
        }
        Ok(())
    }

    fn read_message(&mut self, step: Raw<'_>, role: Role, path: Path) -> Result<(), Failure> {
        self.open(role);
        typed::object::<Failure>(&mut Cursor::new(step.text()), "input", |cursor, name| {
            match name {
                "content" => self.contents(cursor, path),
                // Models do not read how an earlier answer failed.
                "type" | "error" => cursor.value().map(drop).map_err(Failure::from),
                _ => self.note(cursor, path, name),
            }
        })?;
        self.remove_empty_turn();
        Ok(())
    }

    fn contents(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<(), Failure> {
        match cursor.shape()? {
            Shape::String => {
                let text = typed::string(cursor, "content")?.unwrap_or_default();
                self.push(path, Part::Text(text.into_owned()));
                Ok(())
            }
            Shape::Object => {
                let path = path.inner("content", 0);
                let part = typed_content(cursor.value()?, path, &mut self.unknown)?;
                self.push(path, part);
                Ok(())
            }
            _ => typed::array(cursor, "content", |cursor, number| {
                let path = path.inner("content", number);
                let part = typed_content(cursor.value()?, path, &mut self.unknown)?;
                self.push(path, part);
                Ok(())
            }),
        }
    }

    fn thought(&mut self, step: Raw<'_>, path: Path) -> Result<(), Failure> {
        let mut thought = Thought::default();
        typed::object::<Failure>(
            &mut Cursor::new(step.text()),
            "thought",
            |cursor, name| match name {
                "signature" => {
                    let text = typed::string(cursor, "signature")?.unwrap_or_default();
                    thought.opaque = signature::read(&text, Dialect::Interactions);
                    Ok(())
                }
                "summary" => typed::array(cursor, "summary", |cursor, number| {
                    let path = path.inner("summary", number);
                    match typed_content(cursor.value()?, path, &mut self.unknown)? {
                        Part::Text(text) => thought.text.push_str(&text),
                        _ => note_unknown(&mut self.unknown, path.to_string()),
                    }
                    Ok(())
                }),
                "type" => cursor.value().map(drop).map_err(Failure::from),
                _ => self.note(cursor, path, name),
            },
        )?;
        if thought != Thought::default() {
            self.push_step(Role::Assistant, path, Part::Thought(thought));
        }
        Ok(())
    }

    fn call(&mut self, step: Raw<'_>, path: Path) -> Result<(), Failure> {
        let mut call = ToolCall {
            id: String::new(),
            name: String::new(),
            arguments: "{}".to_owned(),
            opaque: None,
            signed_at: SignedAt::Call,
        };
        typed::object::<Failure>(
            &mut Cursor::new(step.text()),
            "function_call",
            |cursor, name| {
                match name {
                    "id" => call.id = text(cursor, "function_call.id")?,
                    "name" => call.name = text(cursor, "function_call.name")?,
                    "arguments" => {
                        let arguments = cursor.value()?;
                        match arguments.string() {
                            Some(text) => call.arguments = text.decode_lossy().into_owned(),
                            None if arguments.is_null() => {}
                            None => call.arguments = compact(arguments.text()),
                        }
                    }
                    // An older revision had the signature here.
                    "signature" => {
                        let text = text(cursor, "function_call.signature")?;
                        call.opaque = signature::read(&text, Dialect::Interactions);
                    }
                    "type" => drop(cursor.value()?),
                    _ => self.note(cursor, path, name)?,
                }
                Ok(())
            },
        )?;
        required(&call.id, "id", path)?;
        required(&call.name, "name", path)?;
        if call.opaque.is_none()
            && let Some((path, opaque)) = self.signature_of_call()
        {
            call.opaque = Some(opaque);
            call.signed_at = SignedAt::Item(path.index());
        }
        self.push_step(Role::Assistant, path, Part::ToolCall(call));
        Ok(())
    }

    /// Removes the last thought if it holds only a signature from a dialect that signs calls, and
    /// returns that signature for the call.
    fn signature_of_call(&mut self) -> Option<(Path, Opaque)> {
        let parts = &mut self.turns.last_mut()?.parts;
        let (path, Part::Thought(thought)) = parts.last()? else {
            return None;
        };
        let opaque = thought.opaque.as_ref()?;
        let of_call = matches!(opaque.origin, Dialect::Generate | Dialect::Chat);
        let taken = (of_call && thought.text.is_empty()).then(|| (*path, opaque.clone()))?;
        parts.pop();
        Some(taken)
    }

    fn result(&mut self, step: Raw<'_>, path: Path) -> Result<(), Failure> {
        let mut result = ToolResult {
            call_id: String::new(),
            name: None,
            parts: Vec::new(),
            is_error: false,
        };
        typed::object::<Failure>(
            &mut Cursor::new(step.text()),
            "function_result",
            |cursor, name| {
                match name {
                    "call_id" => result.call_id = text(cursor, "function_result.call_id")?,
                    "name" => {
                        let name = typed::string(cursor, "function_result.name")?;
                        result.name = name.map(Cow::into_owned);
                    }
                    "is_error" => {
                        result.is_error =
                            typed::boolean(cursor, "function_result.is_error")? == Some(true);
                    }
                    "result" => self.answer(cursor.value()?, path, &mut result.parts)?,
                    "type" => drop(cursor.value()?),
                    _ => self.note(cursor, path, name)?,
                }
                Ok(())
            },
        )?;
        required(&result.call_id, "call_id", path)?;
        self.push_step(Role::User, path, Part::ToolResult(result));
        Ok(())
    }

    /// Reads the result of a function: a text, an object, or a list of content blocks.
    fn answer(
        &mut self,
        value: Raw<'_>,
        path: Path,
        parts: &mut Vec<(Path, Part)>,
    ) -> Result<(), Failure> {
        match value.shape() {
            Shape::Null => {}
            Shape::String => {
                let text = value
                    .string()
                    .map_or_else(Cow::default, |text| text.decode_lossy());
                parts.push((path, Part::Text(text.into_owned())));
            }
            Shape::Array if is_contents(value) => {
                typed::array(
                    &mut Cursor::new(value.text()),
                    "result",
                    |cursor, number| {
                        let path = path.inner("result", number);
                        match typed_content(cursor.value()?, path, &mut self.unknown)? {
                            part @ (Part::Text(_) | Part::Image(_)) => parts.push((path, part)),
                            _ => note_unknown(&mut self.unknown, path.to_string()),
                        }
                        Ok::<(), Failure>(())
                    },
                )?;
            }
            _ => parts.push((path, Part::Text(compact(value.text())))),
        }
        parts.retain(|(_, part)| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(())
    }

    /// Starts a turn, unless the model continues its last turn.
    fn open(&mut self, role: Role) {
        let goes_on = self.turns.last().is_some_and(|turn| turn.role == role);
        if !(goes_on && role == Role::Assistant) {
            let parts = Vec::new();
            self.turns.push(Turn { role, parts });
        }
        self.answering = false;
    }

    /// Adds a part to the last turn.
    fn push(&mut self, path: Path, part: Part) {
        let empty = matches!(&part, Part::Text(text) if text.is_empty());
        if let Some(turn) = self.turns.last_mut()
            && !empty
        {
            turn.parts.push((path, part));
        }
    }

    /// Adds a step with one part. Consecutive results form one turn.
    fn push_step(&mut self, role: Role, path: Path, part: Part) {
        let same = self.turns.last().is_some_and(|turn| turn.role == role);
        let result = matches!(part, Part::ToolResult(_));
        let goes_on = role == Role::Assistant || (result && self.answering);
        if !(same && goes_on) {
            let parts = Vec::new();
            self.turns.push(Turn { role, parts });
        }
        self.answering = result;
        self.push(path, part);
        self.remove_empty_turn();
    }

    fn remove_empty_turn(&mut self) {
        if self.turns.last().is_some_and(|turn| turn.parts.is_empty()) {
            self.turns.pop();
        }
    }

    /// Reports a member that only this dialect has, unless it is empty.
    fn note(&mut self, cursor: &mut Cursor<'_>, path: Path, name: &str) -> Result<(), Failure> {
        note_unless_empty(cursor.value()?, &mut self.unknown, || {
            format!("{path}.{name}")
        });
        Ok(())
    }
}

fn required(text: &str, name: &str, path: Path) -> Result<(), Failure> {
    if text.is_empty() {
        let message = format!("`{path}.{name}` is required.");
        return Err(Failure::invalid(message).param(format!("{path}.{name}")));
    }
    Ok(())
}
