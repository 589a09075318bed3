//! Tokens of text and images in a realtime session: those that responses report, and an estimate for
//! the open responses in case they never report.

use std::collections::VecDeque;

use super::event::{Event, at, text_of};
use super::prompt::{Prompt, Settings};
use crate::count::Counter;
use crate::json::Raw;
use crate::usage::{Usage, count};

/// The maximum number of requests for responses that are kept one by one. The tokens of any others
/// are added to the last one.
const REQUESTS_MAX: usize = 16;
/// The context of a model whose profile does not state it. Models that take part in conversations have this
/// one or a smaller one.
const CONTEXT_TOKENS_UNKNOWN: u64 = 128_000;
/// The maximum number of open responses.
const OPEN_MAX: usize = 16;
/// Longer ids of events and responses are not kept. The protocol does not allow longer ids.
const ID_BYTES_MAX: usize = 512;

/// Tokens of text and images, by the classes that are priced. Audio is billed by its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NonAudioTokens {
    /// Fresh text.
    pub input: u64,
    /// Text and images read from a cache.
    pub cached_input: u64,
    /// Fresh images.
    pub image_input: u64,
    /// Text that the model wrote.
    pub output: u64,
}

impl NonAudioTokens {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cached_input: self.cached_input.saturating_add(more.cached_input),
            image_input: self.image_input.saturating_add(more.image_input),
            output: self.output.saturating_add(more.output),
        }
    }

    /// Reads the usage of a response. Only tokens that are reported as text or as images, or not as
    /// audio, count.
    fn read(usage: Raw<'_>) -> Option<Self> {
        const INPUT: &str = "input_token_details";
        const CACHED: &str = "cached_tokens_details";
        let number = |path: &[&str]| at(usage, path).and_then(count);
        let text = |total: &str, details: &str, images: u64| {
            number(&[details, "text_tokens"]).or_else(|| {
                let audio = number(&[details, "audio_tokens"])?;
                let rest = number(&[total])?.saturating_sub(audio);
                Some(rest.saturating_sub(images))
            })
        };
        let images = number(&[INPUT, "image_tokens"]).unwrap_or(0);
        let input = text("input_tokens", INPUT, images)?;
        let cached = |kind: &str, most: u64| number(&[INPUT, CACHED, kind]).unwrap_or(0).min(most);
        let cached_text = cached("text_tokens", input);
        let cached_images = cached("image_tokens", images);
        Self {
            input: input - cached_text,
            cached_input: cached_text.saturating_add(cached_images),
            image_input: images - cached_images,
            output: text("output_tokens", "output_token_details", 0)?,
        }
        .believed()
    }

    /// Reads the usage of a transcript of the client's audio: the text that was written, and text
    /// that the model read beside the audio. Without tokens, only seconds are reported.
    fn of_transcript(usage: Raw<'_>) -> Option<Self> {
        let number = |path: &[&str]| at(usage, path).and_then(count).unwrap_or(0);
        Self {
            input: number(&["input_token_details", "text_tokens"]),
            output: number(&["output_tokens"]),
            ..Self::default()
        }
        .believed()
    }

    /// The tokens, unless no response can use so many.
    fn believed(self) -> Option<Self> {
        let usage = Usage {
            input: self.input,
            cached_input: self.cached_input,
            image_input: self.image_input,
            output: self.output,
            ..Usage::default()
        };
        usage.is_believable().then_some(self)
    }
}

/// Counts the text tokens of one session.
#[derive(Debug)]
pub(super) struct TextMeter {
    /// The maximum number of tokens that the model reads for one response.
    context_tokens: u64,
    reported: NonAudioTokens,
    /// What every response reads: the settings of the client, and its items. Items that were deleted or
    /// truncated stay, because the upstream decides which ones the model still reads.
    settings: Settings,
    items: Prompt,
    /// The client's requests for responses that the upstream has not begun, oldest first.
    requests: VecDeque<ResponseRequest>,
    /// The prompts of requests that an error seemed to refuse, the largest last. They are not held.
    refused_prompts: Vec<Prompt>,
    /// The responses that the upstream has begun and not ended, oldest first. Those outside the conversation may
    /// run beside one of the conversation.
    open: VecDeque<OpenResponse>,
}

