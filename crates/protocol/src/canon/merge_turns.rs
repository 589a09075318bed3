//! Merges turns for dialects in which user and assistant alternate: system prompts are extracted,
//! and consecutive turns of one role are merged.

use super::dropped::Dropped;
use super::path::Path;
use super::request::{Part, Request, Role, Thought};
use crate::failure::Failure;

/// A conversation in which user and assistant alternate.
#[derive(Debug, Default)]
pub(crate) struct MergedConversation<'a> {
    /// The system prompts, from anywhere in the conversation.
    pub system: Vec<&'a str>,
    /// The turns of user and assistant, alternating. None is empty.
    pub turns: Vec<MergedTurn<'a>>,
}

/// Consecutive turns of one role, merged into one.
#[derive(Debug)]
pub(crate) struct MergedTurn<'a> {
    /// [`Role::User`] or [`Role::Assistant`].
    pub role: Role,
    pub parts: Vec<(Path, &'a Part)>,
}

/// Merges the turns of the conversation. Removes and reports parts that only the client's dialect has, parts
/// that do not belong in a turn of their role, and thoughts that `is_own` rejects. Removes an assistant turn
/// that becomes empty. Refuses a user turn that becomes empty, because the model would not see that the user
/// asked something.
pub(crate) fn merge_turns<'a>(
    request: &'a Request,
    is_own: impl Fn(&Thought) -> bool,
    dropped: &mut Dropped,
) -> Result<MergedConversation<'a>, Failure> {
    let mut merged = MergedConversation::default();
    let mut last_prompt = None;
    for turn in &request.turns {
        let mut lost = None;
        let mut kept = false;
        for (path, part) in &turn.parts {
            if !can_contain(turn.role, part, &is_own) {
                dropped.path(*path);
                lost = Some(*path);
                continue;
            }
            kept = true;
            match (turn.role, part) {
                (Role::System | Role::Developer, Part::Text(text)) => {
                    merged.system.push(text);
                    last_prompt = Some((*path, part));
                }
                (role, part) => push_part(&mut merged.turns, role, (*path, part)),
            }
        }
        if let (Role::User, Some(path), false) = (turn.role, lost, kept) {
            let message = format!("Nothing of `{path}` can be sent to this model.");
            return Err(Failure::invalid(message).param(path.to_string()));
        }
    }
    if merged.turns.is_empty() {
        // Upstreams require at least one user turn.
        let Some(prompt) = last_prompt else {
            return Err(Failure::invalid("The request says nothing to the model."));
        };
        merged.system.pop();
        push_part(&mut merged.turns, Role::User, prompt);
    }
    Ok(merged)
}

fn can_contain(role: Role, part: &Part, is_own: impl Fn(&Thought) -> bool) -> bool {
    match (role, part) {
        (_, Part::Text(_)) => true,
        (Role::System | Role::Developer, _) | (_, Part::Foreign) => false,
        (_, Part::Refusal(_) | Part::Image(_) | Part::Document(_)) => true,
        (role, Part::Thought(thought)) => role == Role::Assistant && is_own(thought),
        (role, Part::ToolCall(_)) => role == Role::Assistant,
        (role, Part::ToolResult(_)) => role == Role::User,
    }
}

fn push_part<'a>(turns: &mut Vec<MergedTurn<'a>>, role: Role, part: (Path, &'a Part)) {
    match turns.last_mut() {
        Some(last) if last.role == role => last.parts.push(part),
        _ => turns.push(MergedTurn {
            role,
            parts: vec![part],
        }),
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

    fn request(turns: Vec<(Role, Vec<Part>)>) -> Request {
        let turns = turns
            .into_iter()
            .enumerate()
            .map(|(number, (role, parts))| {
                let path = Path::item("messages", number);
                let parts = parts.into_iter().enumerate();
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

    /// A short notation of the merged conversation, or of the failure.
    fn shown(turns: Vec<(Role, Vec<Part>)>) -> String {
        let request = request(turns);
        let mut dropped = Dropped::new(Dialect::Chat);
        let merged = match merge_turns(&request, |thought| thought.opaque.is_some(), &mut dropped) {
            Ok(merged) => merged,
            Err(failure) => return failure.to_string(),
        };
        let mut shown = vec![format!("system {:?}", merged.system)];
        for turn in &merged.turns {
            let parts = turn.parts.iter().map(|(_, part)| match part {
                Part::Text(text) => format!(" {text}"),
                other => format!(" {other:?}"),
            });
            shown.push(format!("{:?}:{}", turn.role, parts.collect::<String>()));
        }
        shown.extend(dropped.header().map(|header| format!("dropped {header}")));
        shown.join(" | ")
    }

    #[test]
    fn consecutive_turns_of_one_role_are_merged() {
        use Role::{Assistant, Developer, System, User};
        for (turns, expected) in [
            (
                vec![
                    (System, vec![text("s1")]),
                    (User, vec![text("u1")]),
                    (Developer, vec![text("s2")]),
                    (User, vec![text("u2")]),
                    (Assistant, vec![text("a1"), text("a2")]),
                ],
                r#"system ["s1", "s2"] | User: u1 u2 | Assistant: a1 a2"#,
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
            // A turn that is removed leaves no gap: the turns around it are merged.
            (
                vec![
                    (User, vec![text("u1")]),
                    (Assistant, vec![Part::Thought(Thought::default())]),
                    (User, vec![text("u2")]),
                ],
                "system [] | User: u1 u2 | dropped messages[1].content[0]",
            ),
            (
                vec![(Assistant, vec![Part::Thought(Thought::default())])],
                "invalid_request: The request says nothing to the model.",
            ),
        ] {
            assert_eq!(shown(turns), expected);
        }
    }
}
