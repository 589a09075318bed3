//! Reads a request and applies the vendor's checks.

use crate::call_context::CallContext;
use crate::catalog;
use crate::openai::{Member, Refusal, type_name};
use crate::tokens::count_tokens;
use crate::vector;
use serde_json::Value;

/// The default and maximum length of a vector.
pub(super) const DIMENSIONS: usize = 1536;
const INPUTS_MAX: usize = 2048;
const INPUT_TOKENS_MAX: u64 = 8192;
const TOKENS_MAX: u64 = 300_000;
/// The size of the vocabulary. Token ids must be smaller.
const VOCABULARY: u64 = 100_277;
const KNOWN: [&str; 5] = ["model", "input", "dimensions", "encoding_format", "user"];

#[derive(Debug)]
pub(super) struct Request {
    pub(super) inputs: Vec<Input>,
    pub(super) dimensions: usize,
    pub(super) base64: bool,
    pub(super) tokens: u64,
}

#[derive(Debug)]
pub(super) enum Input {
    Text(String),
    Tokens(Vec<u64>),
}

impl Input {
    pub(super) fn vector(&self, dimensions: usize) -> Vec<f32> {
        match self {
            Self::Text(text) => vector::of_text(text, dimensions),
            Self::Tokens(tokens) => vector::of_tokens(tokens, dimensions),
        }
    }

    fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) => count_tokens(text),
            Self::Tokens(tokens) => tokens.len() as u64,
        }
    }
}

pub(super) fn read(body: &Value, context: &CallContext<'_>) -> Result<Request, Refusal> {
    let top = Member::object(body, "")?;
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    if context.script.strict {
        top.refuse_unknown(&KNOWN)?;
    }
    let inputs = inputs(top.required("input")?)?;
    if inputs.len() > INPUTS_MAX {
        return Err(bad_input(format!(
            "Invalid 'input': array too long. Expected an array with maximum length {INPUTS_MAX}."
        )));
    }
    let mut tokens = 0;
    for input in &inputs {
        let own = input.tokens();
        if own > INPUT_TOKENS_MAX {
            return Err(bad_input(format!(
                "This model's maximum context length is {INPUT_TOKENS_MAX} tokens, however you \
                 requested {own} tokens. Please reduce your prompt."
            )));
        }
        tokens += own;
    }
    if tokens > TOKENS_MAX {
        return Err(bad_input(format!(
            "Requested {tokens} tokens, max {TOKENS_MAX} tokens per request."
        )));
    }
    let longest = i64::try_from(DIMENSIONS).unwrap_or(i64::MAX);
    let dimensions = top.integer("dimensions", 1, longest)?;
    let dimensions = dimensions.and_then(|it| usize::try_from(it).ok());
    let encoding = top.one_of("encoding_format", &["float", "base64"])?;
    Ok(Request {
        inputs,
        dimensions: dimensions.unwrap_or(DIMENSIONS),
        base64: match context.name {
            name if name.starts_with("sim-embed-float") => false,
            name if name.starts_with("sim-embed-base64") => true,
            _ => encoding == Some("base64"),
        },
        tokens,
    })
}

fn inputs(input: &Value) -> Result<Vec<Input>, Refusal> {
    match input {
        Value::String(text) => Ok(vec![text_input(text)?]),
        Value::Array(items) if items.is_empty() => {
            Err(bad_input("'$.input' is invalid. It must not be empty."))
        }
        Value::Array(items) if items.iter().all(Value::is_number) => Ok(vec![tokens(items)?]),
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::String(text) => text_input(text),
                Value::Array(items) if !items.is_empty() => tokens(items),
                other => Err(wrong(other)),
            })
            .collect(),
        other => Err(wrong(other)),
    }
}

fn text_input(text: &str) -> Result<Input, Refusal> {
    if text.is_empty() {
        return Err(bad_input("input cannot be an empty string"));
    }
    Ok(Input::Text(text.to_owned()))
}

fn tokens(items: &[Value]) -> Result<Input, Refusal> {
    let token = |item: &Value| {
        let token = item.as_u64().filter(|token| *token < VOCABULARY);
        token.ok_or_else(|| bad_input("Invalid token id in 'input'."))
    };
    Ok(Input::Tokens(
        items.iter().map(token).collect::<Result<_, _>>()?,
    ))
}

fn wrong(value: &Value) -> Refusal {
    bad_input(format!(
        "Invalid type for 'input': expected a string or an array, but got {} instead.",
        type_name(value)
    ))
}

fn bad_input(message: impl Into<String>) -> Refusal {
    Refusal::invalid(message).param("input")
}
