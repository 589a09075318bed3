//! Parses chat answers of upstreams. Whole completions and chunks have the same form.

use std::borrow::Cow;

use crate::canon::Token;
use crate::chat::request::EXTRA;
use crate::chat::usage::read_usage;
use crate::json::typed::{self, ValueError};
use crate::json::{Cursor, Integer, Shape, utf8};
use crate::rejection;
use crate::shared::logprobs;
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

/// A completion or a chunk.
#[derive(Debug, Default)]
pub(in crate::chat) struct Answer<'a> {
    pub(in crate::chat) id: Option<Cow<'a, str>>,
    /// The first choice. The request asked for no others.
    pub(in crate::chat) choices: Vec<Choice<'a>>,
    pub(in crate::chat) usage: Option<Usage>,
}

/// One choice, or a piece of it.
#[derive(Debug, Default)]
pub(in crate::chat) struct Choice<'a> {
    index: u64,
    pub(in crate::chat) message: Message<'a>,
    pub(in crate::chat) finish_reason: Option<Cow<'a, str>>,
    /// Log probabilities of the content. Other dialects have no place for log probabilities of a refusal.
    pub(in crate::chat) logprobs: Vec<Token>,
}

/// A message or a delta.
#[derive(Debug, Default)]
pub(in crate::chat) struct Message<'a> {
    pub(in crate::chat) thought: Option<Cow<'a, str>>,
    pub(in crate::chat) texts: Vec<Cow<'a, str>>,
    pub(in crate::chat) citations: Vec<Citation<'a>>,
    pub(in crate::chat) refusal: Option<Cow<'a, str>>,
    pub(in crate::chat) calls: Vec<Call<'a>>,
}

/// A tool call, or a piece of it.
#[derive(Debug, Default)]
pub(in crate::chat) struct Call<'a> {
    pub(in crate::chat) index: Option<u64>,
    pub(in crate::chat) id: Option<Cow<'a, str>>,
    pub(in crate::chat) name: Option<Cow<'a, str>>,
    pub(in crate::chat) arguments: Option<Cow<'a, str>>,
    pub(in crate::chat) signature: Option<Cow<'a, str>>,
}

/// A citation of a source. Offsets count characters of the whole content.
#[derive(Debug, Default)]
pub(in crate::chat) struct Citation<'a> {
    pub(in crate::chat) url: Option<Cow<'a, str>>,
    pub(in crate::chat) title: Option<Cow<'a, str>>,
    pub(in crate::chat) start: u64,
    pub(in crate::chat) end: u64,
}

impl<'a> Answer<'a> {
    /// Reads a completion or a chunk. An error in its place becomes a failure.
    pub(in crate::chat) fn read(data: &'a [u8], model: &str) -> Result<Self, UnusableAnswer> {
        let text = utf8(data)?;
        let mut answer = Self::default();
        let mut error = None;
        let mut any = false;
        let mut cursor = Cursor::new(text);
        cursor.object(|cursor, name| {
            any = true;
            match name.decode_lossy().as_ref() {
                "id" => answer.id = text_or_nothing(cursor)?,
                "choices" => typed::array(cursor, "choices", |cursor, _| {
                    let choice = choice(cursor)?;
                    if choice.index == 0 {
                        answer.choices.push(choice);
                    }
                    Ok::<(), UnusableAnswer>(())
                })?,
                "usage" => answer.usage = read_usage(cursor)?,
                "error" => {
                    let value = cursor.value()?;
                    if rejection::is_error(value) {
                        error = Some(value.text());
                    }
                }
                // Some servers send `"object": "error"` instead of an `error` member.
                "object" => {
                    let object = text_or_nothing(cursor)?;
                    if object.as_deref() == Some("error") {
                        error.get_or_insert(text);
                    }
                }
                _ => drop(cursor.value()?),
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        cursor.end()?;
        match error {
            Some(error) => {
                let failure = rejection::read_event(error.as_bytes(), model);
                Err(UnusableAnswer::Failure(failure))
            }
            None if any => Ok(answer),
            None => Err(UnusableAnswer::malformed("an answer is an empty object")),
        }
    }
}

fn choice<'a>(cursor: &mut Cursor<'a>) -> Result<Choice<'a>, UnusableAnswer> {
    let mut choice = Choice::default();
    typed::object(cursor, "choices[]", |cursor, name| {
        match name {
            "index" => {
                let index = typed::integer(cursor, "choices[].index")?;
                choice.index = index.map_or(0, Integer::saturating);
            }
            "delta" | "message" => read_message(cursor, &mut choice.message)?,
            "finish_reason" => choice.finish_reason = text_or_nothing(cursor)?,
            "logprobs" => typed::object(cursor, name, |cursor, name| {
                match name {
                    "content" => choice.logprobs = logprobs::read(cursor)?,
                    _ => drop(cursor.value()?),
                }
                Ok::<(), UnusableAnswer>(())
            })?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), UnusableAnswer>(())
    })?;
    Ok(choice)
}

fn read_message<'a>(
    cursor: &mut Cursor<'a>,
    message: &mut Message<'a>,
) -> Result<(), UnusableAnswer> {
    typed::object(cursor, "choices[].delta", |cursor, name| {
        match name {
            "content" => content(cursor, &mut message.texts)?,
            "refusal" => message.refusal = text_or_nothing(cursor)?,
            // An upstream that sends both members repeats the same text in them.
            "reasoning_content" => {
                message.thought = text_or_nothing(cursor)?.or(message.thought.take());
            }
            "reasoning" => message.thought = message.thought.take().or(text_or_nothing(cursor)?),
            "tool_calls" => typed::array(cursor, "tool_calls", |cursor, _| {
                message.calls.push(call(cursor)?);
                Ok::<(), UnusableAnswer>(())
            })?,
            "function_call" if !typed::null(cursor)? => {
                let mut call = Call::default();
                function(cursor, &mut call)?;
                message.calls.push(call);
            }
            "annotations" => typed::array(cursor, "annotations", |cursor, _| {
                message.citations.extend(citation(cursor)?);
                Ok::<(), UnusableAnswer>(())
            })?,
            "function_call" => {}
            _ => drop(cursor.value()?),
        }
        Ok::<(), UnusableAnswer>(())
    })
}

