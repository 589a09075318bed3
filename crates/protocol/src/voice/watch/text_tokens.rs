//! Text tokens of a realtime session: those that responses report, and an estimate for the current
//! response in case it never reports.

use std::collections::VecDeque;

use super::event::{Event, at, text_of};
use crate::answer_layout::count_written;
use crate::count::{self, Counter};
use crate::json::Raw;
use crate::usage::{Usage, count};

/// Members whose text the model reads.
const PROMPT_MEMBERS: [&str; 6] = [
    "instructions",
    "text",
    "transcript",
    "output",
    "arguments",
    "description",
];

/// The maximum number of requests for responses that are kept separately. The tokens of further requests are
/// added to the last one.
const REQUESTS_MAX: usize = 16;
/// Longer ids of events are not kept. The protocol does not allow longer ids.
const EVENT_ID_BYTES_MAX: usize = 512;

/// Text tokens, by the classes that are priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextTokens {
    /// Fresh input.
    pub input: u64,
    /// Input read from a cache.
    pub cached_input: u64,
    /// Output.
    pub output: u64,
}

impl TextTokens {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cached_input: self.cached_input.saturating_add(more.cached_input),
            output: self.output.saturating_add(more.output),
        }
    }

    /// Reads the usage of a response. Audio is billed by its duration, so only tokens that are
    /// reported as text, or not as audio, count.
    fn read(usage: Raw<'_>) -> Option<Self> {
        let number = |path: &[&str]| at(usage, path).and_then(count);
        let text = |total: &str, details: &str| {
            number(&[details, "text_tokens"]).or_else(|| {
                let audio = number(&[details, "audio_tokens"])?;
                Some(number(&[total])?.saturating_sub(audio))
            })
        };
        let input = text("input_tokens", "input_token_details")?;
        let cached = [
            "input_token_details",
            "cached_tokens_details",
            "text_tokens",
        ];
        let cached_input = number(&cached).unwrap_or(0).min(input);
        let tokens = Self {
            input: input - cached_input,
            cached_input,
            output: text("output_tokens", "output_token_details")?,
        };
        let believable = Usage {
            input,
            output: tokens.output,
            ..Usage::default()
        };
        believable.is_believable().then_some(tokens)
    }
}

/// Counts the text tokens of one session.
#[derive(Debug, Default)]
pub(super) struct TextMeter {
    reported: TextTokens,
    /// Text of the client that every response reads: instructions and items.
    context: u64,
    /// The client's requests for responses that the upstream has not begun, oldest first.
    requests: VecDeque<ResponseRequest>,
    /// The prompts of requests that an error seemed to refuse, the largest last. The hold does not cover
    /// them.
    refused_prompts: Vec<u64>,
    open: Option<OpenResponse>,
}

/// A `response.create` of the client.
#[derive(Debug)]
struct ResponseRequest {
    /// The client's id of the event, if it has one.
    id: Option<String>,
    /// Text for this response only.
    prompt: u64,
    /// Whether the upstream may begin the response at any moment, so that the hold must cover it.
    is_awaited: bool,
}

#[derive(Debug)]
struct OpenResponse {
    input: u64,
    output: Counter,
}

impl TextMeter {
    /// Adds text of the client that stays in the session.
    pub(super) fn note_context(&mut self, value: Option<Raw<'_>>) {
        self.context = self.context.saturating_add(tokens_in(value));
    }

    /// Adds a request of the client for a response. `value` holds text for this response only.
    pub(super) fn note_request(&mut self, value: Option<Raw<'_>>, id: Option<String>) {
        let prompt = tokens_in(value);
        if self.requests.len() >= REQUESTS_MAX
            && self.requests.front().is_some_and(|it| !it.is_awaited)
        {
            self.requests.pop_front();
        }
        if self.requests.len() < REQUESTS_MAX {
            self.requests.push_back(ResponseRequest {
                id: id.filter(|id| !id.is_empty() && id.len() <= EVENT_ID_BYTES_MAX),
                prompt,
                is_awaited: true,
            });
        } else if let Some(last) = self.requests.back_mut() {
            let tokens = self.context.saturating_add(prompt);
            last.prompt = last.prompt.saturating_add(tokens);
        }
    }

    pub(super) fn on_upstream(&mut self, event: &Event<'_>) {
        match event.kind() {
            "response.created" => {
                // A response that never ended has reported nothing, so our count is used.
                self.reported = self.reported.plus(self.current());
                let request = self.requests.pop_front();
                // An error may concern something other than the request that it seemed to refuse, and a client
                // can provoke errors. So a response that no other request explains counts with the largest
                // prompt that it may have read.
                let prompt = match request {
                    Some(request) => request.prompt,
                    None => self.refused_prompts.pop().unwrap_or(0),
                };
                self.open = Some(OpenResponse {
                    input: self.context.saturating_add(prompt),
                    output: Counter::default(),
                });
            }
            "error" => self.drop_refused(event),
            "response.output_text.delta"
            | "response.text.delta"
            | "response.function_call_arguments.delta" => {
                let delta = event.text("delta").ok().flatten();
                if let (Some(open), Some(delta)) = (&mut self.open, delta) {
                    open.output.add(delta.as_bytes());
                }
            }
            "response.done" => {
                let response = event.get("response").ok().flatten();
                let usage = response.and_then(|response| at(response, &["usage"]));
                let open = self.current();
                // A usage of all zeros is not believed if there was output.
                let reported = usage.and_then(TextTokens::read);
                let reported = reported
                    .filter(|reported| *reported != TextTokens::default() || open.output == 0);
                self.reported = self.reported.plus(reported.unwrap_or(open));
                self.open = None;
                // The upstream has skipped older requests, or begins them later. If it begins one,
                // `response.created` counts its text.
                for request in &mut self.requests {
                    request.is_awaited = false;
                }
            }
            _ => {}
        }
    }

