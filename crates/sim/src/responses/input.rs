//! Reads `input`: messages, calls, outputs and reasoning. Checks their order.

use super::part::{self, Author};
use super::{id, reasoning};
use crate::catalog;
use crate::model::{PastCall, Turn};
use crate::openai::{Member, Refusal, type_name};
use crate::seed::Seed;
use http::StatusCode;
use serde_json::Value;
use std::collections::HashSet;

const TYPES: &[&str] = &[
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "item_reference",
];
const TAG_LENGTH: usize = 6;
/// The prefixes of the ids of calls with and without preceding encrypted reasoning. If there is such reasoning, a tag
/// of the encrypted content follows the prefix.
const THOUGHTFUL_CALL: &str = "call_SimR";
const THOUGHTLESS_CALL: &str = "call_SimN";

/// Creates the id of a new call. It encodes which encrypted reasoning came before the call, if any.
pub(super) fn call_id(content: Option<&str>, seed: &mut Seed) -> String {
    match content {
        Some(content) => format!("{THOUGHTFUL_CALL}{}{}", tag(content), seed.letters(13)),
        None => format!("{THOUGHTLESS_CALL}{}", seed.letters(19)),
    }
}

fn tag(content: &str) -> String {
    Seed::of(&[content.as_bytes()]).letters(TAG_LENGTH)
}

/// The rules that the input is checked with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) model: &'a str,
    pub(super) strict: bool,
    /// Whether the client must send calls back with the reasoning before them, even if the calls have no item ids.
    pub(super) demands_reasoning: bool,
}

#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) system: Vec<String>,
    pub(super) turns: Vec<Turn>,
    /// The text of all messages and tool outputs. JSON mode requires that it contains the word JSON.
    pub(super) all_text: String,
}

pub(super) fn read(body: &Member<'_>, rules: Rules<'_>) -> Result<Input, Refusal> {
    let items = match body.required("input")? {
        Value::String(text) => {
            return Ok(Input {
                turns: vec![Turn::User {
                    text: text.clone(),
                    media: Vec::new(),
                }],
                all_text: text.clone(),
                ..Input::default()
            });
        }
        Value::Array(items) => items,
        other => {
            return Err(Refusal::invalid(format!(
                "Invalid type for 'input': expected one of an array of input items or a string, \
                 but got {} instead.",
                type_name(other)
            ))
            .param("input")
            .code("invalid_type"));
        }
    };
    let mut reader = Reader {
        rules,
        input: Input::default(),
        open_calls: Vec::new(),
        reasoning_ids: HashSet::new(),
        tags: HashSet::new(),
        waiting: None,
    };
    for (index, item) in items.iter().enumerate() {
        reader.item(&Member::object(item, format!("input[{index}]"))?)?;
    }
    reader.end()
}

struct Reader<'a> {
    rules: Rules<'a>,
    input: Input,
    /// The calls that have no output yet.
    open_calls: Vec<String>,
    /// The ids and content tags of the reasoning items read so far.
    reasoning_ids: HashSet<String>,
    tags: HashSet<String>,
    /// The id of a reasoning item that no other item has followed yet.
    waiting: Option<String>,
}

