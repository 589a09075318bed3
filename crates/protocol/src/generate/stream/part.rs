//! Reads one part of a candidate: text, a function call, or inline data.

use std::borrow::Cow;

use crate::canon::base64;
use crate::json::typed::{self, compact};
use crate::json::{Cursor, Raw};
use crate::unusable_answer::UnusableAnswer;

#[derive(Default)]
pub(super) struct Part<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) thought: bool,
    pub(super) signature: Option<Cow<'a, str>>,
    pub(super) call: Option<Raw<'a>>,
    pub(super) inline: Option<Raw<'a>>,
}

impl<'a> Part<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, UnusableAnswer> {
        let mut part = Self::default();
        typed::object::<UnusableAnswer>(cursor, "part", |cursor, name| {
            match name {
                "text" => part.text = typed::string(cursor, "text")?,
                "thought" => part.thought = cursor.value()?.boolean() == Some(true),
                "thoughtSignature" => {
                    let text = typed::string(cursor, "thoughtSignature")?;
                    part.signature = text.filter(|text| !text.is_empty());
                }
                "functionCall" => part.call = Some(cursor.value()?).filter(|call| !call.is_null()),
                "inlineData" => part.inline = Some(cursor.value()?).filter(|data| !data.is_null()),
                _ => drop(cursor.value()?),
            }
            Ok(())
        })?;
        Ok(part)
    }
}

/// A function call. Its arguments are JSON without white space.
pub(super) struct FunctionCall<'a> {
    pub(super) name: String,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) arguments: Option<String>,
}

impl<'a> FunctionCall<'a> {
    pub(super) fn read(call: Raw<'a>) -> Result<Self, UnusableAnswer> {
        let mut read = Self {
            name: String::new(),
            id: None,
            arguments: None,
        };
        let mut cursor = Cursor::new(call.text());
        typed::object::<UnusableAnswer>(&mut cursor, "functionCall", |cursor, member| {
            match member {
                "name" => {
                    let text = typed::string(cursor, "functionCall.name")?;
                    read.name = text.unwrap_or_default().into_owned();
                }
                "id" => {
                    let text = typed::string(cursor, "functionCall.id")?;
                    read.id = text.filter(|id| !id.is_empty());
                }
                "args" => {
                    let args = cursor.value()?;
                    read.arguments = (!args.is_null()).then(|| compact(args.text()));
                }
                _ => drop(cursor.value()?),
            }
            Ok(())
        })?;
        Ok(read)
    }
}

/// Media inside an answer, as base64 in the standard alphabet.
#[derive(Default)]
pub(super) struct InlineData {
    pub(super) mime: String,
    pub(super) data: String,
}

impl InlineData {
    pub(super) fn read(inline: Raw<'_>) -> Result<Self, UnusableAnswer> {
        let mut read = Self::default();
        let mut cursor = Cursor::new(inline.text());
        typed::object::<UnusableAnswer>(&mut cursor, "inlineData", |cursor, name| {
            match name {
                "mimeType" => {
                    let text = typed::string(cursor, "inlineData.mimeType")?;
                    read.mime = text.unwrap_or_default().into_owned();
                }
                "data" => {
                    let text = typed::string(cursor, "inlineData.data")?.unwrap_or_default();
                    read.data = base64::standard(&text).into_owned();
                }
                _ => drop(cursor.value()?),
            }
            Ok(())
        })?;
        Ok(read)
    }
}
