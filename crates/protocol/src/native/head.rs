//! What a request says that the gateway has to know.

use std::ops::Range;

use crate::count::InputCount;
use crate::json::patch::Edit;
use crate::tool::Tools;

/// What a request says that we must know, and where it says it.
#[derive(Debug, Clone)]
pub struct Head {
    /// The public model id.
    pub model: String,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether the caller asked for the usage chunk.
    pub include_usage: bool,
    /// The output limit of one choice; unknown when absent, zero or negative.
    pub output_tokens_max: Option<u64>,
    /// Answers asked for, at least one.
    pub choices: u32,
    /// Input tokens, as counted.
    pub input: InputCount,
    /// Whether input is to be written to a cache that is kept for an hour; Messages alone has it.
    pub long_cache: bool,
    /// Built-in tools that the request offers.
    pub tools: Tools,
    /// Sampling members set to something else than their default, which models of fixed sampling
    /// refuse on Messages; other dialects leave it empty.
    pub sampling: Vec<&'static str>,
    /// Empty where the body does not name the model.
    pub(crate) model_span: Range<usize>,
    /// What the contract demands to be changed, the model aside.
    pub(crate) edits: Vec<Edit>,
}
