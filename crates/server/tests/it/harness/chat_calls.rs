//! Request bodies of the tests, and their cost computed independently of the gateway.

use serde_json::{Value, json};

/// The model that most tests call.
pub(crate) const MODEL: &str = "maker/chat";

/// The output tokens that the first hold of a call covers, as the test gateway configures it.
pub(crate) const OUTPUT_RESERVE: u64 = 1000;

/// A chat body with one user message.
pub(crate) fn ask(prompt: &str) -> Value {
    json!({ "model": MODEL, "messages": [{ "role": "user", "content": prompt }] })
}

/// Adds members to a body.
pub(crate) fn with(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// The cost of tokens of the test gateway's model in micro-credits, at 1.25, 0.125 and 10 credits per million. The
/// exact sum is rounded up once.
pub(crate) fn cost(fresh: u64, cached: u64, output: u64) -> u64 {
    let [fresh, cached, output] = [fresh, cached, output].map(u128::from);
    let micro = (fresh * 1250 + cached * 125 + output * 10_000).div_ceil(1000);
    u64::try_from(micro).unwrap()
}

/// The cost of a reported chat usage at the test gateway's prices.
pub(crate) fn expected_cost(usage: &Value) -> u64 {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    let input = count(&usage["prompt_tokens"]);
    cost(input - cached, cached, count(&usage["completion_tokens"]))
}

/// An amount of a balance, read from its `_micro` member.
#[track_caller]
pub(crate) fn micro(amounts: &Value, name: &str) -> u64 {
    let text = amounts[format!("{name}_micro")].as_str();
    let text = text.unwrap_or_else(|| panic!("no {name}_micro in {amounts}"));
    text.parse().unwrap()
}
