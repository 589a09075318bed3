//! Orders a conversation so that every upstream accepts it.
//!
//! Upstreams differ in how strictly they pair tool calls with results. The strictest require one
//! result for each call, in the next turn, in the order of the calls and before any other content.
//! This module brings every conversation into that order, so that writers need not check it.

use std::collections::HashMap;

use super::path::Path;
use super::request::{Part, Role, ToolResult, Turn};
use crate::failure::Failure;

/// The text that the model sees in place of a missing result.
const NO_RESULT: &str = "no result";

/// Moves each tool result to the turn after its call. A call without a result gets a placeholder,
/// but is refused in the last turn. A result without a call is refused too.
pub fn pair_results(turns: &mut Vec<Turn>) -> Result<(), Failure> {
    let parts = || turns.iter().flat_map(|turn| &turn.parts);
    if !parts().any(|(_, part)| matches!(part, Part::ToolCall(_) | Part::ToolResult(_))) {
        return Ok(());
    }
    let mut open: HashMap<String, (usize, usize)> = HashMap::new();
    let mut opened: Vec<Calls> = Vec::with_capacity(turns.len());
    for (at, turn) in turns.iter_mut().enumerate() {
        let mut calls = Calls::default();
        for (path, part) in std::mem::take(&mut turn.parts) {
            match part {
                Part::ToolResult(result) => {
                    answer(path, result, &mut open, &mut opened)?;
                    calls.answered = true;
                }
                part => {
                    if let Part::ToolCall(call) = &part {
                        open.insert(call.id.clone(), (at, calls.calls.len()));
                        calls.calls.push(Call {
                            id: call.id.clone(),
                            name: call.name.clone(),
                            result: None,
                        });
                    }
                    turn.parts.push((path, part));
                }
            }
        }
        opened.push(calls);
    }
    insert_results(turns, opened)
}

#[derive(Default)]
struct Calls {
    calls: Vec<Call>,
    /// Whether results were moved out of the turn.
    answered: bool,
}

struct Call {
    id: String,
    name: String,
    result: Option<(Path, ToolResult)>,
}

/// Assigns a result to the last call with its id, because ids may be reused.
fn answer(
    path: Path,
    mut result: ToolResult,
    open: &mut HashMap<String, (usize, usize)>,
    opened: &mut [Calls],
) -> Result<(), Failure> {
    let place = open.remove(&result.call_id);
    let call = place.and_then(|(turn, call)| opened.get_mut(turn)?.calls.get_mut(call));
    let Some(call) = call else {
        let message = format!("The tool result at `{path}` answers no call before it.");
        return Err(Failure::invalid(message).param(path.to_string()));
    };
    result.name.get_or_insert_with(|| call.name.clone());
    call.result = Some((path, result));
    Ok(())
}

/// Inserts the results of each turn's calls at the start of the next turn.
fn insert_results(turns: &mut Vec<Turn>, opened: Vec<Calls>) -> Result<(), Failure> {
    let count = turns.len();
    let mut placed: Vec<Turn> = Vec::with_capacity(count);
    let mut waiting: Vec<(Path, Part)> = Vec::new();
    for (at, (mut turn, calls)) in turns.drain(..).zip(opened).enumerate() {
        if !waiting.is_empty() {
            let mut results = std::mem::take(&mut waiting);
            if turn.role == Role::User {
                results.append(&mut turn.parts);
                turn.parts = results;
            } else {
                placed.push(results_turn(results));
            }
        }
        for call in calls.calls {
            waiting.push(match call.result {
                Some((path, result)) => (path, Part::ToolResult(result)),
                None if at + 1 == count => {
                    let message = format!("The tool call `{}` has no result.", call.id);
                    return Err(Failure::invalid(message));
                }
                None => (Path::default(), Part::ToolResult(no_result(call))),
            });
        }
        // Remove a turn whose only content was the results that have moved.
        if !(calls.answered && turn.parts.is_empty()) {
            placed.push(turn);
        }
    }
    if !waiting.is_empty() {
        placed.push(results_turn(waiting));
    }
    *turns = placed;
    Ok(())
}

