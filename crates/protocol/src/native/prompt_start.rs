//! Finds the part of a prompt that all calls of one conversation share.

use crate::dialect::Dialect;
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError};

/// The beginning of a prompt, as the bytes of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptStart<'a> {
    /// The system prompt, if it is a member of its own.
    pub system: &'a [u8],
    /// The conversation up to and including its first message that is not a system message.
    pub opening: &'a [u8],
}

/// Finds the beginning of the prompt in one pass, without building a tree. `None` if the request has no conversation or
/// is malformed.
pub fn prompt_start(dialect: Dialect, body: &[u8]) -> Option<PromptStart<'_>> {
    let (conversation, system, spelling) = match dialect {
        Dialect::Chat => ("messages", None, Spelling::One),
        Dialect::Responses => ("input", Some("instructions"), Spelling::One),
        Dialect::Messages => ("messages", Some("system"), Spelling::One),
        Dialect::Generate => (
            "contents",
            Some("system_instruction"),
            Spelling::SnakeOrCamel,
        ),
        Dialect::Interactions => ("input", Some("system_instruction"), Spelling::One),
    };
    let members = Members::read(body, spelling).ok()?;
    let conversation = members.get(conversation).ok()??;
    let system = system.and_then(|name| members.get(name).ok()?);
    Some(PromptStart {
        system: system.map_or(&[], |system| system.text().as_bytes()),
        opening: opening(conversation),
    })
}

/// The first messages. A conversation that is a string counts as one message.
fn opening(conversation: Raw<'_>) -> &[u8] {
    let text = conversation.text();
    if conversation.shape() != Shape::Array {
        return text.as_bytes();
    }
    let mut cursor = Cursor::new(text);
    let found = cursor.array(|cursor| {
        let message = cursor.value()?;
        if is_of_system(message) {
            Ok(())
        } else {
            Err(SearchEnd::Found(cursor.position()))
        }
    });
    let end = match found {
        Err(SearchEnd::Found(end)) => end,
        // All messages are system messages, or the text is malformed.
        Ok(()) | Err(SearchEnd::Broken) => text.len(),
    };
    text.as_bytes().get(..end).unwrap_or_default()
}

fn is_of_system(message: Raw<'_>) -> bool {
    if message.shape() != Shape::Object {
        return false;
    }
    let members = Members::read_text(message.text(), Spelling::One);
    let role = members.ok().and_then(|members| {
        let role = members.string("role").ok()??;
        Some(matches!(&*role, "system" | "developer"))
    });
    role.unwrap_or(false)
}

/// The reasons why the search for the first message stops.
enum SearchEnd {
    /// The first message ends at this position.
    Found(usize),
    /// Not JSON.
    Broken,
}

impl From<SyntaxError> for SearchEnd {
    fn from(_: SyntaxError) -> Self {
        Self::Broken
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn start(dialect: Dialect, body: &Value) -> (String, String) {
        let body = body.to_string();
        let start = prompt_start(dialect, body.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(start.system), text(start.opening))
    }

    fn said(role: &str, content: &str) -> Value {
        json!({ "role": role, "content": content })
    }

    /// A different conversation has a different beginning.
    #[test]
    fn a_conversation_keeps_its_beginning() {
        let system = said("system", "be kind");
        let turns = [
            said("user", "hello"),
            said("assistant", "hi"),
            said("user", "more"),
        ];
        let other = said("user", "good day");
        let parts = |text: &str| json!({ "role": "user", "parts": [{ "text": text }] });
        let cases = [
            (
                Dialect::Chat,
                json!({ "model": "m", "messages": [system, turns[0]] }),
                json!({ "stream": true, "messages": [system, turns[0], turns[1], turns[2]], "model": "m" }),
                json!({ "model": "m", "messages": [system, other] }),
            ),
            (
                Dialect::Messages,
                json!({ "messages": [turns[0]], "system": "be kind" }),
                json!({ "system": "be kind", "messages": turns }),
                json!({ "messages": [turns[0]], "system": "be brief" }),
            ),
            (
                Dialect::Responses,
                json!({ "input": [turns[0]], "instructions": "be kind" }),
                json!({ "instructions": "be kind", "input": turns }),
                json!({ "input": "hello", "instructions": "be kind" }),
            ),
            (
                Dialect::Generate,
                json!({ "contents": [parts("hello")], "systemInstruction": { "parts": [] } }),
                json!({ "system_instruction": { "parts": [] }, "contents": [parts("hello"), parts("more")] }),
                json!({ "contents": [parts("good day")], "systemInstruction": { "parts": [] } }),
            ),
            (
                Dialect::Interactions,
                json!({ "input": [turns[0]], "system_instruction": "be kind" }),
                json!({ "input": turns, "system_instruction": "be kind" }),
                json!({ "input": turns }),
            ),
        ];
        for (dialect, first, later, unlike) in cases {
            assert_eq!(
                start(dialect, &first),
                start(dialect, &later),
                "{dialect:?}"
            );
            assert_ne!(
                start(dialect, &first),
                start(dialect, &unlike),
                "{dialect:?}"
            );
        }
    }

    #[test]
    fn what_is_no_conversation_has_no_beginning_and_nothing_fails() {
        for body in [
            "",
            "{}",
            "[]",
            "{\"messages\":null}",
            "{\"messages\":[1",
            "\u{fffd}",
        ] {
            assert_eq!(prompt_start(Dialect::Chat, body.as_bytes()), None, "{body}");
        }
        for (body, opening) in [
            ("{\"messages\":[]}", "[]"),
            ("{\"messages\":[1, 2]}", "[1"),
            ("{\"messages\":7}", "7"),
            (
                "{\"messages\":[{\"role\":\"system\"}]}",
                "[{\"role\":\"system\"}]",
            ),
        ] {
            let found = prompt_start(Dialect::Chat, body.as_bytes()).unwrap();
            assert_eq!(found.opening, opening.as_bytes());
        }
    }
}