    /// Drops the request that an error refuses, so that the request is neither held nor charged. The error may
    /// name the request. If not, only awaited requests without an id match. If several requests match, drops
    /// the one with the shortest prompt. Otherwise a client could get rid of a longer prompt by an invalid
    /// event.
    fn drop_refused(&mut self, error: &Event<'_>) {
        let error = error.get("error").ok().flatten();
        let named = error.and_then(|error| at(error, &["event_id"]));
        let named = named.and_then(text_of).filter(|id| !id.is_empty());
        let is_refused = |request: &ResponseRequest| match &named {
            Some(id) => request.id.as_deref() == Some(&**id),
            None => request.id.is_none() && request.is_awaited,
        };
        let requests = self.requests.iter().enumerate();
        let refused = requests
            .filter(|(_, request)| is_refused(request))
            .min_by_key(|(_, request)| request.prompt);
        let refused = refused.map(|(at, _)| at);
        let Some(request) = refused.and_then(|at| self.requests.remove(at)) else {
            return;
        };
        self.refused_prompts.push(request.prompt);
        self.refused_prompts.sort_unstable();
        if self.refused_prompts.len() > REQUESTS_MAX {
            self.refused_prompts.remove(0);
        }
    }

    /// The text tokens of ended responses: as they reported them, otherwise by our count.
    pub(super) fn reported(&self) -> TextTokens {
        self.reported
    }

    /// Our count for the current response and for the responses that the client has requested. The hold must
    /// cover a request before the request is relayed. A request that the upstream has not answered when the
    /// session ends is charged like a response that never reports.
    pub(super) fn open(&self) -> TextTokens {
        let awaited = self.requests.iter().filter(|request| request.is_awaited);
        let mut open = self.current();
        for request in awaited {
            let tokens = self.context.saturating_add(request.prompt);
            open.input = open.input.saturating_add(tokens);
        }
        open
    }

    /// Our count for the current response.
    fn current(&self) -> TextTokens {
        let Some(open) = &self.open else {
            return TextTokens::default();
        };
        TextTokens {
            input: open.input,
            output: open.output.tokens(),
            ..TextTokens::default()
        }
    }
}

fn tokens_in(value: Option<Raw<'_>>) -> u64 {
    let Some(value) = value else {
        return 0;
    };
    if let Some(text) = value.string() {
        return count::tokens(text.raw().as_bytes());
    }
    let mut counter = Counter::default();
    // The caller has validated the JSON, so this cannot fail.
    let _ = count_written(value, &PROMPT_MEMBERS, &mut counter);
    counter.tokens()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Cursor;

    #[test]
    fn only_text_is_read_from_a_report() {
        let tokens = |input, cached_input, output| {
            Some(TextTokens {
                input,
                cached_input,
                output,
            })
        };
        for (usage, expected) in [
            (
                r#"{"input_tokens":90,"output_tokens":50,"input_token_details":{"text_tokens":30,"audio_tokens":60},"output_token_details":{"text_tokens":9,"audio_tokens":41}}"#,
                tokens(30, 0, 9),
            ),
            (
                r#"{"input_tokens":90,"output_tokens":50,"input_token_details":{"audio_tokens":60},"output_token_details":{"audio_tokens":60}}"#,
                tokens(30, 0, 0),
            ),
            (
                r#"{"input_token_details":{"text_tokens":30,"cached_tokens_details":{"text_tokens":20}},"output_token_details":{"text_tokens":1}}"#,
                tokens(10, 20, 1),
            ),
            (
                r#"{"input_token_details":{"text_tokens":3,"cached_tokens_details":{"text_tokens":20}},"output_token_details":{"text_tokens":1}}"#,
                tokens(0, 3, 1),
            ),
            (r#"{"input_tokens":90,"output_tokens":50}"#, None),
            (
                r#"{"input_token_details":{"text_tokens":-1},"output_token_details":{"text_tokens":1}}"#,
                None,
            ),
            (
                r#"{"input_token_details":{"text_tokens":4611686018427387904},"output_token_details":{"text_tokens":1}}"#,
                None,
            ),
            ("null", None),
            ("{}", None),
        ] {
            let raw = Cursor::new(usage).value().unwrap();
            assert_eq!(TextTokens::read(raw), expected, "{usage}");
        }
    }
}
