//! What a candidate tells: the model's output, brought into what this protocol can say.

use super::request::{Request, continuation_token};
use super::shape::{Blob, Candidate, FunctionCall, SafetyRating};
use crate::ask::Ask;
use crate::google::{Refusal, Signer};
use crate::mind::{Call, Finish, Output, Said, think};
use crate::seed::Seed;
use crate::tokens::{count_tokens, cut};
use serde_json::Value;

const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How many bytes an alternative of a token takes for each byte of text.
const LOGPROB_WEIGHT: usize = 16;

/// One candidate, in the order in which it is told: thoughts, text, picture, calls, ending.
#[derive(Debug)]
pub(super) struct Telling {
    pub(super) index: usize,
    /// Empty where thoughts are not shown.
    pub(super) thoughts: Said,
    pub(super) text: Said,
    pub(super) picture: Option<Blob>,
    pub(super) calls: Vec<FunctionCall>,
    /// Stands at the first call, or else at the end.
    pub(super) signature: Option<String>,
    pub(super) ending: Ending,
    /// How many alternatives of each token are told.
    pub(super) logprobs: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Ending {
    reason: String,
    message: Option<&'static str>,
    continuation_token: Option<String>,
}

/// The candidates of a call, and the outputs they tell. All together they fit into memory.
pub(super) fn tellings(
    request: &Request,
    ask: &Ask<'_>,
    seed: &mut Seed,
) -> Result<(Vec<Telling>, Vec<Output>), Refusal> {
    let mut tellings = Vec::new();
    let mut outputs = Vec::new();
    let mut bytes = 0_usize;
    let alternatives = request.logprobs.map_or(0, |alternatives| 1 + alternatives);
    let weight = 1 + LOGPROB_WEIGHT * alternatives;
    for index in 0..request.candidates {
        let mut output = think(&request.prompt, ask.script, index);
        let told = output.text.as_str().len().saturating_mul(weight);
        bytes = bytes.saturating_add(told);
        if bytes > ANSWER_BYTES_MAX {
            return Err(Refusal::invalid("The answer would be too long."));
        }
        let ending = fit(&mut output, request, ask);
        tellings.push(telling(index, &output, ending, request, ask, seed));
        outputs.push(output);
    }
    Ok((tellings, outputs))
}

/// Takes out of an output what cannot be told, and says how it ends.
fn fit(output: &mut Output, request: &Request, ask: &Ask<'_>) -> Ending {
    // Arguments that a limit has cut are no object any more.
    output.calls.retain(|call| arguments(call).is_object());
    if request.bare_word
        && let Ok(Value::String(word)) = serde_json::from_str(output.text.as_str())
    {
        retext(output, word);
    }
    if !request.modalities.text {
        retext(output, String::new());
    }
    if let Some(rest) = request
        .continued_at
        .and_then(|at| output.text.as_str().get(at..))
    {
        retext(output, rest.to_owned());
    } else if ask.script.google.continuation && output.calls.is_empty() {
        let tokens = count_tokens(output.text.as_str());
        let (half, _) = cut(output.text.as_str(), tokens / 2);
        let token = continuation_token(ask.name, half.len());
        retext(output, half.to_owned());
        return Ending {
            reason: "CONTINUATION".to_owned(),
            message: None,
            continuation_token: Some(token),
        };
    }
    let reason = match (&ask.script.finish, output.finish) {
        (Some(word), _) => word.clone(),
        (None, Finish::Stop | Finish::Calls) => "STOP".to_owned(),
        (None, Finish::Length) => "MAX_TOKENS".to_owned(),
        (None, Finish::Filter) => "SAFETY".to_owned(),
    };
    // A model that fails at its tools says nothing.
    let failed = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"].contains(&reason.as_str());
    if failed {
        output.calls.clear();
        retext(output, String::new());
    }
    Ending {
        reason,
        message: failed.then_some("Malformed function call: print(default_api.sim_upstream("),
        continuation_token: None,
    }
}

/// Gives an output another text, and counts again.
fn retext(output: &mut Output, text: String) {
    let before = count_tokens(output.text.as_str());
    let calls = output
        .tokens
        .saturating_sub(output.reasoning_tokens)
        .saturating_sub(before);
    let calls = if output.calls.is_empty() { 0 } else { calls };
    output.tokens = output.reasoning_tokens + count_tokens(&text) + calls;
    output.text = Said::new(text);
}

fn arguments(call: &Call) -> Value {
    serde_json::from_str(call.arguments.as_str()).unwrap_or_default()
}

fn telling(
    index: usize,
    output: &Output,
    ending: Ending,
    request: &Request,
    ask: &Ask<'_>,
    seed: &mut Seed,
) -> Telling {
    let google = &ask.script.google;
    let calls: Vec<_> = output
        .calls
        .iter()
        .map(|call| FunctionCall {
            name: call.name.clone(),
            args: arguments(call),
            id: (!google.no_call_ids).then(|| format!("call_Sim{}", seed.letters(12))),
        })
        .collect();
    let signer = Signer::new(ask.name);
    let signature = (!google.unsigned).then(|| match calls.first() {
        Some(first) => signer.sign_call(&first.name, seed),
        None => signer.sign_text(seed),
    });
    let (question, _) = request.prompt.question();
    let picture = request.modalities.picture.filter(|_| calls.is_empty());
    Telling {
        index,
        thoughts: if request.thoughts {
            output.reasoning.clone()
        } else {
            Said::default()
        },
        text: output.text.clone(),
        picture: picture.map(|picture| Blob {
            mime_type: "image/png",
            data: picture.painted(question),
        }),
        calls,
        signature,
        ending,
        logprobs: request.logprobs,
    }
}

impl Ending {
    /// The candidate that ends with it.
    pub(super) fn candidate(&self, index: usize) -> Candidate {
        Candidate {
            finish_reason: Some(self.reason.clone()),
            finish_message: self.message,
            continuation_token: self.continuation_token.clone(),
            safety_ratings: (self.reason == "SAFETY").then(SafetyRating::blocking),
            index,
            ..Candidate::default()
        }
    }
}
