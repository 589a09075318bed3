//! Reads `messages`: roles and blocks, and the order that the vendor requires of tool calls, their
//! results and the thoughts before them.

use super::block::{self, Block};
use super::family::Family;
use super::member::Member;
use super::refusal::Refusal;
use super::thinking::{Mode, Thinking};
use crate::model::{PastCall, Turn};
use serde_json::Value;
use std::collections::HashSet;

/// The rules that the history is checked with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) model: &'a str,
    pub(super) family: Family,
    pub(super) thinking: Thinking,
    pub(super) has_tools: bool,
    /// Whether clients that use thinking must send every call of the running tool loop back with the thought before it.
    /// Otherwise only the latest message is checked, and only if it contains thoughts.
    pub(super) demands_thoughts: bool,
}

#[derive(Debug, Default)]
pub(super) struct History {
    /// The texts of messages with the role `system`.
    pub(super) system: Vec<String>,
    pub(super) turns: Vec<Turn>,
}

/// One or more consecutive messages of the same role, which the vendor treats as one message.
#[derive(Debug)]
struct Message {
    /// The index of the first merged message.
    index: usize,
    role: Role,
    blocks: Vec<LocatedBlock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

/// A block and its path for error messages.
#[derive(Debug)]
struct LocatedBlock {
    path: String,
    block: Block,
}

pub(super) fn read(body: &Member<'_>, rules: Rules<'_>) -> Result<History, Refusal> {
    body.required("messages")?;
    let list = body.list("messages")?.unwrap_or_default();
    if list.is_empty() {
        return Err(Refusal::at("messages", "at least one message is required"));
    }
    let mut history = History::default();
    let mut messages: Vec<Message> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let message = Member::object(value, format!("messages.{index}"))?;
        message.refuse_unknown(&["role", "content"])?;
        message.required("role")?;
        let role = match message.one_of("role", &["user", "assistant", "system"])? {
            Some("system") => {
                check_system(&messages, rules.family)?;
                history.system.push(system_text(&message)?);
                continue;
            }
            Some("assistant") => Role::Assistant,
            _ => Role::User,
        };
        let is_final = index + 1 == list.len();
        let blocks = read_blocks(&message, role, rules, is_final)?;
        match messages.last_mut() {
            Some(before) if before.role == role => before.blocks.extend(blocks),
            _ => messages.push(Message {
                index,
                role,
                blocks,
            }),
        }
    }
    check_ends(&messages, rules)?;
    check_pairs(&messages, rules)?;
    check_thoughts(&messages, rules)?;
    history.turns = messages.into_iter().flat_map(Message::turns).collect();
    Ok(history)
}

fn check_system(before: &[Message], family: Family) -> Result<(), Refusal> {
    if !family.takes_system_in_messages() {
        return Err(Refusal::at(
            "messages",
            "role 'system' is not supported on this model",
        ));
    }
    if before.last().is_none_or(|last| last.role != Role::User) {
        return Err(Refusal::at(
            "messages",
            "a message with role 'system' must follow a user turn",
        ));
    }
    Ok(())
}

fn system_text(message: &Member<'_>) -> Result<String, Refusal> {
    match message.required("content")? {
        Value::String(text) => Ok(text.clone()),
        _ => block::texts(message, "content"),
    }
}

fn read_blocks(
    message: &Member<'_>,
    role: Role,
    rules: Rules<'_>,
    is_final: bool,
) -> Result<Vec<LocatedBlock>, Refusal> {
    let path = message.path("content");
    let blocks = match message.required("content")? {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![LocatedBlock {
            path: path.clone(),
            block: Block::Text(text.clone()),
        }],
        Value::Array(values) => {
            let mut blocks = Vec::new();
            for (index, value) in values.iter().enumerate() {
                let path = format!("{path}.{index}");
                let block = match role {
                    Role::User => block::of_user(value, &path)?,
                    Role::Assistant => block::of_assistant(value, &path, rules.model)?,
                };
                blocks.push(LocatedBlock { path, block });
            }
            blocks
        }
        _ => return Err(Refusal::at(&path, "Input should be a valid array")),
    };
    if blocks.is_empty() && !(is_final && role == Role::Assistant) {
        return Err(Refusal::at(
            message.own_path(),
            "all messages must have non-empty content except for the optional final assistant \
             message",
        ));
    }
    Ok(blocks)
}

/// Checks the first and the last message of a conversation.
fn check_ends(messages: &[Message], rules: Rules<'_>) -> Result<(), Refusal> {
    match messages.first() {
        Some(first) if first.role == Role::User => {}
        _ => {
            return Err(Refusal::at(
                "messages",
                "first message must use the \"user\" role",
            ));
        }
    }
    let Some(last) = messages.last().filter(|last| last.role == Role::Assistant) else {
        return Ok(());
    };
    if !rules.family.takes_prefill() || rules.thinking.is_on() {
        return Err(Refusal::invalid(
            "This model does not support assistant message prefill. The conversation must end \
             with a user message.",
        ));
    }
    match last.blocks.last() {
        Some(LocatedBlock {
            block: Block::Text(text),
            ..
        }) if text.ends_with(char::is_whitespace) => Err(Refusal::at(
            "messages",
            "final assistant content cannot end with trailing whitespace",
        )),
        _ => Ok(()),
    }
}

