//! Reads the response object and its items, as upstreams send them.

use std::borrow::Cow;

use crate::canon::{Stop, Token};
use crate::json::typed::{self, ValueError};
use crate::json::{Cursor, Integer, Raw, Shape};
use crate::responses::usage::read_usage;
use crate::shared::logprobs;
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

#[derive(Debug, Default)]
pub(in crate::responses) struct Answer<'a> {
    pub(in crate::responses) status: Option<Cow<'a, str>>,
    /// The reason why the answer is incomplete.
    reason: Option<Cow<'a, str>>,
    /// `None` when there is no list.
    pub(in crate::responses) output: Option<Vec<Item<'a>>>,
    pub(in crate::responses) usage: Option<Usage>,
    pub(in crate::responses) error: Option<Raw<'a>>,
}

/// An output item. It has the members of all item types that exist in other dialects too.
#[derive(Debug, Default)]
pub(in crate::responses) struct Item<'a> {
    pub(in crate::responses) kind: Cow<'a, str>,
    pub(in crate::responses) id: Option<Cow<'a, str>>,
    pub(in crate::responses) call_id: Option<Cow<'a, str>>,
    pub(in crate::responses) name: Option<Cow<'a, str>>,
    pub(in crate::responses) arguments: Cow<'a, str>,
    pub(in crate::responses) content: Vec<Part<'a>>,
    pub(in crate::responses) summary: Vec<Part<'a>>,
    pub(in crate::responses) encrypted: Cow<'a, str>,
}

/// A part of a message, or of reasoning.
#[derive(Debug, Default)]
pub(in crate::responses) struct Part<'a> {
    pub(in crate::responses) is_refusal: bool,
    pub(in crate::responses) is_reasoning: bool,
    pub(in crate::responses) text: Cow<'a, str>,
    pub(in crate::responses) citations: Vec<Citation>,
    pub(in crate::responses) logprobs: Vec<Token>,
}

/// A source of a text. Offsets count characters.
#[derive(Debug, Default, Clone)]
pub(in crate::responses) struct Citation {
    pub(in crate::responses) url: String,
    pub(in crate::responses) title: String,
    pub(in crate::responses) start: u64,
    pub(in crate::responses) end: u64,
}

