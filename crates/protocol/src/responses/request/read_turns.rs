//! Reads the input of a request: turns of a conversation, item by item.

use std::borrow::Cow;

use super::read_parts;
use crate::canon::{
    Opaque, Part, Path, Role, SignedAt, Thought, ToolCall, ToolResult, Turn, carrier, note_unknown,
    note_unless_empty,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::{Cursor, Shape, typed};

/// Collects the turns. Consecutive items of the assistant form one turn, and so do consecutive tool
/// results. Messages of other roles are turns of their own.
pub(super) struct History<'r> {
    turns: &'r mut Vec<Turn>,
    unknown: &'r mut Vec<String>,
    /// Whether the next item of the same role joins the last turn.
    open: bool,
    /// The last item, if it is the result of a tool that is not a function.
    foreign_result: Option<Path>,
}

/// An item, with the members of all known types.
#[derive(Default)]
struct Item<'a> {
    kind: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    call_id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    arguments: Option<Cow<'a, str>>,
    encrypted: Option<Cow<'a, str>>,
    summary: Vec<(Path, Part)>,
    content: Vec<(Path, Part)>,
    output: Vec<(Path, Part)>,
    /// Paths of members that are dropped.
    others: Vec<String>,
}

impl<'r> History<'r> {
    pub(super) fn new(turns: &'r mut Vec<Turn>, unknown: &'r mut Vec<String>) -> Self {
        Self {
            turns,
            unknown,
            open: false,
            foreign_result: None,
        }
    }

    pub(super) fn read(mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        if cursor.shape()? == Shape::String {
            let text = cursor.string()?.decode_lossy();
            self.push_part(Role::User, Path::item("input", 0), read_parts::text(text));
            return Ok(());
        }
        typed::array(cursor, "input", |cursor, at| self.item(cursor, at))?;
        if let Some(path) = self.foreign_result.take() {
            // The model must continue from this result. If the turn has no other part, the request is refused
            // later.
            self.join(Role::User).parts.push((path, Part::Foreign));
        }
        Ok(())
    }

    fn item(&mut self, cursor: &mut Cursor<'_>, at: usize) -> Result<(), Failure> {
        let path = Path::item("input", at);
        let item = read_item(cursor, path)?;
        if let Some(before) = self.foreign_result.take() {
            note_unknown(self.unknown, before.to_string());
        }
        let kind = item.kind.as_deref().unwrap_or("message");
        match kind {
            "message" => self.message(item, path),
            "function_call" => self.call(item, path),
            "function_call_output" => self.result(item, path),
            "reasoning" => {
                self.thought(item, path);
                Ok(())
            }
            "item_reference" => {
                let failure = Failure::stateful_not_supported("The service keeps no items.");
                Err(failure.param(path.to_string()))
            }
            kind if kind.ends_with("_output") || kind.ends_with("_response") => {
                self.foreign_result(path);
                Ok(())
            }
            _ => {
                // The call of a tool that is not a function.
                self.join(Role::Assistant).parts.push((path, Part::Foreign));
                Ok(())
            }
        }
    }

