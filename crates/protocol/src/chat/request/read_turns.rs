//! Reads the messages of a chat request as turns of the common form.

use std::collections::{HashMap, HashSet};

use super::read_parts::content;
use crate::canon::{
    Opaque, Part, Path, Request, Role, SignedAt, ToolCall, ToolResult, Turn, carrier, note_unknown,
    note_unless_empty,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::typed;
use crate::json::{Cursor, Shape};
use crate::shared::request_member::text;

/// Reads messages into the turns of a request.
pub(super) struct History<'r> {
    turns: &'r mut Vec<Turn>,
    unknown: &'r mut Vec<String>,
    /// The names of called tools, by call id.
    names: HashMap<String, String>,
    /// Ids of calls that only chat has. Their results are foreign too.
    foreign: HashSet<String>,
    /// The generated id of the last call in the older form, which has no ids. Kept until the result arrives.
    function_call: Option<String>,
    /// Whether the last turn consists of tool results, so that the next result joins it.
    answering: bool,
}

/// The members of a message, which may arrive in any order.
#[derive(Default)]
struct Message {
    role: Option<String>,
    parts: Vec<(Path, Part)>,
    refusal: Option<String>,
    /// The path of the member that holds reasoning without a signature.
    thought: Option<String>,
    calls: Vec<(Path, ToolCallFields)>,
    function_call: Option<Function>,
    tool_call_id: Option<String>,
    name: Option<String>,
}

#[derive(Default)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Default)]
struct ToolCallFields {
    id: Option<String>,
    function: Function,
    signature: Option<String>,
    /// Whether the call is not a function call.
    foreign: bool,
}

impl<'r> History<'r> {
    pub(super) fn new(request: &'r mut Request) -> Self {
        Self {
            turns: &mut request.turns,
            unknown: &mut request.unknown,
            names: HashMap::new(),
            foreign: HashSet::new(),
            function_call: None,
            answering: false,
        }
    }

    pub(super) fn read(mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        typed::array(cursor, "messages", |cursor, at| {
            let path = Path::item("messages", at);
            let message = self.message(cursor, path)?;
            self.turn(message, at, path)
        })
    }

