//! Writes a whole message as the events of a stream. The members keep their bytes.

use crate::answer_layout::{Events, each_item};
use crate::json::write::Object;
use crate::json::{Raw, RawObject, Shape, write_string};
use crate::unusable_answer::UnusableAnswer;

/// Writes the events of a message. Each block is started, filled and stopped.
#[cold]
pub(crate) fn write_events(answer: Raw<'_>, events: &mut Events<'_>) -> Result<(), UnusableAnswer> {
    let message = RawObject::of(answer).ok_or_else(|| UnusableAnswer::malformed("no message"))?;
    events.named("type", "message_start", |it| {
        it.object("message", |it| {
            let changes = [
                ("content", Some("[]")),
                ("stop_reason", Some("null")),
                ("stop_sequence", Some("null")),
                ("stop_details", None),
                ("usage", None),
            ];
            message.write_to(it, &changes);
            write_usage(it, &message);
        });
    })?;
    if let Some(content) = message.get("content") {
        each_item(content, |index, block| {
            let block = RawObject::of(block);
            let block =
                block.ok_or_else(|| UnusableAnswer::malformed("a block is not an object"))?;
            write_block(index, &block, events)
        })?;
    }
    events.named("type", "message_delta", |it| {
        it.object("delta", |it| {
            for name in ["stop_reason", "stop_sequence"] {
                it.raw(name, message.get(name).map_or("null", |value| value.text()));
            }
            if let Some(details) = message.get("stop_details") {
                it.raw("stop_details", details.text());
            }
        });
        write_usage(it, &message);
    })?;
    events.named("type", "message_stop", |_| {})
}

/// Writes the usage, or zeros, because clients fail on events without it. Billing does not treat
/// zeros as a report if there is output.
fn write_usage(it: &mut Object<'_>, message: &RawObject<'_>) {
    match message.get("usage") {
        Some(usage) => it.raw("usage", usage.text()),
        None => it.raw("usage", r#"{"input_tokens":0,"output_tokens":0}"#),
    };
}

fn write_block(
    index: usize,
    block: &RawObject<'_>,
    events: &mut Events<'_>,
) -> Result<(), UnusableAnswer> {
    let string = |name| block.filled(name, Shape::String);
    let kind = block.string("type");
    let is = |known: &str| kind.is_some_and(|kind| kind.is(known));
    let [
        mut text,
        mut citations,
        mut thinking,
        mut signature,
        mut input,
    ] = [None; 5];
    if is("text") {
        text = string("text");
        citations = block.filled("citations", Shape::Array);
    } else if is("thinking") {
        // Clients wait for the signature, even for an empty one.
        let is_string = |value: &Raw<'_>| value.shape() == Shape::String;
        (thinking, signature) = (string("thinking"), block.get("signature").filter(is_string));
    } else if is("tool_use") || is("server_tool_use") || is("mcp_tool_use") {
        input = block.filled("input", Shape::Object);
    }
    // Other blocks, such as the results of server tools, are complete in their start event.
    let mut changes = Vec::new();
    for (name, value, empty) in [
        ("text", text, "\"\""),
        ("citations", citations, "[]"),
        ("thinking", thinking, "\"\""),
        ("signature", signature, "\"\""),
        ("input", input, "{}"),
    ] {
        changes.extend(value.map(|_| (name, Some(empty))));
    }
    events.named("type", "content_block_start", |it| {
        it.number("index", index);
        it.object("content_block", |it| block.write_to(it, &changes));
    })?;
    let mut delta = |kind: &str, name: &str, json: &str| {
        events.named("type", "content_block_delta", |it| {
            it.number("index", index).object("delta", |it| {
                it.text("type", kind).raw(name, json);
            });
        })
    };
    for (kind, name, value) in [
        ("text_delta", "text", text),
        ("thinking_delta", "thinking", thinking),
        ("signature_delta", "signature", signature),
    ] {
        if let Some(value) = value {
            delta(kind, name, value.text())?;
        }
    }
    if let Some(citations) = citations {
        each_item(citations, |_, citation| {
            delta("citations_delta", "citation", citation.text())
        })?;
    }
    if let Some(input) = input {
        let mut json = Vec::new();
        write_string(&mut json, input.text());
        delta(
            "input_json_delta",
            "partial_json",
            &String::from_utf8_lossy(&json),
        )?;
    }
    events.named("type", "content_block_stop", |it| {
        it.number("index", index);
    })
}
