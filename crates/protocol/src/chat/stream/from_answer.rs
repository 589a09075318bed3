//! Writes a whole completion as the chunks of a stream. Values are copied as text, not decoded.

use crate::answer_layout::{Events, each_item};
use crate::chat::answer_layout::END_MARK;
use crate::json::write::{Object, array};
use crate::json::{Raw, RawObject, Shape};
use crate::unusable_answer::UnusableAnswer;
use crate::usage::count;

/// Writes two chunks for each choice (message and end), then the usage and the end mark.
#[cold]
pub(crate) fn write_events(answer: Raw<'_>, events: &mut Events<'_>) -> Result<(), UnusableAnswer> {
    let answer = RawObject::of(answer).ok_or_else(|| UnusableAnswer::malformed("no completion"))?;
    let mut head = Head {
        created: answer.get("created").and_then(count),
        members: Some(&answer),
    };
    if let Some(choices) = answer.get("choices") {
        each_item(choices, |position, choice| {
            let choice = RawObject::of(choice);
            let choice =
                choice.ok_or_else(|| UnusableAnswer::malformed("a choice is not an object"))?;
            let message = choice.get("message").and_then(RawObject::of);
            let message =
                message.ok_or_else(|| UnusableAnswer::malformed("a choice has no message"))?;
            let message = message.without_nulls();
            let index = choice.get("index").and_then(count);
            let index = index.unwrap_or(position as u64);
            let calls = indexed_calls(&message)?;
            events.data(|it| {
                head.write(it);
                write_message(it, index, &choice, &message, calls.as_deref());
            })?;
            events.data(|it| {
                head.write(it);
                write_end(it, index, &choice);
            })
        })?;
    }
    let usage = answer.get("usage");
    if usage.is_some() || head.members.is_some() {
        events.data(|it| {
            head.write(it);
            it.array("choices", |_| {});
            if let Some(usage) = usage {
                it.raw("usage", usage.text());
            }
        })?;
    }
    events.end(END_MARK.frame)
}

/// The members next to the choices. Only the first chunk has all of them.
struct Head<'h, 'a> {
    created: Option<u64>,
    members: Option<&'h RawObject<'a>>,
}

impl Head<'_, '_> {
    fn write(&mut self, it: &mut Object<'_>) {
        it.text("object", "chat.completion.chunk");
        if let Some(created) = self.created {
            it.number("created", created);
        }
        let mut cut = vec![("object", None), ("choices", None), ("usage", None)];
        if self.created.is_some() {
            cut.push(("created", None));
        }
        if let Some(members) = self.members.take() {
            members.write_to(it, &cut);
        }
    }
}

fn write_message(
    it: &mut Object<'_>,
    index: u64,
    choice: &RawObject<'_>,
    message: &RawObject<'_>,
    calls: Option<&str>,
) {
    it.array("choices", |choices| {
        choices.object(|it| {
            it.number("index", index);
            it.object("delta", |it| match calls {
                Some(calls) => message.write_to(it, &[("tool_calls", Some(calls))]),
                None => message.write_to(it, &[]),
            });
            if let Some(logprobs) = choice.get("logprobs") {
                it.raw("logprobs", logprobs.text());
            }
            it.null("finish_reason");
        });
    });
}

/// Writes the end of a choice. It is a separate chunk, because some clients stop reading at the
/// finish reason.
fn write_end(it: &mut Object<'_>, index: u64, choice: &RawObject<'_>) {
    it.array("choices", |choices| {
        choices.object(|it| {
            it.number("index", index).object("delta", |_| {});
            let written_elsewhere = ["index", "message", "logprobs", "finish_reason"];
            choice.write_to(it, &written_elsewhere.map(|name| (name, None)));
            match choice.get("finish_reason") {
                Some(reason) => it.raw("finish_reason", reason.text()),
                None => it.null("finish_reason"),
            };
        });
    });
}

/// The calls of a message, each with the index that clients need to assemble it.
fn indexed_calls(message: &RawObject<'_>) -> Result<Option<String>, UnusableAnswer> {
    let Some(calls) = message.filled("tool_calls", Shape::Array) else {
        return Ok(None);
    };
    let mut indexed = Vec::new();
    let mut result = Ok(());
    array(&mut indexed, |list| {
        result = each_item(calls, |position, call| {
            let call = RawObject::of(call);
            let call =
                call.ok_or_else(|| UnusableAnswer::malformed("a tool call is not an object"))?;
            list.object(|it| {
                it.number("index", position);
                call.write_to(it, &[("index", None)]);
            });
            Ok(())
        });
    });
    result?;
    String::from_utf8(indexed)
        .map(Some)
        .map_err(|_| UnusableAnswer::malformed("the answer is not UTF-8"))
}
