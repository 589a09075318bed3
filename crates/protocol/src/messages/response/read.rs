//! Reads a whole message into the common form.

use super::stop::Ending;
use super::wire::{self, Source, WireBlock, length};
use crate::canon::{Block, Response, ResponseBlock};
use crate::json::{Cursor, Shape, utf8};
use crate::messages::usage::read_usage;
use crate::rejection;
use crate::unusable_answer::UnusableAnswer;

/// Reads a whole answer. An error body with status 200 is a failure.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, UnusableAnswer> {
    let mut cursor = Cursor::new(utf8(body)?);
    let mut ending = Ending::default();
    let mut usage = None;
    let mut blocks = None;
    let mut error = None;
    cursor.object(|cursor, name| {
        if name.is("content") && cursor.shape()? == Shape::Array {
            let blocks = blocks.get_or_insert_with(Vec::new);
            return cursor.array(|cursor| {
                let found = wire::read(cursor.value()?)?;
                blocks.extend(found.map(|found| read_block(found, model)));
                Ok(())
            });
        }
        let value = cursor.value()?;
        match &*name.decode_lossy() {
            "usage" if !value.is_null() => usage = read_usage(value, None),
            "type" if value.string().is_some_and(|kind| kind.is("error")) => {
                error.get_or_insert(value);
            }
            "error" if !value.is_null() => error = Some(value),
            name => ending.note(name, value),
        }
        Ok::<(), UnusableAnswer>(())
    })?;
    cursor.end()?;
    if let Some(error) = error {
        let failure = rejection::read_event(error.text().as_bytes(), model);
        return Err(UnusableAnswer::Failure(failure));
    }
    let Some(mut blocks) = blocks else {
        return Err(UnusableAnswer::malformed("the answer has no content"));
    };
    let has_calls = blocks.iter().any(is_call);
    let (stop, refusal) = ending.stop(has_calls);
    blocks.extend(refusal.map(|text| ResponseBlock {
        kind: Block::Refusal,
        text,
        opaque: None,
        citations: Vec::new(),
        logprobs: Vec::new(),
    }));
    Ok(Response {
        blocks,
        stop,
        usage,
    })
}

fn is_call(block: &ResponseBlock) -> bool {
    matches!(block.kind, Block::ToolCall { .. })
}

fn read_block(found: WireBlock, model: &str) -> ResponseBlock {
    let end = length(&found.text);
    let citation = |Source { url, title }| (url, title, 0, end);
    ResponseBlock {
        citations: found.citations.into_iter().map(citation).collect(),
        kind: found.block,
        text: found.text,
        opaque: found.value.map(|value| wire::opaque(value, model)),
        logprobs: Vec::new(),
    }
}
