//! Writes the `usage` object, either true or changed by a fault.

use super::cache::Ttl;
use super::request::Request;
use crate::fault::{Script, UsageFault};
use crate::model::Output;
use crate::true_usage::{HostedTools, TrueUsage};
use crate::usage_number::UsageNumber;
use serde::Serialize;

/// The minimum size of a prompt that is cached.
const CACHE_TOKENS_MIN: u64 = 1024;
const CACHE_BLOCK_TOKENS: u64 = 128;

/// The true token counts of a call, in classes that do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenCounts {
    fresh: u64,
    read: u64,
    written: u64,
    ttl: Ttl,
    output: u64,
    thinking: u64,
    hosted: HostedTools,
}

impl TokenCounts {
    pub(super) fn of(request: &Request, output: &Output, script: &Script) -> Self {
        let tokens = request.prompt.tokens();
        let (read, written) = match request.cache {
            Some(_) => {
                let read = request.prompt.cached_tokens();
                (read, writable(tokens).saturating_sub(read))
            }
            None => (0, 0),
        };
        let read = script.cached.unwrap_or(read).min(tokens);
        let written = script.cache_write.unwrap_or(written).min(tokens - read);
        Self {
            fresh: tokens - read - written,
            read,
            written,
            ttl: request.cache.unwrap_or(Ttl::FiveMinutes),
            output: output.tokens,
            thinking: output.reasoning_tokens,
            hosted: HostedTools {
                code_runs: 0,
                file_searches: 0,
                ..script.hosted
            },
        }
    }

    pub(super) fn true_usage(self) -> TrueUsage {
        TrueUsage {
            fresh_input: self.fresh,
            cache_read: self.read,
            cache_write: self.written,
            output: self.output,
            reasoning: self.thinking,
            tools: self.hosted,
        }
    }

    /// The usage in the first event: the input, and at most one output token.
    pub(super) fn at_start(self, fault: UsageFault) -> Option<Usage> {
        let begun = Self {
            output: self.output.min(1),
            thinking: self.thinking.min(1),
            hosted: HostedTools::default(),
            ..self
        };
        match fault {
            // All usage is reported at the end, so the first event has zeros.
            UsageFault::OnFinish => Some(begun.wire_usage(|_| UsageNumber::Number(0))),
            // The first report must be larger than the final one.
            UsageFault::Shrinking => Some(self.wire_usage(UsageNumber::Number)),
            _ => begun.reported(fault),
        }
    }

    /// The usage, changed by a fault; `None` if the fault is that it is missing.
    pub(super) fn reported(self, fault: UsageFault) -> Option<Usage> {
        if fault == UsageFault::Missing {
            return None;
        }
        Some(self.wire_usage(|number| UsageNumber::with_fault(number, fault)))
    }

    fn wire_usage(self, bend: impl Fn(u64) -> UsageNumber) -> Usage {
        let (five_minutes, one_hour) = match self.ttl {
            Ttl::FiveMinutes => (self.written, 0),
            Ttl::OneHour => (0, self.written),
        };
        Usage {
            input_tokens: bend(self.fresh),
            cache_creation_input_tokens: bend(self.written),
            cache_read_input_tokens: bend(self.read),
            cache_creation: CacheCreation {
                ephemeral_5m_input_tokens: bend(five_minutes),
                ephemeral_1h_input_tokens: bend(one_hour),
            },
            output_tokens: bend(self.output),
            output_tokens_details: OutputDetails {
                thinking_tokens: bend(self.thinking),
            },
            server_tool_use: (!self.hosted.is_none()).then(|| ServerToolUse {
                web_search_requests: bend(self.hosted.searches),
                web_fetch_requests: bend(self.hosted.fetches),
            }),
            service_tier: "standard",
            inference_geo: "sim-geo-4711",
        }
    }
}

/// The number of the prompt's tokens that are in the cache after the call: whole blocks, if the prompt is long enough.
fn writable(tokens: u64) -> u64 {
    if tokens < CACHE_TOKENS_MIN {
        return 0;
    }
    tokens - tokens % CACHE_BLOCK_TOKENS
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Usage {
    input_tokens: UsageNumber,
    cache_creation_input_tokens: UsageNumber,
    cache_read_input_tokens: UsageNumber,
    cache_creation: CacheCreation,
    output_tokens: UsageNumber,
    output_tokens_details: OutputDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_tool_use: Option<ServerToolUse>,
    service_tier: &'static str,
    inference_geo: &'static str,
}

#[derive(Debug, Clone, Serialize)]
struct ServerToolUse {
    web_search_requests: UsageNumber,
    web_fetch_requests: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
struct CacheCreation {
    ephemeral_5m_input_tokens: UsageNumber,
    ephemeral_1h_input_tokens: UsageNumber,
}

#[derive(Debug, Clone, Serialize)]
struct OutputDetails {
    thinking_tokens: UsageNumber,
}
