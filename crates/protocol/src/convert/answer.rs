//! Converts whole answers between dialects.

use super::codecs::{read_response, write_response};
use super::observer::Observer;
use super::pictures;
use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Block};
use crate::dialect::Dialect;
use crate::images::Pictures;
use crate::native::{Answer, ToolCallCounter, UnusableAnswer, reports_unbillable_usage};

/// Reads an answer in the upstream's dialect and writes it in the client's.
pub fn convert_answer(
    from: Dialect,
    to: Dialect,
    body: &[u8],
    context: &AnswerContext,
) -> Result<Answer, UnusableAnswer> {
    let mut response = read_response(from, body, &context.model)?;
    let reported = response.usage;
    let mut tools = ToolCallCounter::default();
    tools.count(from, body);
    let complete_report = reported.filter(|usage| usage.is_small() && usage.has_both_parts());
    let output_tokens_counted = match complete_report {
        Some(_) => 0,
        None => Observer::tokens_of(&response),
    };
    let blocks = response.blocks.iter().map(|block| &block.kind);
    let delivered = blocks.filter(|block| block.is_picture()).count();
    let answer = Answer {
        usage: reported,
        usage_malformed: reported.is_none() && reports_unbillable_usage(from, body),
        output_tokens_counted,
        tools: tools.calls(),
        pictures: Pictures::some(delivered as u64),
        ..Answer::default()
    };
    if !pictures::can_contain_images(to) {
        for block in &mut response.blocks {
            if let Block::Image { mime } = &block.kind {
                block.text = pictures::note(mime);
                block.kind = Block::Text;
            }
        }
    }
    // The client sees the usage that it is charged for.
    let summary = answer.summary();
    let counted = || summary.counted(context.input_tokens);
    response.usage = Some(summary.report().unwrap_or_else(counted));
    Ok(Answer {
        pieces: ByteQueue::from(write_response(to, &response, context)),
        ..answer
    })
}