/// Checks that every call has its result at the beginning of the next message, and that every result has its call in
/// the previous message.
fn check_pairs(messages: &[Message], rules: Rules<'_>) -> Result<(), Refusal> {
    let mut known: HashSet<&str> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| messages.get(before));
        check_results(message, before)?;
        for call in message.calls() {
            if !known.insert(&call.id) {
                return Err(Refusal::at("messages", "`tool_use` ids must be unique"));
            }
        }
        let answered = messages.get(at + 1).map(leading_results);
        let missing: Vec<_> = message
            .calls()
            .map(|call| call.id.as_str())
            .filter(|id| !answered.as_ref().is_some_and(|ids| ids.contains(id)))
            .collect();
        if !missing.is_empty() {
            return Err(Refusal::at(
                &format!("messages.{}", message.index),
                format!(
                    "`tool_use` ids were found without `tool_result` blocks immediately after: {}. \
                     Each `tool_use` block must have a corresponding `tool_result` block in the \
                     next message.",
                    missing.join(", ")
                ),
            ));
        }
    }
    if !known.is_empty() && !rules.has_tools {
        return Err(Refusal::invalid(
            "Requests which include `tool_use` or `tool_result` blocks must define tools",
        ));
    }
    Ok(())
}

fn check_results(message: &Message, before: Option<&Message>) -> Result<(), Refusal> {
    let mut seen: Vec<&str> = Vec::new();
    for placed in &message.blocks {
        let Block::Result(result) = &placed.block else {
            continue;
        };
        let id = result.call_id.as_str();
        let called = before.is_some_and(|before| before.calls().any(|call| call.id == id));
        if !called {
            return Err(Refusal::at(
                &placed.path,
                format!(
                    "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the \
                     previous message."
                ),
            ));
        }
        if seen.contains(&id) {
            return Err(Refusal::at(
                &placed.path,
                format!(
                    "each tool_use must have a single result. Found multiple `tool_result` blocks \
                     with id: {id}"
                ),
            ));
        }
        seen.push(id);
    }
    Ok(())
}

/// The ids of the results at the beginning of a message, before any other block.
fn leading_results(message: &Message) -> Vec<&str> {
    message
        .blocks
        .iter()
        .map_while(|placed| match &placed.block {
            Block::Result(result) => Some(result.call_id.as_str()),
            _ => None,
        })
        .collect()
}

/// Checks that the thoughts of the calls in the running tool loop are present and unchanged.
fn check_thoughts(messages: &[Message], rules: Rules<'_>) -> Result<(), Refusal> {
    if !rules.thinking.is_on() {
        return Ok(());
    }
    let goes_on = |message: &&Message| {
        message.role == Role::Assistant || !leading_results(message).is_empty()
    };
    let mut latest = true;
    for message in messages.iter().rev().take_while(goes_on) {
        if message.role != Role::Assistant {
            continue;
        }
        if latest && rules.thinking.mode == Mode::Budget {
            check_opening(message)?;
        }
        let has_thoughts = message.tags().next().is_some();
        let strict = rules.demands_thoughts || (latest && has_thoughts);
        if strict && let Some(placed) = message.call_without_thought() {
            return Err(Refusal::at(
                &placed.path,
                "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot \
                 be modified. These blocks must remain as they were in the original response.",
            ));
        }
        latest = false;
    }
    Ok(())
}

fn check_opening(message: &Message) -> Result<(), Refusal> {
    let found = match message.blocks.first().map(|placed| &placed.block) {
        Some(Block::Thought { .. }) | None => return Ok(()),
        Some(Block::Call(_)) => "tool_use",
        Some(_) => "text",
    };
    Err(Refusal::at(
        &format!("messages.{}.content.0.type", message.index),
        format!(
            "Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is \
             enabled, a final `assistant` message must start with a thinking block (preceeding the \
             lastmost set of `tool_use` and `tool_result` blocks). We recommend you include \
             thinking blocks from previous turns. To avoid this requirement, disable `thinking`. \
             Please consult our documentation at \
             https://docs.sim-upstream.example/en/docs/extended-thinking"
        ),
    ))
}

impl Message {
    fn calls(&self) -> impl Iterator<Item = &PastCall> {
        self.blocks.iter().filter_map(|placed| match &placed.block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Finds a call that is not preceded by its thought.
    fn call_without_thought(&self) -> Option<&LocatedBlock> {
        let mut seen: Vec<&str> = Vec::new();
        self.blocks.iter().find(|placed| match &placed.block {
            Block::Thought { tag } => {
                seen.push(tag);
                false
            }
            Block::Call(call) => {
                block::thought_of(&call.id).is_some_and(|needed| !seen.contains(&needed))
            }
            _ => false,
        })
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|placed| match &placed.block {
            Block::Thought { tag } => Some(tag.as_str()),
            _ => None,
        })
    }

    /// Converts the message to turns as the model sees them: tool results first, then the text.
    fn turns(self) -> Vec<Turn> {
        let mut turns = Vec::new();
        let (mut text, mut media, mut calls) = (String::new(), Vec::new(), Vec::new());
        for placed in self.blocks {
            match placed.block {
                Block::Text(more) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&more);
                }
                Block::Media(more) => media.push(more),
                Block::Call(call) => calls.push(call),
                Block::Result(result) => turns.push(Turn::Result {
                    call_id: result.call_id,
                    text: result.text,
                    media: result.media,
                    failed: result.failed,
                }),
                Block::Thought { .. } => {}
            }
        }
        match self.role {
            Role::Assistant => turns.push(Turn::Assistant { text, calls }),
            Role::User if text.is_empty() && media.is_empty() => {}
            Role::User => turns.push(Turn::User { text, media }),
        }
        turns
    }
}
