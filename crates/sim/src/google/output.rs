//! Limits the model's output to what the two Google protocols support.

use super::{Continuation, Refusal};
use crate::call_context::CallContext;
use crate::fault::Script;
use crate::model::Prompt;
use crate::model::{Call, ChunkedText, Output, respond};
use crate::tokens::{count_tokens, cut};
use serde_json::Value;

const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Creates the outputs of a call. Their total size is limited; one byte of text counts as `weight` bytes.
pub(crate) fn outputs(
    prompt: &Prompt,
    script: &Script,
    count: usize,
    weight: usize,
) -> Result<Vec<Output>, Refusal> {
    let mut outputs = Vec::new();
    let mut bytes = 0_usize;
    for choice in 0..count {
        let mut output = respond(prompt, script, choice);
        bytes = bytes.saturating_add(output.text.as_str().len().saturating_mul(weight));
        if bytes > ANSWER_BYTES_MAX {
            return Err(Refusal::invalid("The answer would be too long."));
        }
        // Arguments that a token limit has cut are no longer a JSON object.
        output.calls.retain(|call| arguments(call).is_object());
        outputs.push(output);
    }
    Ok(outputs)
}

pub(crate) fn arguments(call: &Call) -> Value {
    serde_json::from_str(call.arguments.as_str()).unwrap_or_default()
}

/// Replaces the text of an output and updates its token counts.
pub(crate) fn replace_text(output: &mut Output, text: String) {
    let before = count_tokens(output.text.as_str());
    let calls = output
        .tokens
        .saturating_sub(output.reasoning_tokens)
        .saturating_sub(before);
    let calls = if output.calls.is_empty() { 0 } else { calls };
    output.tokens = output.reasoning_tokens + count_tokens(&text) + calls;
    output.text = ChunkedText::new(text);
}

/// If the request continues an earlier answer, removes the part of the text that was already sent. Otherwise, if the
/// script asks for it and the output has no calls, cuts the text in half and returns the token for the rest.
pub(crate) fn continue_or_stop(
    output: &mut Output,
    continued: Option<Continuation>,
    context: &CallContext<'_>,
) -> Option<String> {
    if let Some(continued) = continued {
        let rest = output.text.as_str().get(continued.bytes..);
        let rest = rest.unwrap_or_default().to_owned();
        replace_text(output, rest);
        return None;
    }
    if !context.script.google.continuation || !output.calls.is_empty() {
        return None;
    }
    let tokens = count_tokens(output.text.as_str());
    let (half, _) = cut(output.text.as_str(), tokens / 2);
    let half = half.to_owned();
    let token = Continuation { bytes: half.len() }.token(context.name);
    replace_text(output, half);
    Some(token)
}
