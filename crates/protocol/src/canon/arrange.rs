//! The conversation as dialects with two alternating sides want it.
//!
//! System prompts are taken out, turns of one side are joined, and the results of a side's tool
//! calls stand at the head of the next side, one for each call and in the order of the calls.

use super::dropped::Dropped;
use super::path::Path;
use super::request::{Part, Request, Role, ToolCall, ToolResult};
use crate::failure::Failure;

/// A conversation of two sides.
#[derive(Debug)]
pub struct Arranged<'a> {
    /// The system prompts, wherever they stood.
    pub system: Vec<&'a str>,
    /// User and assistant in turn, none of them empty.
    pub sides: Vec<Side<'a>>,
    /// Whether the last side calls tools, which nobody has answered.
    pub unanswered: bool,
}

/// What one side says before the other does.
#[derive(Debug)]
pub struct Side<'a> {
    /// [`Role::User`] or [`Role::Assistant`].
    pub role: Role,
    pub pieces: Vec<Piece<'a>>,
}

/// A part of a side.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Anything but a tool's result.
    Said(Path, &'a Part),
    /// The result of a call, unless the caller never sent one.
    Answer {
        call: &'a ToolCall,
        result: Option<&'a ToolResult>,
    },
}

/// Arranges the conversation. Parts that only the caller's dialect knows are left out and listed;
/// a user turn of nothing else is refused, since the model would not see that it was asked.
pub fn arrange<'a>(request: &'a Request, dropped: &mut Dropped) -> Result<Arranged<'a>, Failure> {
    let mut arranged = Arranged {
        system: Vec::new(),
        sides: Vec::new(),
        unanswered: false,
    };
    let mut results = Vec::new();
    for turn in &request.turns {
        let mut lost = None;
        let mut kept = false;
        for (path, part) in &turn.parts {
            match (turn.role, part) {
                (_, Part::Foreign) => {
                    dropped.path(*path);
                    lost = Some(*path);
                    continue;
                }
                (Role::System | Role::Developer, Part::Text(text)) => arranged.system.push(text),
                (Role::System | Role::Developer, _) => dropped.path(*path),
                (Role::User, Part::ToolResult(result)) => {
                    say(&mut arranged.sides, Role::User, None);
                    results.push((arranged.sides.len(), *path, result));
                }
                (role, part) => {
                    say(&mut arranged.sides, role, Some(Piece::Said(*path, part)));
                }
            }
            kept = true;
        }
        if let (Role::User, Some(path), false) = (turn.role, lost, kept) {
            let message = format!("Nothing of `{path}` can be sent to this model.");
            return Err(Failure::invalid(message).param(path.to_string()));
        }
    }
    answer(&mut arranged, &results)?;
    if arranged.sides.is_empty() {
        // Upstreams want at least one turn of the user.
        let Some(text) = arranged.system.pop() else {
            return Err(Failure::invalid("The request says nothing to the model."));
        };
        let turns = request.turns.iter().flat_map(|turn| &turn.parts);
        let mut texts = turns.filter(|(_, part)| matches!(part, Part::Text(said) if said == text));
        if let Some((path, part)) = texts.next_back() {
            let said = Piece::Said(*path, part);
            say(&mut arranged.sides, Role::User, Some(said));
        }
    }
    Ok(arranged)
}

/// Lets a side speak, and say something now unless it has its say later.
fn say<'a>(sides: &mut Vec<Side<'a>>, role: Role, piece: Option<Piece<'a>>) {
    match sides.last_mut() {
        Some(last) if last.role == role => last.pieces.extend(piece),
        _ => sides.push(Side {
            role,
            pieces: piece.into_iter().collect(),
        }),
    }
}

/// A result, the number of the side it stands in counted from one, and where the caller wrote it.
type Given<'a> = (usize, Path, &'a ToolResult);

/// Puts an answer to each call of a side at the head of the next one.
fn answer<'a>(arranged: &mut Arranged<'a>, results: &[Given<'a>]) -> Result<(), Failure> {
    let mut used = vec![false; results.len()];
    for number in 0..arranged.sides.len() {
        let calls: Vec<&'a ToolCall> = match arranged.sides.get(number) {
            Some(side) if side.role == Role::Assistant => {
                side.pieces.iter().filter_map(call).collect()
            }
            _ => continue,
        };
        let Some(next) = arranged.sides.get_mut(number + 1) else {
            arranged.unanswered = !calls.is_empty();
            continue;
        };
        let answers = calls.into_iter().map(|call| {
            let mut found = results.iter().zip(&mut used);
            let found = found.find(|((at, _, result), used)| {
                *at == number + 2 && !**used && result.call_id == call.id
            });
            let result = found.map(|((_, _, result), used)| {
                *used = true;
                *result
            });
            Piece::Answer { call, result }
        });
        let answers: Vec<_> = answers.collect();
        next.pieces.splice(0..0, answers);
    }
    let left = results.iter().zip(used).find(|(_, used)| !used);
    if let Some(((_, path, result), _)) = left {
        let message = format!(
            "The tool result `{path}` answers no call of the turn before: `{}`.",
            result.call_id
        );
        return Err(Failure::invalid(message).param(path.to_string()));
    }
    Ok(())
}

