//! The meter of a realtime session.

use std::ops::Range;

use super::audio::{Format, TICKS_PER_SECOND, base64_bytes};
use super::event::{Event, EventError, at, each_object, event_text, object_of, text_of};
use super::failed;
use super::frame::{Frame, FrameReplacement, MeterReading, Verdict};
use super::prompt::{Prompt, Settings};
use super::session::{self, TurnMode};
use super::text_tokens::TextMeter;
use crate::count;
use crate::failure::Failure;
use crate::json::{Members, Raw, write_string};
use crate::scrub::Names;
use crate::tool::Tool;

const TICKS_PER_MS: u64 = TICKS_PER_SECOND / 1000;

const TEXT_PARTS: [&str; 3] = ["input_text", "text", "output_text"];

#[derive(Debug)]
pub(super) struct RealtimeMeter {
    public_model: Box<str>,
    turn_mode: TurnMode,
    /// The time of the last change of the turn mode.
    since_ms: u64,
    /// The ticks used before `since_ms`, and the ticks of audio since then.
    ticks: u64,
    text_inputs: u64,
    text: TextMeter,
    input: Format,
    output: Format,
}

impl RealtimeMeter {
    /// Assumes the more expensive turn mode until the upstream reports it.
    pub(super) fn new(public_model: &str, context_tokens: Option<u64>) -> Self {
        Self {
            public_model: public_model.into(),
            turn_mode: TurnMode::VoiceActivity,
            since_ms: 0,
            ticks: 0,
            text_inputs: 0,
            text: TextMeter::new(context_tokens),
            input: Format::default(),
            output: Format::default(),
        }
    }

    pub(super) fn on_client(&mut self, frame: Frame<'_>) -> Verdict {
        match frame {
            Frame::Text(text) => self.on_client_text(text),
            Frame::Binary(bytes) => self.on_client_bytes(bytes),
        }
    }

    fn on_client_text(&mut self, text: &str) -> Verdict {
        match Event::read(text) {
            Ok(event) => match self.take(text, &event) {
                Ok(dropped) => Verdict::relay_without(text, &dropped),
                Err(failure) => Verdict::refuse(failure, event.id()),
            },
            // A frame that cannot be read counts by its bytes (S7 in `docs/invariants.md`).
            Err(EventError::NotAnEvent) => {
                self.meter_audio(self.input.ticks_of_base64(text));
                Verdict::Relay
            }
            Err(EventError::Unreadable(failure) | EventError::Ambiguous(failure)) => {
                Verdict::refuse(failure, None)
            }
        }
    }

    /// An upstream may take a binary frame for audio or for an event. So a frame that can be an event is
    /// checked as an event, and costs at least as much as audio.
    fn on_client_bytes(&mut self, bytes: &[u8]) -> Verdict {
        let before = self.ticks;
        let event = event_text(bytes);
        let verdict = event.map_or(Verdict::Relay, |text| self.on_client_text(&text));
        if matches!(verdict, Verdict::Refuse { .. }) {
            return verdict;
        }
        let metered = self.ticks.saturating_sub(before);
        self.meter_audio(self.input.ticks(bytes).saturating_sub(metered));
        verdict
    }

