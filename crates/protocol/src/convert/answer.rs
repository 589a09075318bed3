//! Whole answers, from one dialect into another.

use super::codecs::{read_response, write_response};
use super::observer::Observer;
use crate::canon::Echo;
use crate::dialect::Dialect;
use crate::images::Pictures;
use crate::joined::Joined;
use crate::native::{Answer, Broken, ToolWatch, reports_unbillable_usage};
use crate::usage::Usage;

/// Reads an answer of the upstream's dialect and writes it in the caller's.
pub fn convert_answer(
    from: Dialect,
    to: Dialect,
    body: &[u8],
    echo: &Echo,
) -> Result<Answer, Broken> {
    let mut response = read_response(from, body, &echo.model)?;
    let usage = response.usage;
    let mut tools = ToolWatch::default();
    tools.look(from, body);
    let told = usage.filter(|usage| usage.is_believable() && usage.output_total() > 0);
    let output_tokens_counted = match told {
        Some(_) => 0,
        None => Observer::tokens_of(&response),
    };
    let blocks = response.blocks.iter().map(|folded| &folded.block);
    let pictures = blocks.filter(|block| block.is_picture()).count();
    // The caller is told what the call is charged by.
    response.usage.get_or_insert(Usage {
        input: echo.input_tokens,
        output: output_tokens_counted,
        ..Usage::default()
    });
    Ok(Answer {
        pieces: Joined::from(write_response(to, &response, echo)),
        usage,
        usage_malformed: usage.is_none() && reports_unbillable_usage(from, body),
        output_tokens_counted,
        seconds: None,
        tools: tools.calls(),
        pictures: Pictures::some(pictures as u64),
    })
}