    fn message(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<Message, Failure> {
        let mut message = Message::default();
        let unknown = &mut *self.unknown;
        typed::object(cursor, "messages[]", |cursor, name| {
            match name {
                "role" => message.role = text(cursor, "messages[].role")?,
                "content" => message.parts = content(cursor, path, unknown)?,
                "refusal" => message.refusal = text(cursor, "messages[].refusal")?,
                "reasoning_content" | "reasoning" if cursor.shape()? == Shape::String => {
                    if !cursor.string()?.is_empty() {
                        message.thought = Some(format!("{path}.{name}"));
                    }
                }
                "tool_calls" => typed::array(cursor, "messages[].tool_calls", |cursor, at| {
                    let path = path.inner("tool_calls", at);
                    message
                        .calls
                        .push((path, read_tool_call(cursor, path, unknown)?));
                    Ok::<(), Failure>(())
                })?,
                "function_call" => {
                    message.function_call = function_call(cursor, path, name, unknown)?;
                }
                "tool_call_id" => message.tool_call_id = text(cursor, "messages[].tool_call_id")?,
                "name" => message.name = text(cursor, "messages[].name")?,
                _ => note_unless_empty(cursor.value()?, unknown, || format!("{path}.{name}")),
            }
            Ok::<(), Failure>(())
        })?;
        Ok(message)
    }

    fn turn(&mut self, message: Message, at: usize, path: Path) -> Result<(), Failure> {
        let role = match message.role.as_deref() {
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => return self.tool_result(message, path),
            Some("function") => return self.function_result(message, path),
            other => {
                let failure = match other {
                    Some(role) => Failure::invalid(format!("The role `{role}` is not known.")),
                    None => Failure::invalid("A message needs a `role`."),
                };
                return Err(failure.param(format!("{path}.role")));
            }
        };
        if message.name.as_deref().is_some_and(|name| !name.is_empty()) {
            note_unknown(self.unknown, format!("{path}.name"));
        }
        self.answering = false;
        let parts = match role {
            Role::Assistant => self.assistant(message, at, path),
            _ => message.parts,
        };
        self.turns.push(Turn { role, parts });
        Ok(())
    }

    /// Reads an assistant message into parts. Thoughts that the id of the first call carries come
    /// before the text, because the model thought them first. Thoughts of a later call come before
    /// that call.
    fn assistant(&mut self, message: Message, at: usize, path: Path) -> Vec<(Path, Part)> {
        let mut parts = message.parts;
        let refusal = message.refusal.filter(|refusal| !refusal.is_empty());
        parts.extend(refusal.map(|refusal| (path, Part::Refusal(refusal))));
        let mut has_carried_thoughts = false;
        let mut first = true;
        for (number, (path, called)) in message.calls.into_iter().enumerate() {
            if called.foreign {
                self.foreign.extend(called.id);
                parts.push((path, Part::Foreign));
                continue;
            }
            let id = called.id.unwrap_or_else(|| format!("call_{at}_{number}"));
            let (id, carried) = carrier::decode(&id);
            has_carried_thoughts |= !carried.thoughts.is_empty();
            let before = if std::mem::take(&mut first) {
                0
            } else {
                parts.len()
            };
            let thoughts = carried.thoughts.into_iter().map(Part::Thought);
            parts.splice(before..before, thoughts.map(|part| (Path::default(), part)));
            // The id carries the signature too, because few clients keep the extension.
            let signed_at = match called.signature {
                Some(_) => SignedAt::Call,
                None => SignedAt::Id,
            };
            let call = ToolCall {
                id: id.to_owned(),
                name: called.function.name.unwrap_or_default(),
                arguments: arguments(called.function.arguments),
                opaque: carried.opaque.or_else(|| called.signature.map(signature)),
                signed_at,
            };
            self.names.insert(call.id.clone(), call.name.clone());
            parts.push((path, Part::ToolCall(call)));
        }
        if let Some(function) = message.function_call {
            let call = ToolCall {
                id: format!("call_{at}"),
                name: function.name.unwrap_or_default(),
                arguments: arguments(function.arguments),
                opaque: None,
                signed_at: SignedAt::default(),
            };
            self.function_call = Some(call.id.clone());
            self.names.insert(call.id.clone(), call.name.clone());
            parts.push((path, Part::ToolCall(call)));
        }
        // No model accepts reasoning without a signature. If a call id carries the same reasoning,
        // nothing is lost.
        if let Some(thought) = message.thought.filter(|_| !has_carried_thoughts) {
            note_unknown(self.unknown, thought);
        }
        parts
    }

    fn tool_result(&mut self, message: Message, path: Path) -> Result<(), Failure> {
        let Some(id) = message.tool_call_id.as_deref() else {
            let failure = Failure::invalid("A tool message needs a `tool_call_id`.");
            return Err(failure.param(format!("{path}.tool_call_id")));
        };
        if self.foreign.contains(id) {
            note_unknown(self.unknown, path.to_string());
            return Ok(());
        }
        let (id, _) = carrier::decode(id);
        let is_known = |name: &String| name.is_empty() || self.names.get(id) == Some(name);
        if message.name.as_ref().is_some_and(|name| !is_known(name)) {
            note_unknown(self.unknown, format!("{path}.name"));
        }
        self.result(id.to_owned(), message.parts, path);
        Ok(())
    }

    /// Reads a result in the older form, which names the function and not the call.
    fn function_result(&mut self, message: Message, path: Path) -> Result<(), Failure> {
        let Some(id) = self.function_call.take() else {
            let failure = Failure::invalid("A function message must follow a `function_call`.");
            return Err(failure.param(path.to_string()));
        };
        self.result(id, message.parts, path);
        Ok(())
    }

    fn result(&mut self, call_id: String, parts: Vec<(Path, Part)>, path: Path) {
        let mut kept = Vec::with_capacity(parts.len());
        for (path, part) in parts {
            match part {
                Part::Text(_) | Part::Image(_) => kept.push((path, part)),
                _ => note_unknown(self.unknown, path.to_string()),
            }
        }
        let result = ToolResult {
            name: self.names.get(&call_id).cloned(),
            call_id,
            parts: kept,
            is_error: false,
        };
        self.answer(path, result);
    }

    /// Adds a result. Consecutive results form one turn.
    fn answer(&mut self, path: Path, result: ToolResult) {
        let part = Part::ToolResult(result);
        match self.turns.last_mut() {
            Some(turn) if self.answering => turn.parts.push((path, part)),
            _ => self.turns.push(Turn {
                role: Role::User,
                parts: vec![(path, part)],
            }),
        }
        self.answering = true;
    }
}

/// A signature that the client sent back: wrapped by the gateway, or made by a chat upstream.
fn signature(text: String) -> Opaque {
    Opaque::unwrap(&text).unwrap_or_else(|| Opaque {
        origin: Dialect::Chat,
        model: "".into(),
        text: text.into(),
    })
}

fn arguments(text: Option<String>) -> String {
    text.filter(|text| !text.trim_ascii().is_empty())
        .unwrap_or_else(|| "{}".to_owned())
}

fn read_tool_call(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<ToolCallFields, Failure> {
    let mut called = ToolCallFields::default();
    let mut others = Vec::new();
    typed::object(cursor, "messages[].tool_calls[]", |cursor, name| {
        match name {
            "id" => {
                let id = text(cursor, "messages[].tool_calls[].id")?;
                called.id = id.filter(|id| !id.is_empty());
            }
            "type" => {
                let kind = typed::string(cursor, "messages[].tool_calls[].type")?;
                called.foreign = kind.is_some_and(|kind| kind != "function");
            }
            "function" => {
                let function = function_call(cursor, path, name, &mut others)?;
                called.function = function.unwrap_or_default();
            }
            "extra_content" => called.signature = extra_signature(cursor, path, &mut others)?,
            // The position in the list. Clients that assemble streams leave it in the call.
            "index" => drop(cursor.value()?),
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    // If the whole call is dropped, it is reported once, without its members.
    for name in others.into_iter().filter(|_| !called.foreign) {
        note_unknown(unknown, name);
    }
    Ok(called)
}

fn function_call(
    cursor: &mut Cursor<'_>,
    path: Path,
    inside: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<Function>, Failure> {
    if typed::null(cursor)? {
        return Ok(None);
    }
    let mut called = Function::default();
    typed::object(
        cursor,
        "messages[].tool_calls[].function",
        |cursor, name| {
            match name {
                "name" => called.name = text(cursor, "messages[].tool_calls[].function.name")?,
                // Some clients send an object instead of a string.
                "arguments" if cursor.shape()? == Shape::Object => {
                    called.arguments = Some(typed::compact(cursor.value()?.text()));
                }
                "arguments" => {
                    called.arguments = text(cursor, "messages[].tool_calls[].function.arguments")?;
                }
                _ => note_unless_empty(cursor.value()?, unknown, || {
                    format!("{path}.{inside}.{name}")
                }),
            }
            Ok::<(), Failure>(())
        },
    )?;
    Ok(Some(called))
}

fn extra_signature(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    const NAME: &str = "messages[].tool_calls[].extra_content";
    let [extra, vendor, member] = super::EXTRA;
    let mut signature = None;
    typed::object(cursor, NAME, |cursor, name| {
        if name != vendor {
            note_unless_empty(cursor.value()?, unknown, || {
                format!("{path}.{extra}.{name}")
            });
            return Ok(());
        }
        typed::object(cursor, NAME, |cursor, name| {
            if name == member {
                signature = text(cursor, NAME)?;
            } else {
                note_unless_empty(cursor.value()?, unknown, || {
                    format!("{path}.{extra}.{vendor}.{name}")
                });
            }
            Ok::<(), Failure>(())
        })
    })?;
    Ok(signature.filter(|signature| !signature.is_empty()))
}
