//! Plans the candidates of an answer: limits the model's output to what this protocol supports.

use super::grounding::{FetchedPages, Grounding};
use super::request::Request;
use super::shape::{Blob, Candidate, FunctionCall, SafetyRating};
use crate::call_context::CallContext;
use crate::google::{Refusal, Signer, arguments, continue_or_stop, outputs, replace_text};
use crate::model::{ChunkedText, Finish, Output};
use crate::seed::Seed;
use serde_json::Value;

/// An estimate of the bytes that one reported log probability adds for each byte of text.
const LOGPROB_WEIGHT: usize = 16;

/// One candidate. Its members are sent in the order thoughts, text, picture, calls, ending.
#[derive(Debug)]
pub(super) struct CandidatePlan {
    pub(super) index: usize,
    /// Empty if thoughts are not shown.
    pub(super) thoughts: ChunkedText,
    pub(super) text: ChunkedText,
    pub(super) picture: Option<Blob>,
    pub(super) calls: Vec<FunctionCall>,
    /// The signature is sent with the first call, or at the end if there is no call.
    pub(super) signature: Option<String>,
    pub(super) ending: Ending,
    /// The number of alternatives to report for each token; `None` means no log probabilities.
    pub(super) logprobs: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Ending {
    reason: String,
    message: Option<&'static str>,
    continuation_token: Option<String>,
    grounding: Option<Grounding>,
    fetched: Option<FetchedPages>,
}

/// Plans the candidates of a call. Also returns the model's outputs.
pub(super) fn plans(
    request: &Request,
    context: &CallContext<'_>,
    seed: &mut Seed,
) -> Result<(Vec<CandidatePlan>, Vec<Output>), Refusal> {
    let alternatives = request.logprobs.map_or(0, |alternatives| 1 + alternatives);
    let weight = 1 + LOGPROB_WEIGHT * alternatives;
    let mut outputs = outputs(&request.prompt, context.script, request.candidates, weight)?;
    let plans = outputs
        .iter_mut()
        .enumerate()
        .map(|(index, output)| {
            let ending = fit_to_protocol(output, request, context);
            plan(index, output, ending, request, context, seed)
        })
        .collect();
    Ok((plans, outputs))
}

/// Removes content that this protocol cannot express, and decides how the candidate ends.
fn fit_to_protocol(output: &mut Output, request: &Request, context: &CallContext<'_>) -> Ending {
    if request.bare_word
        && let Ok(Value::String(word)) = serde_json::from_str(output.text.as_str())
    {
        replace_text(output, word);
    }
    if !request.modalities.text {
        replace_text(output, String::new());
    }
    if let Some(token) = continue_or_stop(output, request.continued, context) {
        return Ending {
            reason: "CONTINUATION".to_owned(),
            message: None,
            continuation_token: Some(token),
            grounding: None,
            fetched: None,
        };
    }
    let reason = match (&context.script.finish, output.finish) {
        (Some(word), _) => word.clone(),
        (None, Finish::Stop | Finish::Calls) => "STOP".to_owned(),
        (None, Finish::Length) => "MAX_TOKENS".to_owned(),
        (None, Finish::Filter) => "SAFETY".to_owned(),
    };
    // If a function call failed, the answer has no other content.
    let failed = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"].contains(&reason.as_str());
    if failed {
        output.calls.clear();
        replace_text(output, String::new());
    }
    let searches = context.script.hosted.searches;
    Ending {
        reason,
        message: failed.then_some("Malformed function call: print(default_api.sim_upstream("),
        continuation_token: None,
        grounding: output
            .citation
            .as_ref()
            .filter(|_| !output.text.is_empty())
            .map(|citation| Grounding::of(citation, output.text.as_str(), searches))
            .or_else(|| Grounding::searched(searches)),
        fetched: FetchedPages::of(context.script.hosted.fetches),
    }
}

fn plan(
    index: usize,
    output: &Output,
    ending: Ending,
    request: &Request,
    context: &CallContext<'_>,
    seed: &mut Seed,
) -> CandidatePlan {
    let google = &context.script.google;
    let calls: Vec<_> = output
        .calls
        .iter()
        .map(|call| FunctionCall {
            name: call.name.clone(),
            args: arguments(call),
            id: (!google.no_call_ids).then(|| format!("call_Sim{}", seed.letters(12))),
        })
        .collect();
    let first = calls.first().map(|call| call.name.as_str());
    let signature = Signer::of(context).sign(first, seed);
    let (question, _) = request.prompt.question();
    let picture = request.modalities.picture.filter(|_| calls.is_empty());
    CandidatePlan {
        index,
        thoughts: if request.thoughts {
            output.reasoning.clone()
        } else {
            ChunkedText::default()
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
    pub(super) fn candidate(&self, index: usize) -> Candidate {
        Candidate {
            finish_reason: Some(self.reason.clone()),
            finish_message: self.message,
            continuation_token: self.continuation_token.clone(),
            grounding_metadata: self.grounding.clone(),
            url_context_metadata: self.fetched.clone(),
            safety_ratings: (self.reason == "SAFETY").then(SafetyRating::blocking),
            index,
            ..Candidate::default()
        }
    }
}