    fn message(&mut self, item: Item<'_>, path: Path) -> Result<(), Failure> {
        let role = match item.role.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            _ => {
                let message =
                    format!("`{path}.role` must be `user`, `assistant`, `system` or `developer`.");
                return Err(Failure::invalid(message).param(format!("{path}.role")));
            }
        };
        self.note_others(item.others);
        if role == Role::Assistant {
            self.join(role).parts.extend(item.content);
        } else {
            self.open = false;
            self.turns.push(Turn {
                role,
                parts: item.content,
            });
        }
        Ok(())
    }

    fn call(&mut self, item: Item<'_>, path: Path) -> Result<(), Failure> {
        let Some(name) = item.name else {
            let param = format!("{path}.name");
            return Err(Failure::invalid(format!("`{param}` is required.")).param(param));
        };
        let id = item.call_id.or(item.id).unwrap_or_default();
        let (id, carried) = carrier::decode(&id);
        self.note_others(item.others);
        let arguments = item.arguments.unwrap_or_default();
        let arguments = match arguments.trim() {
            "" => "{}".to_owned(),
            _ => arguments.into_owned(),
        };
        let turn = self.join(Role::Assistant);
        for thought in carried.thoughts {
            turn.parts.push((Path::default(), Part::Thought(thought)));
        }
        let (signed_at, opaque) = match carried.opaque {
            Some(opaque) => (None, Some(opaque)),
            None => take_signature(turn).unzip(),
        };
        let call = ToolCall {
            id: id.to_owned(),
            name: name.into_owned(),
            arguments,
            opaque,
            signed_at: signed_at.map_or(SignedAt::Id, |path| SignedAt::Item(path.index())),
        };
        turn.parts.push((path, Part::ToolCall(call)));
        Ok(())
    }

    fn result(&mut self, item: Item<'_>, path: Path) -> Result<(), Failure> {
        let Some(id) = item.call_id else {
            let param = format!("{path}.call_id");
            return Err(Failure::invalid(format!("`{param}` is required.")).param(param));
        };
        self.note_others(item.others);
        let result = ToolResult {
            call_id: carrier::decode(&id).0.to_owned(),
            name: item.name.map(Cow::into_owned),
            parts: item.output,
            is_error: false,
        };
        let turn = self.join(Role::User);
        turn.parts.push((path, Part::ToolResult(result)));
        Ok(())
    }

    /// Takes the result of a tool that is not a function. The result is dropped like its call. It does not
    /// become a turn of its own: that turn would be empty, and an empty user turn is refused.
    fn foreign_result(&mut self, path: Path) {
        self.foreign_result = Some(path);
        // The next item of the assistant belongs to another answer.
        self.open &= self
            .turns
            .last()
            .is_some_and(|turn| turn.role == Role::User);
    }

    fn thought(&mut self, item: Item<'_>, path: Path) {
        let texts = |parts: Vec<(Path, Part)>| {
            let texts = parts.into_iter().filter_map(|(_, part)| match part {
                Part::Text(text) => Some(text),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n\n")
        };
        let mut text = texts(item.summary);
        if text.is_empty() {
            text = texts(item.content);
        }
        let opaque = item.encrypted.filter(|text| !text.is_empty()).map(|text| {
            Opaque::unwrap(&text).unwrap_or_else(|| Opaque {
                origin: Dialect::Responses,
                model: "".into(),
                text: text.into(),
            })
        });
        self.note_others(item.others);
        let thought = Thought {
            text,
            opaque,
            redacted: false,
        };
        self.join(Role::Assistant)
            .parts
            .push((path, Part::Thought(thought)));
    }

    fn push_part(&mut self, role: Role, path: Path, part: Option<Part>) {
        self.turns.push(Turn {
            role,
            parts: part.map(|part| (path, part)).into_iter().collect(),
        });
    }

    /// The turn that an item of this role joins.
    fn join(&mut self, role: Role) -> &mut Turn {
        let goes_on = self.open && self.turns.last().is_some_and(|turn| turn.role == role);
        if !goes_on {
            self.turns.push(Turn {
                role,
                parts: Vec::new(),
            });
        }
        self.open = true;
        self.turns
            .last_mut()
            .expect("there is a turn to go on with")
    }

    fn note_others(&mut self, others: Vec<String>) {
        for other in others {
            note_unknown(self.unknown, other);
        }
    }
}

/// Takes the signature of the next call from the reasoning item before it. Calls have no member for
/// a signature.
fn take_signature(turn: &mut Turn) -> Option<(Path, Opaque)> {
    let (path, Part::Thought(thought)) = turn.parts.last()? else {
        return None;
    };
    let opaque = thought.opaque.as_ref()?;
    let of_call = matches!(opaque.origin, Dialect::Generate | Dialect::Chat);
    let taken = (of_call && thought.text.is_empty()).then(|| (*path, opaque.clone()))?;
    turn.parts.pop();
    Some(taken)
}

fn read_item<'a>(cursor: &mut Cursor<'a>, path: Path) -> Result<Item<'a>, Failure> {
    let mut item = Item::default();
    if cursor.shape()? != Shape::Object {
        let failure = Failure::invalid(format!("`{path}` must be an object."));
        return Err(failure.param(path.to_string()));
    }
    typed::object(cursor, "input[]", |cursor, name| {
        match name {
            "type" => item.kind = typed::string(cursor, "input[].type")?,
            "role" => item.role = typed::string(cursor, "input[].role")?,
            "id" => item.id = typed::string(cursor, "input[].id")?,
            "call_id" => item.call_id = typed::string(cursor, "input[].call_id")?,
            "name" => item.name = typed::string(cursor, "input[].name")?,
            "arguments" if cursor.shape()? == Shape::String => {
                item.arguments = typed::string(cursor, "input[].arguments")?;
            }
            "encrypted_content" => {
                item.encrypted = typed::string(cursor, "input[].encrypted_content")?;
            }
            "content" => {
                item.content = read_parts::read(cursor, path, "content", &mut item.others)?;
            }
            "summary" => {
                item.summary = read_parts::read(cursor, path, "summary", &mut item.others)?;
            }
            "output" => item.output = read_parts::read(cursor, path, "output", &mut item.others)?,
            // Members that clients copy from an answer.
            "status" | "created_by" | "agent" => drop(cursor.value()?),
            "phase" => {
                let phase = typed::string(cursor, "input[].phase")?;
                if phase.is_some_and(|phase| phase != "final_answer") {
                    item.others.push(format!("{path}.phase"));
                }
            }
            _ => note_unless_empty(cursor.value()?, &mut item.others, || {
                format!("{path}.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(item)
}
