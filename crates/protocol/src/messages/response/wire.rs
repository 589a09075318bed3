//! Reads blocks of an answer as upstreams send them: complete blocks, and the starts of blocks in a
//! stream.

use crate::canon::{Block, Opaque};
use crate::dialect::Dialect;
use crate::json::{Cursor, Raw, SyntaxError};
use crate::messages::fields::Fields;
use crate::messages::redacted;
use crate::unusable_answer::UnusableAnswer;

#[derive(Debug)]
pub(in crate::messages) struct WireBlock {
    pub(in crate::messages) block: Block,
    /// The text of the block so far.
    pub(in crate::messages) text: String,
    /// The signature of the block, or the marked data of a redacted thought.
    pub(in crate::messages) value: Option<String>,
    pub(in crate::messages) citations: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::messages) struct Source {
    pub(in crate::messages) url: String,
    pub(in crate::messages) title: String,
}

/// Reads a block. `None` for a type of block that only this dialect has. The gateway never requests these
/// types.
pub(in crate::messages) fn read(value: Raw<'_>) -> Result<Option<WireBlock>, UnusableAnswer> {
    let missing = |name: &str| UnusableAnswer::malformed(format!("a block has no `{name}`"));
    let mut fields = Fields::of(value).ok_or_else(|| missing("type"))?;
    let kind = fields.string("type").ok_or_else(|| missing("type"))?;
    let mut found = WireBlock {
        block: Block::Text,
        text: String::new(),
        value: None,
        citations: Vec::new(),
    };
    match kind.as_ref() {
        "text" => {
            found.text = fields.string("text").unwrap_or_default().into_owned();
            found.citations = fields.take("citations").map(sources).unwrap_or_default();
        }
        "thinking" => {
            found.block = Block::Thought;
            found.text = fields.string("thinking").unwrap_or_default().into_owned();
            let signature = fields.string("signature").filter(|text| !text.is_empty());
            found.value = signature.map(Into::into);
        }
        "redacted_thinking" => {
            found.block = Block::Thought;
            let data = fields.string("data").ok_or_else(|| missing("data"))?;
            found.value = Some(redacted::mark(&data));
        }
        "tool_use" => {
            let mut name = |name: &str| {
                let text = fields.string(name).filter(|text| !text.is_empty());
                text.map(String::from).ok_or_else(|| missing(name))
            };
            found.block = Block::ToolCall {
                id: name("id")?,
                name: name("name")?,
            };
            let input = fields.take("input");
            found.text = input.map_or_else(|| "{}".to_owned(), |input| input.text().to_owned());
        }
        _ => return Ok(None),
    }
    Ok(Some(found))
}

/// The source of a citation, if it is a web page.
pub(in crate::messages) fn source(citation: Raw<'_>) -> Option<Source> {
    let mut fields = Fields::of(citation)?;
    if fields.string("type")? != "web_search_result_location" {
        return None;
    }
    Some(Source {
        url: fields.string("url")?.into_owned(),
        title: fields.string("title").unwrap_or_default().into_owned(),
    })
}

fn sources(citations: Raw<'_>) -> Vec<Source> {
    let mut sources = Vec::new();
    let read = Cursor::new(citations.text()).array(|cursor| {
        sources.extend(source(cursor.value()?));
        Ok::<(), SyntaxError>(())
    });
    // A value that is not a list has no sources.
    if read.is_ok() { sources } else { Vec::new() }
}

/// A signature, marked with its origin.
pub(in crate::messages) fn opaque(value: String, model: &str) -> Opaque {
    Opaque {
        origin: Dialect::Messages,
        model: model.into(),
        text: value.into(),
    }
}

/// The length of a text in characters, the unit of citations.
pub(in crate::messages) fn length(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}