/// Reads a string that is not empty. Values of other types are ignored.
fn text_or_nothing<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, ValueError> {
    let value = cursor.value()?;
    let text = value.string().map(|text| text.decode_lossy());
    Ok(text.filter(|text| !text.is_empty()))
}

/// Reads the content: a text, or the texts in a list of parts.
fn content<'a>(
    cursor: &mut Cursor<'a>,
    texts: &mut Vec<Cow<'a, str>>,
) -> Result<(), UnusableAnswer> {
    if cursor.shape()? != Shape::Array {
        texts.extend(text_or_nothing(cursor)?);
        return Ok(());
    }
    typed::array(cursor, "content", |cursor, _| {
        typed::object(cursor, "content[]", |cursor, name| {
            match name {
                "text" => texts.extend(text_or_nothing(cursor)?),
                _ => drop(cursor.value()?),
            }
            Ok::<(), UnusableAnswer>(())
        })
    })
}

fn call<'a>(cursor: &mut Cursor<'a>) -> Result<Call<'a>, UnusableAnswer> {
    let mut call = Call::default();
    typed::object(cursor, "tool_calls[]", |cursor, name| {
        match name {
            "index" => {
                let index = typed::integer(cursor, "tool_calls[].index")?;
                call.index = index.map(Integer::saturating);
            }
            "id" => call.id = text_or_nothing(cursor)?,
            "function" => function(cursor, &mut call)?,
            name if name == EXTRA[0] => call.signature = signature(cursor)?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), UnusableAnswer>(())
    })?;
    Ok(call)
}

fn function<'a>(cursor: &mut Cursor<'a>, call: &mut Call<'a>) -> Result<(), UnusableAnswer> {
    typed::object(cursor, "function", |cursor, name| {
        match name {
            "name" => call.name = text_or_nothing(cursor)?,
            // Some upstreams send an object instead of a string.
            "arguments" if cursor.shape()? == Shape::Object => {
                call.arguments = Some(Cow::Owned(typed::compact(cursor.value()?.text())));
            }
            "arguments" => call.arguments = text_or_nothing(cursor)?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), UnusableAnswer>(())
    })
}

fn signature<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, UnusableAnswer> {
    let [extra, vendor, member] = EXTRA;
    let mut signature = None;
    typed::object(cursor, extra, |cursor, name| {
        if name != vendor {
            return cursor.value().map(drop).map_err(UnusableAnswer::from);
        }
        typed::object(cursor, vendor, |cursor, name| {
            if name == member {
                signature = text_or_nothing(cursor)?;
            } else {
                cursor.value()?;
            }
            Ok::<(), UnusableAnswer>(())
        })
    })?;
    Ok(signature)
}

fn citation<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Citation<'a>>, UnusableAnswer> {
    let mut found = None;
    typed::object(cursor, "annotations[]", |cursor, name| {
        if name != "url_citation" {
            return cursor.value().map(drop).map_err(UnusableAnswer::from);
        }
        let mut citation = Citation::default();
        typed::object(cursor, "url_citation", |cursor, name| {
            match name {
                "url" => citation.url = text_or_nothing(cursor)?,
                "title" => citation.title = text_or_nothing(cursor)?,
                "start_index" => citation.start = offset(cursor)?,
                "end_index" => citation.end = offset(cursor)?,
                _ => drop(cursor.value()?),
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        found = Some(citation);
        Ok(())
    })?;
    Ok(found.filter(|citation| citation.url.is_some()))
}

fn offset(cursor: &mut Cursor<'_>) -> Result<u64, UnusableAnswer> {
    let integer = typed::integer(cursor, "url_citation")?;
    Ok(integer.map_or(0, Integer::saturating))
}
