//! Defines the wire format of an answer. An event of a stream has the same format as a whole answer.

use super::grounding::{FetchedPages, Grounding};
use super::logprobs::{self, LogprobsResult};
use super::usage::Usage;
use crate::logprob::Logprob;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "<[Candidate]>::is_empty")]
    pub(super) candidates: &'a [Candidate],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_metadata: Option<Usage>,
    pub(super) model_version: &'a str,
    pub(super) response_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    pub(super) block_reason: &'a str,
    pub(super) safety_ratings: [SafetyRating; 1],
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_message: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continuation_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) safety_ratings: Option<[SafetyRating; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grounding_metadata: Option<Grounding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url_context_metadata: Option<FetchedPages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) avg_logprobs: Option<Logprob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs_result: Option<LogprobsResult>,
    pub(super) index: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Content {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Part>,
    pub(super) role: &'static str,
}

/// One part. Absent members are not written.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<Blob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob {
    pub(super) mime_type: &'static str,
    pub(super) data: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct FunctionCall {
    pub(super) name: String,
    pub(super) args: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct SafetyRating {
    category: &'static str,
    probability: &'static str,
    blocked: bool,
}

impl SafetyRating {
    /// The rating of a text that is blocked.
    pub(super) fn blocking() -> [Self; 1] {
        [Self {
            category: "HARM_CATEGORY_DANGEROUS_CONTENT",
            probability: "HIGH",
            blocked: true,
        }]
    }
}

impl Candidate {
    /// Adds log probabilities with this many alternatives for each token.
    pub(super) fn with_logprobs(mut self, text: &str, alternatives: Option<usize>) -> Self {
        if let Some(alternatives) = alternatives {
            let (result, average) = logprobs::of(text, alternatives);
            self.logprobs_result = Some(result);
            self.avg_logprobs = Some(average);
        }
        self
    }
}

impl Content {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        Self {
            parts,
            role: "model",
        }
    }
}

impl Part {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    pub(super) fn thought(text: impl Into<String>) -> Self {
        Self {
            thought: Some(true),
            ..Self::text(text)
        }
    }

    pub(super) fn picture(blob: Blob) -> Self {
        Self {
            inline_data: Some(blob),
            ..Self::default()
        }
    }

    pub(super) fn call(call: FunctionCall) -> Self {
        Self {
            function_call: Some(call),
            ..Self::default()
        }
    }

    pub(super) fn signed(mut self, signature: Option<String>) -> Self {
        self.thought_signature = signature;
        self
    }
}