    /// Takes an event of the client. Returns the parts of its text that are not passed on. If it
    /// fails, the event is refused and not metered.
    fn take(&mut self, text: &str, event: &Event<'_>) -> Result<Vec<Range<usize>>, Failure> {
        match event.kind() {
            "input_audio_buffer.append" => {
                if let Some(audio) = event.text("audio")? {
                    self.meter_audio(self.input.ticks_of_base64(&audio));
                }
            }
            "conversation.item.create" => {
                let item = match event.object("item")? {
                    Some(item) => Item::read(&item, self.input)?,
                    None => Item::default(),
                };
                self.meter_audio(item.ticks);
                self.text_inputs = self.text_inputs.saturating_add(u64::from(item.is_text()));
                self.text
                    .note_item(Prompt::read(event.get("item")?, item.image_tokens));
            }
            // The second one is for sessions that only transcribe.
            "session.update" | "transcription_session.update" => {
                let mut dropped = Vec::new();
                let session = event.object("session")?;
                if let Some(session) = &session {
                    self.refuse_another_model(session)?;
                    refuse_resumption(session)?;
                    refuse_file_search(session)?;
                    refuse_template(session, "session.prompt")?;
                    dropped = settings_to_drop(text, session)?;
                }
                let settings = Settings::read(event.get("session")?, session.as_ref());
                self.text.note_settings(settings);
                return Ok(dropped);
            }
            "response.create" => {
                // Items that belong only to this response count too.
                let (mut ticks, mut image_tokens) = (0u64, 0u64);
                if let Some(response) = event.object("response")? {
                    refuse_file_search(&response)?;
                    refuse_template(&response, "response.prompt")?;
                    each_object(response.get("input")?, "response.input", |item| {
                        let item = Item::read(item, self.input)?;
                        ticks = ticks.saturating_add(item.ticks);
                        image_tokens = image_tokens.saturating_add(item.image_tokens);
                        Ok(())
                    })?;
                }
                self.meter_audio(ticks);
                let prompt = Prompt::read(event.get("response")?, image_tokens);
                self.text.note_request(prompt, event.id());
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    pub(super) fn on_upstream(
        &mut self,
        frame: Frame<'_>,
        now_ms: u64,
        names: Names<'_>,
    ) -> Option<FrameReplacement> {
        let text = match frame {
            Frame::Binary(audio) => {
                self.meter_audio(self.output.ticks(audio));
                return None;
            }
            Frame::Text(text) => text,
        };
        let event = match Event::read(text) {
            Ok(event) => event,
            Err(error) => return failed::clean_unreadable(text, &error, names),
        };
        self.text.on_upstream(&event);
        match event.kind() {
            "response.output_audio.delta" | "response.audio.delta" => {
                let audio = event.text("delta").ok()??;
                self.meter_audio(self.output.ticks_of_base64(&audio));
                None
            }
            "session.created" | "session.updated" => {
                let session = event.get("session").ok()??;
                self.adopt_settings(session, now_ms);
                let text = self.with_public_model(text, session)?;
                Some(FrameReplacement {
                    text,
                    withheld: None,
                })
            }
            _ => failed::clean(text, &event, names),
        }
    }

    pub(super) fn reading(&self, now_ms: u64) -> MeterReading {
        let ticks = self.ticks.saturating_add(self.active_ticks(now_ms));
        MeterReading {
            realtime_seconds: ticks.div_ceil(TICKS_PER_SECOND),
            text_inputs: self.text_inputs,
            text: self.text.reported(),
            open_text: self.text.open(),
            ..MeterReading::default()
        }
    }

    /// Meters audio in the turn mode that bills audio instead of time.
    fn meter_audio(&mut self, ticks: u64) {
        if self.turn_mode == TurnMode::PushToTalk {
            self.ticks = self.ticks.saturating_add(ticks);
        }
    }

    fn active_ticks(&self, now_ms: u64) -> u64 {
        match self.turn_mode {
            TurnMode::VoiceActivity => {
                let active_ms = now_ms.saturating_sub(self.since_ms);
                active_ms.saturating_mul(TICKS_PER_MS)
            }
            TurnMode::PushToTalk => 0,
        }
    }

    /// Takes the settings that the upstream reports as active.
    fn adopt_settings(&mut self, session: Raw<'_>, now_ms: u64) {
        self.input = session::input_format(session).unwrap_or(self.input);
        self.output = session::output_format(session).unwrap_or(self.output);
        if let Some(turn_mode) = session::turn_mode(session)
            && turn_mode != self.turn_mode
        {
            self.ticks = self.ticks.saturating_add(self.active_ticks(now_ms));
            self.since_ms = now_ms;
            self.turn_mode = turn_mode;
        }
    }

    /// The event with the public id in place of the upstream's name.
    fn with_public_model(&self, text: &str, session: Raw<'_>) -> Option<String> {
        let name = at(session, &["model"]).filter(|name| !name.is_null())?;
        let span = name.span();
        let mut public = Vec::new();
        write_string(&mut public, &self.public_model);
        let public = String::from_utf8(public).ok()?;
        Some([text.get(..span.start)?, &public, text.get(span.end..)?].concat())
    }

    /// Refuses a change of the model, which was chosen and priced at the handshake.
    fn refuse_another_model(&self, session: &Members<'_>) -> Result<(), Failure> {
        let same = |model: Raw<'_>| text_of(model).is_some_and(|it| *it == *self.public_model);
        match session.get("model")? {
            Some(model) if !same(model) => {
                let why = "The model of a session cannot be changed.";
                Err(Failure::invalid(why).param("session.model"))
            }
            _ => Ok(()),
        }
    }
}

/// The properties of a conversation item that decide how it is metered.
#[derive(Debug, Default)]
struct Item {
    has_audio: bool,
    is_result: bool,
    ticks: u64,
    image_tokens: u64,
}

impl Item {
    fn read(item: &Members<'_>, format: Format) -> Result<Self, Failure> {
        let is = |value: Option<Raw<'_>>, kinds: &[&str]| {
            let kind = value.and_then(text_of);
            kind.is_some_and(|kind| kinds.contains(&&*kind))
        };
        let mut read = Self {
            is_result: is(item.get("type")?, &["function_call_output"]),
            ..Self::default()
        };
        each_object(item.get("content")?, "item.content", |part| {
            // No upstream reads audio or an image in a part that is text.
            if is(part.get("type")?, &TEXT_PARTS) {
                return Ok(());
            }
            // In other parts, the bytes in `audio` count, regardless of the declared type.
            if let Some(audio) = part.get("audio")?.and_then(text_of) {
                read.has_audio |= base64_bytes(&audio) > 0;
                let ticks = format.ticks_of_base64(&audio);
                read.ticks = read.ticks.saturating_add(ticks);
            }
            if let Some(image) = part.get("image_url")? {
                let tokens = count::image_tokens(base64_bytes(image.text()));
                read.image_tokens = read.image_tokens.saturating_add(tokens);
            }
            Ok(())
        })?;
        Ok(read)
    }

    /// Whether the item counts as text: all items except results of functions and items with audio
    /// (`docs/api/sessions.md`).
    fn is_text(&self) -> bool {
        !self.has_audio && !self.is_result
    }
}

/// Refuses session resumption, because sessions are not stored. `null` and `false` are allowed.
fn refuse_resumption(session: &Members<'_>) -> Result<(), Failure> {
    let Some(resumption) = session.get("resumption")? else {
        return Ok(());
    };
    let says_no = match object_of(Some(resumption), "session.resumption")? {
        Some(resumption) => resumption.get("enabled")?.and_then(|it| it.boolean()) == Some(false),
        None => resumption.boolean() == Some(false),
    };
    if says_no {
        return Ok(());
    }
    let why = "Session resumption is not available.";
    Err(Failure::stateful_not_supported(why).param("session.resumption"))
}

/// Refuses templates. They are stored in the operator's account, which all clients share.
fn refuse_template(holder: &Members<'_>, path: &'static str) -> Result<(), Failure> {
    if holder.get("prompt")?.is_some() {
        let why = "Stored prompts are not available.";
        return Err(Failure::stateful_not_supported(why).param(path));
    }
    Ok(())
}

/// Refuses file search, because there are no stored files.
fn refuse_file_search(holder: &Members<'_>) -> Result<(), Failure> {
    each_object(holder.get("tools")?, "session.tools", |tool| {
        let kind = tool.get("type")?.and_then(text_of);
        match kind.filter(|kind| Tool::of(kind) == Some(Tool::FileSearch)) {
            Some(kind) => {
                let why = format!("The tool `{kind}` is not available.");
                Err(Failure::stateful_not_supported(why).param("session.tools"))
            }
            None => Ok(()),
        }
    })
}

/// The settings that an upstream must not get. Some SDKs always send them, so they are dropped and not
/// refused. `tracing` would store a trace of the session in the operator's account, which all clients
/// share. `model` is the public id by now, which the upstream does not know; it has its own since the
/// handshake.
fn settings_to_drop(text: &str, session: &Members<'_>) -> Result<Vec<Range<usize>>, Failure> {
    let mut names = Vec::new();
    for name in ["model", "tracing"] {
        if session.get(name)?.is_some() {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(Vec::new());
    }
    session.with_names(text.as_bytes(), &names)
}