impl Reader<'_> {
    fn item(&mut self, item: &Member<'_>) -> Result<(), Refusal> {
        let kind = match item.get("type") {
            None if item.get("role").is_some() => "message",
            None => {
                item.required("type")?;
                return Ok(());
            }
            Some(_) => item.one_of("type", TYPES)?.unwrap_or_default(),
        };
        self.check_members(item, kind)?;
        if kind != "reasoning" {
            self.waiting = None;
        }
        match kind {
            "message" => self.message(item),
            "function_call" => self.call(item, "fc", "arguments"),
            "custom_tool_call" => self.call(item, "ctc", "input"),
            "function_call_output" | "custom_tool_call_output" => self.output(item),
            "reasoning" => self.reasoning(item),
            _ => {
                let id = item.required_text("id")?;
                Err(Refusal {
                    status: StatusCode::NOT_FOUND,
                    ..Refusal::invalid(format!("Item with id '{id}' not found.")).param("input")
                })
            }
        }
    }

    fn check_members(&self, item: &Member<'_>, kind: &str) -> Result<(), Refusal> {
        if !self.rules.strict {
            return Ok(());
        }
        item.refuse_unknown(match kind {
            "message" => &["type", "role", "content", "id", "status", "phase"],
            "function_call" => &[
                "type",
                "id",
                "call_id",
                "name",
                "arguments",
                "status",
                "namespace",
                "async",
                "caller",
            ],
            "custom_tool_call" => &["type", "id", "call_id", "name", "input", "status", "caller"],
            "reasoning" => &[
                "type",
                "id",
                "summary",
                "content",
                "encrypted_content",
                "status",
            ],
            "item_reference" => &["type", "id"],
            _ => &[
                "type", "id", "call_id", "output", "status", "name", "caller",
            ],
        })
    }

    fn message(&mut self, item: &Member<'_>) -> Result<(), Refusal> {
        item.required("role")?;
        let role = item.one_of("role", &["assistant", "system", "developer", "user"])?;
        item.one_of("status", &["in_progress", "completed", "incomplete"])?;
        let speaker = match role {
            Some("user") => Author::User,
            Some("assistant") => Author::Assistant,
            _ => Author::System,
        };
        let contents = part::read(item, "content", speaker)?;
        self.input.all_text.push_str(&contents.text);
        match speaker {
            Author::User => self.input.turns.push(Turn::User {
                text: contents.text,
                media: contents.media,
            }),
            Author::Assistant => {
                self.check_reasoning(item, "message", "msg")?;
                self.input.turns.push(Turn::Assistant {
                    text: contents.text,
                    calls: Vec::new(),
                });
            }
            Author::System | Author::Tool => self.input.system.push(contents.text),
        }
        Ok(())
    }

    fn call(&mut self, item: &Member<'_>, prefix: &str, arguments: &str) -> Result<(), Refusal> {
        let call = PastCall {
            id: item.required_text("call_id")?.to_owned(),
            name: item.required_text("name")?.to_owned(),
            arguments: item.required_text(arguments)?.to_owned(),
        };
        self.check_reasoning(item, "function_call", prefix)?;
        if self.rules.demands_reasoning
            && let Some(bound) = call.id.strip_prefix(THOUGHTFUL_CALL)
            && !bound
                .get(..TAG_LENGTH)
                .is_some_and(|tag| self.tags.contains(tag))
        {
            return Err(Refusal::invalid(format!(
                "The function call with call_id '{}' was provided without its required \
                 'reasoning' item.",
                call.id
            ))
            .param("input"));
        }
        self.open_calls.push(call.id.clone());
        // A call continues the previous turn if that turn is the assistant's.
        if let Some(Turn::Assistant { calls, .. }) = self.input.turns.last_mut() {
            calls.push(call);
        } else {
            self.input.turns.push(Turn::Assistant {
                text: String::new(),
                calls: vec![call],
            });
        }
        Ok(())
    }

    fn output(&mut self, item: &Member<'_>) -> Result<(), Refusal> {
        let call_id = item.required_text("call_id")?;
        let Some(place) = self.open_calls.iter().position(|open| open == call_id) else {
            return Err(Refusal::invalid(format!(
                "No tool call found for function call output with call_id {call_id}."
            ))
            .param("input"));
        };
        self.open_calls.remove(place);
        let contents = part::read(item, "output", Author::Tool)?;
        self.input.all_text.push_str(&contents.text);
        self.input.turns.push(Turn::Result {
            call_id: call_id.to_owned(),
            text: contents.text,
            media: contents.media,
            failed: false,
        });
        Ok(())
    }

    fn reasoning(&mut self, item: &Member<'_>) -> Result<(), Refusal> {
        let id = item.text("id")?;
        item.required("summary")?;
        item.list("summary")?;
        item.list("content")?;
        let Some(content) = item.text("encrypted_content")? else {
            // Visible reasoning can be sent back in plain text.
            if catalog::shows_reasoning(self.rules.model) && item.get("content").is_some() {
                self.reasoning_ids.extend(id.map(str::to_owned));
                return Ok(());
            }
            return Err(match id {
                Some(id) => reasoning::not_stored(id),
                None => Refusal::invalid("Missing required parameter: 'encrypted_content'.")
                    .param(item.path("encrypted_content"))
                    .code("missing_required_parameter"),
            });
        };
        let made_for = reasoning::check(self.rules.model, id, content)?;
        self.waiting = Some(made_for.clone());
        self.reasoning_ids.insert(made_for);
        self.tags.insert(tag(content));
        Ok(())
    }

    /// Checks that an item with an id comes with the reasoning that the vendor sent before it.
    fn check_reasoning(&self, item: &Member<'_>, kind: &str, prefix: &str) -> Result<(), Refusal> {
        let Some(own) = item.text("id")? else {
            return Ok(());
        };
        match id::reasoning_of(prefix, own) {
            Some(needed) if !self.reasoning_ids.contains(&needed) => {
                Err(Refusal::invalid(format!(
                    "Item '{own}' of type '{kind}' was provided without its required 'reasoning' \
                     item: '{needed}'."
                ))
                .param("input"))
            }
            _ => Ok(()),
        }
    }

    fn end(self) -> Result<Input, Refusal> {
        if let Some(call) = self.open_calls.first() {
            return Err(Refusal::invalid(format!(
                "No tool output found for function call {call}."
            ))
            .param("input"));
        }
        if let Some(id) = self.waiting {
            return Err(Refusal::invalid(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ))
            .param("input"));
        }
        Ok(self.input)
    }
}