fn call<'a>(piece: &Piece<'a>) -> Option<&'a ToolCall> {
    match piece {
        Piece::Said(_, Part::ToolCall(call)) => Some(call),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Turn;
    use crate::dialect::Dialect;

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    fn calls(id: &str) -> Part {
        Part::ToolCall(ToolCall {
            id: id.to_owned(),
            name: format!("f_{id}"),
            arguments: "{}".to_owned(),
            opaque: None,
        })
    }

    fn result(id: &str) -> Part {
        Part::ToolResult(ToolResult {
            call_id: id.to_owned(),
            name: None,
            parts: vec![text(id)],
            is_error: false,
        })
    }

    fn request(turns: Vec<(Role, Vec<Part>)>) -> Request {
        let turns = turns
            .into_iter()
            .enumerate()
            .map(|(number, (role, parts))| {
                let parts = parts.into_iter().enumerate();
                let path = Path::item("messages", number);
                Turn {
                    role,
                    parts: parts
                        .map(|(at, part)| (path.inner("content", at), part))
                        .collect(),
                }
            });
        Request {
            turns: turns.collect(),
            ..Request::default()
        }
    }

    /// The arrangement in a few words, or the failure.
    fn shown(turns: Vec<(Role, Vec<Part>)>) -> String {
        let request = request(turns);
        let mut dropped = Dropped::new(Dialect::Chat);
        let arranged = match arrange(&request, &mut dropped) {
            Ok(arranged) => arranged,
            Err(failure) => return failure.to_string(),
        };
        let mut shown = vec![format!("system {:?}", arranged.system)];
        for side in &arranged.sides {
            let pieces = side.pieces.iter().map(|piece| match piece {
                Piece::Said(_, Part::Text(text)) => format!(" {text}"),
                Piece::Said(_, Part::ToolCall(call)) => format!(" ({})", call.id),
                Piece::Said(_, other) => format!(" {other:?}"),
                Piece::Answer { call, result } => format!(" {}={}", call.id, result.is_some()),
            });
            shown.push(format!("{:?}:{}", side.role, pieces.collect::<String>()));
        }
        shown.extend(dropped.header().map(|header| format!("dropped {header}")));
        shown.extend(arranged.unanswered.then(|| "unanswered".to_owned()));
        shown.join(" | ")
    }

    #[test]
    fn conversations_become_two_sides() {
        use Role::{Assistant, Developer, System, User};
        let two_calls = || (Assistant, vec![calls("a"), calls("b")]);
        for (turns, expected) in [
            (
                vec![
                    (System, vec![text("s1")]),
                    (User, vec![text("u1")]),
                    (Developer, vec![text("s2")]),
                    (User, vec![text("u2")]),
                ],
                r#"system ["s1", "s2"] | User: u1 u2"#,
            ),
            (
                vec![(System, vec![text("s1")]), (System, vec![text("s2")])],
                r#"system ["s1"] | User: s2"#,
            ),
            (
                vec![(User, vec![])],
                "invalid_request: The request says nothing to the model.",
            ),
            (
                vec![
                    (User, vec![text("u")]),
                    two_calls(),
                    (User, vec![text("and"), result("b")]),
                    (User, vec![result("a"), text("more")]),
                ],
                "system [] | User: u | Assistant: (a) (b) | User: a=true b=true and more",
            ),
            (
                vec![two_calls(), (User, vec![text("never mind")])],
                "system [] | Assistant: (a) (b) | User: a=false b=false never mind",
            ),
            (
                vec![two_calls()],
                "system [] | Assistant: (a) (b) | unanswered",
            ),
            (
                vec![(User, vec![text("u"), Part::Foreign])],
                "system [] | User: u | dropped messages[0].content[1]",
            ),
            (
                vec![(User, vec![Part::Foreign]), (User, vec![text("u")])],
                "invalid_request: Nothing of `messages[0].content[0]` can be sent to this model.",
            ),
            (
                vec![(User, vec![text("u")]), (Assistant, vec![Part::Foreign])],
                "system [] | User: u | dropped messages[1].content[0]",
            ),
            (
                vec![two_calls(), (User, vec![result("c")])],
                "invalid_request: The tool result `messages[1].content[0]` answers no call of the turn before: `c`.",
            ),
            (
                vec![(User, vec![result("a")])],
                "invalid_request: The tool result `messages[0].content[0]` answers no call of the turn before: `a`.",
            ),
        ] {
            assert_eq!(shown(turns), expected);
        }
    }
}