impl<'a> Answer<'a> {
    pub(in crate::responses) fn read(cursor: &mut Cursor<'a>) -> Result<Self, UnusableAnswer> {
        let mut answer = Self::default();
        typed::object(cursor, "response", |cursor, name| {
            match name {
                "status" => answer.status = typed::string(cursor, name)?,
                "incomplete_details" => {
                    typed::object(cursor, name, |cursor, name| {
                        match name {
                            "reason" => answer.reason = typed::string(cursor, name)?,
                            _ => skip(cursor)?,
                        }
                        Ok::<(), UnusableAnswer>(())
                    })?;
                }
                "output" if cursor.shape()? == Shape::Array => {
                    let mut items = Vec::new();
                    typed::array(cursor, name, |cursor, _| {
                        items.push(Item::read(cursor)?);
                        Ok::<(), UnusableAnswer>(())
                    })?;
                    answer.output = Some(items);
                }
                "usage" => answer.usage = read_usage(cursor.value()?),
                "error" => answer.error = Some(cursor.value()?).filter(|error| !error.is_null()),
                _ => skip(cursor)?,
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        Ok(answer)
    }

    /// The reason why the answer ended. If its status does not give one, the content decides.
    pub(in crate::responses) fn stop(&self, has_calls: bool, is_refused: bool) -> Stop {
        if self.status.as_deref() != Some("incomplete") {
            return match (has_calls, is_refused) {
                (true, _) => Stop::ToolCalls,
                (false, true) => Stop::Refusal { category: None },
                (false, false) => Stop::End,
            };
        }
        match self.reason.as_deref() {
            Some("max_output_tokens") => Stop::Length,
            Some("content_filter") => Stop::Filter(None),
            _ => Stop::Paused,
        }
    }
}

impl<'a> Item<'a> {
    pub(in crate::responses) fn read(cursor: &mut Cursor<'a>) -> Result<Self, UnusableAnswer> {
        let mut item = Self::default();
        typed::object(cursor, "item", |cursor, name| {
            match name {
                "type" => item.kind = typed::string(cursor, name)?.unwrap_or_default(),
                "id" => item.id = typed::string(cursor, name)?,
                "call_id" => item.call_id = typed::string(cursor, name)?,
                "name" => item.name = typed::string(cursor, name)?,
                "arguments" => item.arguments = arguments(cursor)?,
                "encrypted_content" => {
                    item.encrypted = typed::string(cursor, name)?.unwrap_or_default();
                }
                "content" => item.content = parts(cursor)?,
                "summary" => item.summary = parts(cursor)?,
                _ => skip(cursor)?,
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        Ok(item)
    }

    /// The reasoning to show: its summary if there is one, otherwise its text.
    pub(in crate::responses) fn thought(&self) -> String {
        let parts = if self.summary.iter().any(|part| !part.text.is_empty()) {
            &self.summary
        } else {
            &self.content
        };
        let texts = parts.iter().map(|part| &*part.text);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }
}

impl<'a> Part<'a> {
    pub(in crate::responses) fn read(cursor: &mut Cursor<'a>) -> Result<Self, UnusableAnswer> {
        let mut part = Self::default();
        let mut refusal = None;
        typed::object(cursor, "part", |cursor, name| {
            match name {
                "type" => {
                    let kind = typed::string(cursor, name)?;
                    part.is_refusal = kind.as_deref() == Some("refusal");
                    part.is_reasoning = kind.as_deref() == Some("reasoning_text");
                }
                "text" => part.text = typed::string(cursor, name)?.unwrap_or_default(),
                "refusal" => refusal = typed::string(cursor, name)?,
                "logprobs" => part.logprobs = logprobs::read(cursor)?,
                "annotations" => typed::array(cursor, name, |cursor, _| {
                    part.citations.extend(Citation::read(cursor)?);
                    Ok::<(), UnusableAnswer>(())
                })?,
                _ => skip(cursor)?,
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        if part.is_refusal {
            part.text = refusal.unwrap_or_default();
        }
        Ok(part)
    }
}

impl Citation {
    /// Reads an annotation. Other dialects have only those that refer to a web page.
    pub(in crate::responses) fn read(
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<Self>, UnusableAnswer> {
        let mut is_web = false;
        let mut citation = Self::default();
        typed::object(cursor, "annotation", |cursor, name| {
            match name {
                "type" => is_web = typed::string(cursor, name)?.as_deref() == Some("url_citation"),
                "url" => citation.url = typed::string(cursor, name)?.unwrap_or_default().into(),
                "title" => citation.title = typed::string(cursor, name)?.unwrap_or_default().into(),
                "start_index" => citation.start = offset(cursor, name)?,
                "end_index" => citation.end = offset(cursor, name)?,
                _ => skip(cursor)?,
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        Ok(is_web.then_some(citation))
    }
}

fn offset(cursor: &mut Cursor<'_>, name: &str) -> Result<u64, ValueError> {
    Ok(typed::integer(cursor, name)?.map_or(0, Integer::saturating))
}

fn parts<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Part<'a>>, UnusableAnswer> {
    let mut parts = Vec::new();
    typed::array(cursor, "content", |cursor, _| {
        parts.push(Part::read(cursor)?);
        Ok::<(), UnusableAnswer>(())
    })?;
    Ok(parts)
}

/// Reads arguments: JSON in a string. Some servers send the JSON itself.
fn arguments<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, UnusableAnswer> {
    Ok(match cursor.shape()? {
        Shape::Object => Cow::Borrowed(cursor.value()?.text()),
        _ => typed::string(cursor, "arguments")?.unwrap_or_default(),
    })
}

pub(in crate::responses) fn skip(cursor: &mut Cursor<'_>) -> Result<(), ValueError> {
    cursor.value()?;
    Ok(())
}
