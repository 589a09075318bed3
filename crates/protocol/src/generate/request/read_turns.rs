//! Reads the turns of a Generate Content request.
//!
//! A client that streamed an answer sends it back as one `content` object per chunk. So consecutive objects
//! of the model are merged and their texts are concatenated. Calls without an id get a generated id. Results
//! are matched to calls by id, or by name and order.

use std::collections::{HashMap, VecDeque};

use super::read_parts::{self, Call, FunctionResult, PartData, PartExtras, Parts};
use crate::canon::{
    Opaque, Part, Path, Role, SignedAt, Thought, ToolCall, ToolResult, Turn, note_unless_empty,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate::call_id::call_id;
use crate::json::members::camel;
use crate::json::typed;
use crate::json::{Cursor, Shape};

#[derive(Debug, Default)]
pub(in crate::generate) struct Contents {
    pub(in crate::generate) turns: Vec<Turn>,
    pub(in crate::generate) parts: Parts,
    /// The number of calls in all turns, which makes generated ids distinct.
    calls: usize,
    open: UnansweredCalls,
}

/// Calls without a result so far. Lookups take constant time.
#[derive(Debug, Default)]
struct UnansweredCalls {
    /// The name of each call, by its id.
    names: HashMap<String, String>,
    /// The ids of the calls with each name, in order. Some of these calls may have been answered.
    ids: HashMap<String, VecDeque<String>>,
}

impl UnansweredCalls {
    fn push(&mut self, id: &str, name: &str) {
        self.names.insert(id.to_owned(), name.to_owned());
        self.ids
            .entry(name.to_owned())
            .or_default()
            .push_back(id.to_owned());
    }

    /// Removes the call with this id, or else the first call with this name.
    fn take(&mut self, id: Option<&str>, name: &str) -> Option<(String, String)> {
        if let Some(call) = id.and_then(|id| self.names.remove_entry(id)) {
            return Some(call);
        }
        let ids = self.ids.get_mut(name)?;
        while let Some(id) = ids.pop_front() {
            if let Some(call) = self.names.remove_entry(&id) {
                return Some(call);
            }
        }
        None
    }
}

impl Contents {
    pub(in crate::generate) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        typed::array(cursor, "contents", |cursor, number| {
            self.content(cursor, Path::item("contents", number))
        })
    }

    pub(in crate::generate) fn has_pictures(&self) -> bool {
        let mut parts = self.turns.iter().flat_map(|turn| &turn.parts);
        parts.any(|(_, part)| match part {
            Part::Image(_) => true,
            Part::ToolResult(result) => {
                let mut parts = result.parts.iter();
                parts.any(|(_, part)| matches!(part, Part::Image(_)))
            }
            _ => false,
        })
    }

    /// Reads `systemInstruction`: a `content` object, or a bare string, which some clients send.
    pub(in crate::generate) fn read_system(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Failure> {
        const NAME: &str = "systemInstruction";
        let mut parts = Vec::new();
        let path = |number| Path::item("systemInstruction.parts", number);
        if cursor.shape()? == Shape::String {
            let text = typed::string(cursor, NAME)?.unwrap_or_default();
            parts.push((path(0), Part::Text(text.into_owned())));
        } else {
            typed::object::<Failure>(cursor, NAME, |cursor, name| {
                if name != "parts" {
                    let value = cursor.value()?;
                    // The role is ignored, because the content is always the system prompt.
                    if name != "role" {
                        note_unless_empty(value, &mut self.parts.unknown, || {
                            format!("{NAME}.{}", camel(name))
                        });
                    }
                    return Ok(());
                }
                read_parts::each(cursor, |cursor, number| {
                    let part = match self.parts.read(cursor, path(number))? {
                        Some((PartData::Text(text), extras)) => {
                            self.parts.note_unused_extras(path(number), &extras);
                            Part::Text(text)
                        }
                        Some(_) => Part::Foreign,
                        None => return Ok(()),
                    };
                    parts.push((path(number), part));
                    Ok(())
                })
            })?;
        }
        parts.retain(|(_, part)| !matches!(part, Part::Text(text) if text.is_empty()));
        if !parts.is_empty() {
            let role = Role::System;
            self.turns.insert(0, Turn { role, parts });
        }
        Ok(())
    }

    fn content(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<(), Failure> {
        let mut role = Role::User;
        let mut parts = Vec::new();
        typed::object::<Failure>(cursor, "contents", |cursor, member| {
            match member {
                "role" => role = read_role(cursor, path)?,
                "parts" => read_parts::each(cursor, |cursor, number| {
                    let path = path.inner("parts", number);
                    parts.extend(self.parts.read(cursor, path)?.map(|part| (path, part)));
                    Ok(())
                })?,
                _ => {
                    note_unless_empty(cursor.value()?, &mut self.parts.unknown, || {
                        format!("{path}.{}", camel(member))
                    });
                }
            }
            Ok(())
        })?;
        let goes_on = self.turns.last().is_some_and(|turn| turn.role == role);
        if role == Role::Assistant && !goes_on {
            self.open = UnansweredCalls::default();
        }
        if role != Role::Assistant || !goes_on {
            let parts = Vec::with_capacity(parts.len());
            self.turns.push(Turn { role, parts });
        }
        for (path, (data, signature)) in parts {
            self.push(path, data, signature)?;
        }
        if self.turns.last().is_some_and(|turn| turn.parts.is_empty()) {
            self.turns.pop();
        }
        Ok(())
    }

    /// Adds a part to the last turn.
    fn push(&mut self, path: Path, data: PartData, mut extras: PartExtras) -> Result<(), Failure> {
        let part = match data {
            PartData::Text(text) if extras.thought => {
                let opaque = extras.opaque.take();
                self.parts.note_unused_extras(path, &extras);
                self.push_thought(path, text, opaque);
                return Ok(());
            }
            PartData::Text(text) => {
                extras.opaque = self.push_foreign_thought(path, extras.opaque);
                self.parts.note_unused_extras(path, &extras);
                if self.append_to_last_text(&text) || text.is_empty() {
                    return Ok(());
                }
                Part::Text(text)
            }
            PartData::Media(media) => self.parts.media(media, path, extras),
            PartData::Call(call) => {
                let opaque = self.push_foreign_thought(path, extras.opaque.take());
                self.parts.note_unused_extras(path, &extras);
                self.pair_call(call, opaque)
            }
            PartData::Result(answer) => self.pair_answer(answer, path)?,
            PartData::Native => Part::Foreign,
        };
        if let Some(turn) = self.turns.last_mut() {
            turn.parts.push((path, part));
        }
        Ok(())
    }

    /// Appends a text of the model to the text before it. Returns `false` if there is no text before it.
    fn append_to_last_text(&mut self, text: &str) -> bool {
        let Some(turn) = self.turns.last_mut() else {
            return false;
        };
        match turn.parts.last_mut() {
            Some((_, Part::Text(before))) if turn.role == Role::Assistant => {
                before.push_str(text);
                true
            }
            _ => false,
        }
    }

    /// Adds a thought, or continues the one before it. A signature ends a thought.
    fn push_thought(&mut self, path: Path, text: String, opaque: Option<Opaque>) {
        let Some(turn) = self.turns.last_mut() else {
            return;
        };
        if let Some((_, Part::Thought(before))) = turn.parts.last_mut()
            && before.opaque.is_none()
        {
            before.text.push_str(&text);
            before.opaque = opaque;
        } else if !text.is_empty() || opaque.is_some() {
            let thought = Thought {
                text,
                opaque,
                redacted: false,
            };
            turn.parts.push((path, Part::Thought(thought)));
        }
    }

    /// Handles the signature of a call or a text. If the signature belongs to a thought of another dialect,
    /// restores the thought. Otherwise returns the signature.
    fn push_foreign_thought(&mut self, path: Path, opaque: Option<Opaque>) -> Option<Opaque> {
        let opaque = opaque?;
        match opaque.origin {
            Dialect::Generate | Dialect::Chat => Some(opaque),
            Dialect::Responses | Dialect::Messages | Dialect::Interactions => {
                self.push_thought(path, String::new(), Some(opaque));
                None
            }
        }
    }

    fn pair_call(&mut self, call: Call, opaque: Option<Opaque>) -> Part {
        self.calls += 1;
        let id = call.id.unwrap_or_else(|| {
            let turns = self.turns.len();
            call_id(&format!("{turns}"), self.calls, &call.name)
        });
        self.open.push(&id, &call.name);
        Part::ToolCall(ToolCall {
            id,
            name: call.name,
            arguments: call.arguments.unwrap_or_else(|| "{}".to_owned()),
            opaque,
            signed_at: SignedAt::Call,
        })
    }

    /// Finds the call of a result by its id. Without a match, takes the first unanswered call with the same
    /// name.
    fn pair_answer(&mut self, answer: FunctionResult, path: Path) -> Result<Part, Failure> {
        let Some((call_id, name)) = self.open.take(answer.id.as_deref(), &answer.name) else {
            let message = format!("The function response `{path}` answers no function call.");
            return Err(Failure::invalid(message).param(path.to_string()));
        };
        Ok(Part::ToolResult(ToolResult {
            call_id,
            name: Some(name),
            parts: answer.parts,
            is_error: answer.is_error,
        }))
    }
}

fn read_role(cursor: &mut Cursor<'_>, path: Path) -> Result<Role, Failure> {
    let role = typed::string(cursor, "role")?.unwrap_or_default();
    match role.as_ref() {
        "" | "user" | "function" | "tool" => Ok(Role::User),
        "model" | "assistant" => Ok(Role::Assistant),
        "system" => Ok(Role::System),
        _ => {
            let message = format!("`{path}.role` must be `user` or `model`.");
            Err(Failure::invalid(message).param(format!("{path}.role")))
        }
    }
}