/// A `response.create` of the client.
#[derive(Debug)]
struct ResponseRequest {
    /// The client's id of the event, if it has one.
    id: Option<String>,
    /// What this response alone reads.
    prompt: Prompt,
    /// The input of the requests that were added to this one.
    added: Prompt,
    /// Whether the upstream may begin the response at any moment, so that the hold must cover it.
    is_awaited: bool,
}

#[derive(Debug)]
struct OpenResponse {
    id: Option<String>,
    input: Prompt,
    output: Counter,
}

impl TextMeter {
    /// For a model with this context, if its profile states one.
    pub(super) fn new(context_tokens: Option<u64>) -> Self {
        Self {
            context_tokens: context_tokens.unwrap_or(CONTEXT_TOKENS_UNKNOWN),
            reported: NonAudioTokens::default(),
            settings: Settings::default(),
            items: Prompt::default(),
            requests: VecDeque::new(),
            refused_prompts: Vec::new(),
            open: VecDeque::new(),
        }
    }

    /// Adds an item, which stays in the session.
    pub(super) fn note_item(&mut self, item: Prompt) {
        self.items = self.items.plus(item);
    }

    pub(super) fn note_settings(&mut self, settings: Settings) {
        self.settings = self.settings.longest(settings);
    }

    /// The input of a response with this prompt of its own.
    fn input_of(&self, prompt: Prompt) -> Prompt {
        let context = self.settings.prompt().plus(self.items);
        context.plus(prompt).at_most(self.context_tokens)
    }