fn results_turn(parts: Vec<(Path, Part)>) -> Turn {
    Turn {
        role: Role::User,
        parts,
    }
}

fn no_result(call: Call) -> ToolResult {
    ToolResult {
        call_id: call.id,
        name: Some(call.name),
        parts: vec![(Path::default(), Part::Text(NO_RESULT.to_owned()))],
        is_error: true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{SignedAt, ToolCall};
    use super::*;

    /// Parses a story: `u`, `a` and `s` start a turn, `+x` is a call and `-x` a result with the id `x`.
    /// Everything else is text.
    fn turns(story: &str) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for (at, word) in story.split(' ').enumerate() {
            let role = match word {
                "u" => Some(Role::User),
                "a" => Some(Role::Assistant),
                "s" => Some(Role::System),
                _ => None,
            };
            if let Some(role) = role {
                let parts = Vec::new();
                turns.push(Turn { role, parts });
                continue;
            }
            let part = match word.split_at(1) {
                ("+", id) => Part::ToolCall(ToolCall {
                    id: id.to_owned(),
                    name: format!("tool_{id}"),
                    arguments: "{}".to_owned(),
                    opaque: None,
                    signed_at: SignedAt::default(),
                }),
                ("-", id) => Part::ToolResult(ToolResult {
                    call_id: id.to_owned(),
                    name: None,
                    parts: Vec::new(),
                    is_error: false,
                }),
                _ => Part::Text(word.to_owned()),
            };
            let path = Path::item("messages", at);
            turns.last_mut().unwrap().parts.push((path, part));
        }
        turns
    }

    fn story(turns: &[Turn]) -> String {
        let mut words = Vec::new();
        for turn in turns {
            words.push(match turn.role {
                Role::User => "u".to_owned(),
                Role::Assistant => "a".to_owned(),
                Role::System | Role::Developer => "s".to_owned(),
            });
            for (_, part) in &turn.parts {
                words.push(match part {
                    Part::Text(text) => text.clone(),
                    Part::ToolCall(call) => format!("+{}", call.id),
                    Part::ToolResult(result) => {
                        assert_eq!(result.name, Some(format!("tool_{}", result.call_id)));
                        let sign = if result.is_error { "!" } else { "-" };
                        format!("{sign}{}", result.call_id)
                    }
                    part => panic!("{part:?} was not expected"),
                });
            }
        }
        words.join(" ")
    }

    #[test]
    fn results_follow_their_calls_in_order() {
        for (before, after) in [
            ("u hi a ho", "u hi a ho"),
            ("u a +1 u -1", "u a +1 u -1"),
            ("u a +1 +2 u -2 so -1", "u a +1 +2 u -1 -2 so"),
            ("u a +1 +2 u -1 u -2 go", "u a +1 +2 u -1 -2 u go"),
            ("u a +1 s be u -1", "u a +1 u -1 s be"),
            ("u a +1 u wait a yes u -1", "u a +1 u -1 wait a yes"),
            // A reused id belongs to the last call that has it.
            ("u a +1 u -1 a +1 u -1", "u a +1 u -1 a +1 u -1"),
            // A call without a result gets a placeholder if another turn follows.
            ("u a +1 +2 u -2", "u a +1 +2 u !1 -2"),
            ("u a +1 u never_mind", "u a +1 u !1 never_mind"),
            ("u a +1 a so", "u a +1 u !1 a so"),
        ] {
            let mut turns = turns(before);
            pair_results(&mut turns).unwrap();
            assert_eq!(story(&turns), after, "{before}");
            pair_results(&mut turns).unwrap();
            assert_eq!(story(&turns), after, "again: {before}");
        }
    }

    #[test]
    fn unpaired_results_are_refused() {
        for (before, param) in [
            ("u -1", Some("messages[1]")),
            ("u a +1 u -1 -1", Some("messages[5]")),
            ("u -1 a +1 u x", Some("messages[1]")),
            ("u a +1", None),
        ] {
            let failure = pair_results(&mut turns(before)).unwrap_err();
            assert_eq!(failure.param.as_deref(), param, "{before}");
        }
    }
}
