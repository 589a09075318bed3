//! Reads a whole Converse answer and writes it as a Messages answer.

use std::borrow::Cow;

use super::usage::{stop_reason, write_usage};
use crate::json::write::{self, Array, Object};
use crate::json::{Cursor, Raw, Shape, SyntaxError, utf8};
use crate::messages::fields::Fields;
use crate::native::UnusableAnswer;

/// The answer as a Messages upstream would send it. Its id and model are empty, because Converse has neither.
/// The gateway writes its own.
pub fn read_answer(body: &[u8]) -> Result<Vec<u8>, UnusableAnswer> {
    let mut cursor = Cursor::new(utf8(body)?);
    let answer = Fields::read(&mut cursor)?;
    cursor.end()?;
    let mut answer =
        answer.ok_or_else(|| UnusableAnswer::malformed("the answer is not an object"))?;
    let content =
        nested(answer.take("output"), "message").and_then(|it| nested(Some(it), "content"));
    let content = content.filter(|it| it.shape() == Shape::Array);
    let content = content.ok_or_else(|| UnusableAnswer::malformed("the answer has no message"))?;
    let reason = answer
        .string("stopReason")
        .unwrap_or(Cow::Borrowed("end_turn"));
    let Some(stop_reason) = stop_reason(&reason) else {
        return Err(UnusableAnswer::malformed("the model's output is malformed"));
    };
    let more = answer.take("additionalModelResponseFields");
    let stop_sequence = nested(more, "stop_sequence").and_then(|it| it.string());
    let stop_sequence = stop_sequence.map(|it| it.decode_lossy());
    let usage = answer.take("usage");

    let mut out = Vec::with_capacity(body.len() + 128);
    let mut read = Ok(());
    write::object(&mut out, |it| {
        write_identity(it);
        it.array("content", |it| read = write_blocks(it, content));
        it.text("stop_reason", stop_reason);
        it.text_or_null("stop_sequence", stop_sequence.as_deref());
        if let Some(usage) = usage {
            it.object("usage", |it| write_usage(it, usage));
        }
    });
    read?;
    Ok(out)
}

/// Writes the first members of a message.
pub(super) fn write_identity(it: &mut Object<'_>) {
    it.text("id", "").text("type", "message");
    it.text("role", "assistant").text("model", "");
}

fn nested<'a>(object: Option<Raw<'a>>, name: &str) -> Option<Raw<'a>> {
    Fields::of(object?)?.take(name)
}

fn write_blocks(it: &mut Array<'_>, content: Raw<'_>) -> Result<(), UnusableAnswer> {
    Cursor::new(content.text()).array(|cursor| {
        let Some(mut block) = Fields::of(cursor.value()?) else {
            return Err(UnusableAnswer::malformed("a block is not an object"));
        };
        write_block(it, &mut block);
        Ok(())
    })
}

/// Writes a block. Blocks of a kind that Messages does not have are left out.
fn write_block(it: &mut Array<'_>, block: &mut Fields<'_>) {
    if let Some(text) = block.string("text") {
        it.object(|it| write_text(it, &text));
    } else if let Some(mut call) = block.take("toolUse").and_then(Fields::of) {
        let input = call.take("input").filter(|it| it.shape() == Shape::Object);
        it.object(|it| {
            write_call(it, &mut call);
            it.raw("input", input.as_ref().map_or("{}", Raw::text));
        });
    } else if let Some(mut thought) = block.take("reasoningContent").and_then(Fields::of) {
        if let Some(data) = thought.string("redactedContent") {
            it.object(|it| write_redacted(it, &data));
        } else if let Some(mut thought) = thought.take("reasoningText").and_then(Fields::of) {
            let text = thought.string("text").unwrap_or_default();
            let signature = thought.string("signature").unwrap_or_default();
            it.object(|it| write_thought(it, &text, &signature));
        }
    } else if let Some(cited) = block.take("citationsContent")
        && let Some(content) = nested(Some(cited), "content")
    {
        let text = joined_texts(content);
        it.object(|it| write_text(it, &text));
    }
}

pub(super) fn write_text(it: &mut Object<'_>, text: &str) {
    it.text("type", "text").text("text", text);
}

pub(super) fn write_thought(it: &mut Object<'_>, text: &str, signature: &str) {
    it.text("type", "thinking").text("thinking", text);
    it.text("signature", signature);
}

pub(super) fn write_redacted(it: &mut Object<'_>, data: &str) {
    it.text("type", "redacted_thinking").text("data", data);
}

/// Writes a `tool_use` block without its input, which the caller adds.
pub(super) fn write_call(it: &mut Object<'_>, call: &mut Fields<'_>) {
    let id = call.string("toolUseId").unwrap_or_default();
    let name = call.string("name").unwrap_or_default();
    it.text("type", "tool_use");
    it.text("id", &id).text("name", &name);
}

/// All texts in a list of blocks, joined.
fn joined_texts(content: Raw<'_>) -> String {
    let mut joined = String::new();
    if content.shape() == Shape::Array {
        // The JSON has already been validated.
        let _ = Cursor::new(content.text()).array(|cursor| {
            let text = nested(Some(cursor.value()?), "text").and_then(|it| it.string());
            joined.extend(text.map(|it| it.decode_lossy()));
            Ok::<(), SyntaxError>(())
        });
    }
    joined
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(answer: &Value) -> Value {
        let read = read_answer(answer.to_string().as_bytes()).unwrap();
        serde_json::from_slice(&read).unwrap()
    }

    #[test]
    fn blocks_usage_and_end_are_those_of_messages() {
        let answer = json!({
            "output": { "message": { "role": "assistant", "content": [
                { "reasoningContent": { "reasoningText": { "text": "hm", "signature": "s" } } },
                { "reasoningContent": { "redactedContent": "AAAA" } },
                { "text": "Hi" },
                { "citationsContent": { "content": [{ "text": "a" }, { "text": "b" }], "citations": [] } },
                { "toolUse": { "toolUseId": "t1", "name": "look", "input": { "x": 1 } } },
                { "unknown": {} },
            ] } },
            "stopReason": "stop_sequence",
            "additionalModelResponseFields": { "stop_sequence": "END" },
            "usage": { "inputTokens": 3, "outputTokens": 4, "totalTokens": 7 },
            "metrics": { "latencyMs": 5 },
        });
        let expected = json!({
            "id": "", "type": "message", "role": "assistant", "model": "",
            "stop_reason": "stop_sequence", "stop_sequence": "END",
            "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "redacted_thinking", "data": "AAAA" },
                { "type": "text", "text": "Hi" },
                { "type": "text", "text": "ab" },
                { "type": "tool_use", "id": "t1", "name": "look", "input": { "x": 1 } },
            ],
            "usage": { "input_tokens": 3, "output_tokens": 4 },
        });
        assert_eq!(read(&answer), expected);
    }

    #[test]
    fn an_answer_without_usage_has_none() {
        let message = json!({ "role": "assistant", "content": [] });
        let answer = json!({ "output": { "message": message }, "stopReason": "end_turn" });
        assert!(read(&answer).get("usage").is_none());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"output":{}}"#,
            r#"{"output":{"message":{"content":"x"}}}"#,
            r#"{"output":{"message":{"content":[1]}}}"#,
            r#"{"output":{"message":{"content":[]}},"stopReason":"malformed_model_output"}"#,
            r#"{"output":{"message":{"content":[]}}} x"#,
        ] {
            assert!(read_answer(body.as_bytes()).is_err(), "{body}");
        }
    }
}
