//! The `usage` object, true or bent by a script.

use super::request::Request;
use crate::fault::{Script, UsageFault};
use crate::figure::Figure;
use crate::mind::Output;
use crate::told::{Hosted, Used};
use serde::Serialize;

/// True figures of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Figures {
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
    hosted: Hosted,
}

impl Figures {
    pub(super) fn of(request: &Request, output: &Output, script: &Script) -> Self {
        let input = request.prompt.tokens();
        let cached = script
            .cached
            .unwrap_or_else(|| request.prompt.cached_tokens())
            .min(input);
        Self {
            input,
            cached,
            cache_write: script.cache_write.unwrap_or(0).min(input - cached),
            output: output.tokens,
            reasoning: output.reasoning_tokens,
            hosted: Hosted {
                fetches: 0,
                ..script.hosted
            },
        }
    }

    /// What the call used, for the log.
    pub(super) fn used(self) -> Used {
        Used {
            fresh_input: self.input - self.cached - self.cache_write,
            cache_read: self.cached,
            cache_write: self.cache_write,
            output: self.output,
            reasoning: self.reasoning,
            tools: self.hosted,
        }
    }

    /// The figures as a script wants them; `None`: they are not told.
    pub(super) fn told(self, fault: UsageFault) -> Option<Usage> {
        if fault == UsageFault::Missing {
            return None;
        }
        let bend = |figure| Figure::bent(figure, fault);
        Some(Usage {
            input_tokens: bend(self.input),
            input_tokens_details: InputDetails {
                cached_tokens: bend(self.cached),
                cache_write_tokens: bend(self.cache_write),
            },
            output_tokens: bend(self.output),
            output_tokens_details: OutputDetails {
                reasoning_tokens: bend(self.reasoning),
            },
            total_tokens: bend(self.input + self.output),
        })
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Usage {
    input_tokens: Figure,
    input_tokens_details: InputDetails,
    output_tokens: Figure,
    output_tokens_details: OutputDetails,
    total_tokens: Figure,
}

#[derive(Debug, Clone, Serialize)]
struct InputDetails {
    cached_tokens: Figure,
    cache_write_tokens: Figure,
}

#[derive(Debug, Clone, Serialize)]
struct OutputDetails {
    reasoning_tokens: Figure,
}
