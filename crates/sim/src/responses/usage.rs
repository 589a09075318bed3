//! Writes the `usage` object, either true or changed by a fault.

use super::request::Request;
use crate::fault::{Script, UsageFault};
use crate::model::Output;
use crate::true_usage::{HostedTools, TrueUsage};
use crate::usage_number::UsageNumber;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenCounts {
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
    hosted: HostedTools,
}

impl TokenCounts {
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
            hosted: HostedTools {
                fetches: 0,
                ..script.hosted
            },
        }
    }

    pub(super) fn true_usage(self) -> TrueUsage {
        TrueUsage {
            fresh_input: self.input - self.cached - self.cache_write,
            cache_read: self.cached,
            cache_write: self.cache_write,
            output: self.output,
            reasoning: self.reasoning,
            tools: self.hosted,
        }
    }

    /// The usage, changed by a fault; `None` if the fault is that it is missing.
    pub(super) fn reported(self, fault: UsageFault) -> Option<Usage> {
        if fault == UsageFault::Missing {
            return None;
        }
        let bend = |number| UsageNumber::with_fault(number, fault);
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
    input_tokens: UsageNumber,
    input_tokens_details: InputDetails,
    output_tokens: UsageNumber,
    output_tokens_details: OutputDetails,
    total_tokens: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
struct InputDetails {
    cached_tokens: UsageNumber,
    cache_write_tokens: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
struct OutputDetails {
    reasoning_tokens: UsageNumber,
}