    /// Adds a request of the client for a response. `prompt` is for this response only.
    pub(super) fn note_request(&mut self, prompt: Prompt, id: Option<String>) {
        if self.requests.len() >= REQUESTS_MAX
            && self.requests.front().is_some_and(|it| !it.is_awaited)
        {
            self.requests.pop_front();
        }
        if self.requests.len() < REQUESTS_MAX {
            self.requests.push_back(ResponseRequest {
                id: id.filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX),
                prompt,
                added: Prompt::default(),
                is_awaited: true,
            });
            return;
        }
        let input = self.input_of(prompt);
        if let Some(last) = self.requests.back_mut() {
            last.added = last.added.plus(input);
        }
    }

    pub(super) fn on_upstream(&mut self, event: &Event<'_>) {
        match event.kind() {
            "response.created" => {
                let id = response_id(event);
                // A response that never ended has reported nothing, so our count is used. Without ids, one response
                // is open at a time.
                let same = self.open.iter().position(|open| open.id == id);
                let is_full = self.open.len() >= OPEN_MAX;
                if let Some(place) = same.or(is_full.then_some(0)) {
                    self.reported = self.reported.plus(self.end(place));
                }
                let request = self.requests.pop_front();
                // An error may concern something other than the request that it seemed to refuse, and a client
                // can provoke errors. So a response that no other request explains counts with the largest
                // prompt that it may have read.
                let input = if let Some(request) = request {
                    self.input_of(request.prompt).plus(request.added)
                } else {
                    let prompt = self.refused_prompts.pop().unwrap_or_default();
                    self.input_of(prompt)
                };
                self.open.push_back(OpenResponse {
                    id,
                    input,
                    output: Counter::default(),
                });
            }
            "error" => self.drop_refused(event),
            "conversation.item.input_audio_transcription.completed" => {
                let usage = event.get("usage").ok().flatten();
                let written = usage.and_then(NonAudioTokens::of_transcript);
                self.reported = self.reported.plus(written.unwrap_or_default());
            }
            "response.output_text.delta"
            | "response.text.delta"
            | "response.function_call_arguments.delta" => {
                let delta = event.text("delta").ok().flatten();
                let id = event.get("response_id").ok().flatten().and_then(text_of);
                let open = self.place_of(id.as_deref());
                let open = open.and_then(|place| self.open.get_mut(place));
                if let (Some(open), Some(delta)) = (open, delta) {
                    open.output.add(delta.as_bytes());
                }
            }
            "response.done" => {
                let response = event.get("response").ok().flatten();
                let usage = response.and_then(|response| at(response, &["usage"]));
                let place = self.place_of(response_id(event).as_deref());
                let open = place.map_or_else(NonAudioTokens::default, |place| self.end(place));
                // A usage of all zeros is not believed if there was output.
                let reported = usage.and_then(NonAudioTokens::read);
                let reported = reported
                    .filter(|reported| *reported != NonAudioTokens::default() || open.output == 0);
                self.reported = self.reported.plus(reported.unwrap_or(open));
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
            .min_by_key(|(_, request)| request.prompt.plus(request.added).total());
        let refused = refused.map(|(at, _)| at);
        let Some(request) = refused.and_then(|at| self.requests.remove(at)) else {
            return;
        };
        self.refused_prompts
            .push(request.prompt.plus(request.added));
        self.refused_prompts
            .sort_unstable_by_key(|prompt| prompt.total());
        if self.refused_prompts.len() > REQUESTS_MAX {
            self.refused_prompts.remove(0);
        }
    }

    /// The tokens of ended responses and of transcripts: as they reported them, otherwise by our
    /// count.
    pub(super) fn reported(&self) -> NonAudioTokens {
        self.reported
    }

    /// The open response that an event with this id concerns. Not every upstream repeats ids: without one, it is the
    /// newest, and an unknown one is that of a response which began without an id.
    fn place_of(&self, id: Option<&str>) -> Option<usize> {
        let with_id =
            |id: Option<&str>| self.open.iter().rposition(|open| open.id.as_deref() == id);
        match id {
            Some(_) => with_id(id).or_else(|| with_id(None)),
            None => self.open.len().checked_sub(1),
        }
    }

    /// Removes an open response and returns our count of it.
    fn end(&mut self, place: usize) -> NonAudioTokens {
        let ended = self.open.remove(place);
        ended
            .as_ref()
            .map_or_else(NonAudioTokens::default, OpenResponse::tokens)
    }

    /// Our count for the open responses and for the responses that the client has requested. The hold must
    /// cover a request before the request is relayed. A request that the upstream has not answered when the
    /// session ends is charged like a response that never reports.
    pub(super) fn open(&self) -> NonAudioTokens {
        let awaited = self.requests.iter().filter(|request| request.is_awaited);
        let begun = self.open.iter().map(OpenResponse::tokens);
        let mut open = begun.fold(NonAudioTokens::default(), NonAudioTokens::plus);
        for request in awaited {
            let input = self.input_of(request.prompt).plus(request.added);
            open = open.plus(of_prompt(input));
        }
        open
    }
}

impl OpenResponse {
    /// Our count of the response.
    fn tokens(&self) -> NonAudioTokens {
        NonAudioTokens {
            output: self.output.tokens(),
            ..of_prompt(self.input)
        }
    }
}

/// The id of the response that an event begins or ends.
fn response_id(event: &Event<'_>) -> Option<String> {
    let response = event.get("response").ok().flatten()?;
    let id = text_of(at(response, &["id"])?)?;
    (!id.is_empty() && id.len() <= ID_BYTES_MAX).then(|| id.into_owned())
}

fn of_prompt(prompt: Prompt) -> NonAudioTokens {
    NonAudioTokens {
        input: prompt.text,
        image_input: prompt.images,
        ..NonAudioTokens::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Cursor;

    #[test]
    fn text_and_images_are_read_from_a_report() {
        let tokens = |input, cached_input, output| {
            Some(NonAudioTokens {
                input,
                cached_input,
                output,
                ..NonAudioTokens::default()
            })
        };
        let images = |input, cached_input, image_input| {
            Some(NonAudioTokens {
                input,
                cached_input,
                image_input,
                output: 1,
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
            (
                r#"{"input_token_details":{"text_tokens":30,"image_tokens":800,"cached_tokens_details":{"image_tokens":300}},"output_token_details":{"text_tokens":1}}"#,
                images(30, 300, 500),
            ),
            (
                r#"{"input_tokens":900,"input_token_details":{"audio_tokens":60,"image_tokens":800},"output_token_details":{"text_tokens":1}}"#,
                images(40, 0, 800),
            ),
            (
                r#"{"input_token_details":{"text_tokens":3,"image_tokens":4611686018427387904},"output_token_details":{"text_tokens":1}}"#,
                None,
            ),
            ("null", None),
            ("{}", None),
        ] {
            let raw = Cursor::new(usage).value().unwrap();
            assert_eq!(NonAudioTokens::read(raw), expected, "{usage}");
        }
    }
}
