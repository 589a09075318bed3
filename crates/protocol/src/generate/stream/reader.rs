//! Reads the answer of a Generate Content upstream.
//!
//! Each chunk is a response object with new parts, so a whole answer is a stream of one chunk.
//! Consecutive texts form one block.

use super::part::{FunctionCall, InlineData, Part};
use crate::canon::{Block, Delta, Event, OffsetConverter, Opaque, Stop, Token};
use crate::dialect::Dialect;
use crate::generate::call_id::call_id;
use crate::generate::response::finish;
use crate::generate::response::logprobs;
use crate::generate::response::sources;
use crate::generate::usage::read_usage;
use crate::json::typed;
use crate::json::{Cursor, Raw, Shape, utf8};
use crate::needle::Needle;
use crate::rejection;
use crate::sse::{Data, Frame};
use crate::unusable_answer::UnusableAnswer;
use crate::usage::Usage;

/// Reads the chunks of one answer.
#[derive(Debug)]
pub struct Reader {
    model: Box<str>,
    started: bool,
    open: Option<OpenBlock>,
    /// Whether the open block has its signature.
    signed: bool,
    /// The text of the open block, to convert the offsets of sources.
    offsets: OffsetConverter,
    /// Log probabilities of text that has not arrived.
    tokens: Vec<Token>,
    /// Makes generated call ids differ between answers.
    seed: String,
    calls: usize,
    blocks: usize,
    /// Usage that has not been passed on yet.
    usage: Option<Usage>,
    /// Passed on when the stream closes, because some models send a stop reason with every chunk.
    stop: Option<Stop>,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thought,
}

impl Reader {
    /// A reader for one stream of the model with this public id.
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            started: false,
            open: None,
            signed: false,
            offsets: OffsetConverter::new(),
            tokens: Vec::new(),
            seed: String::new(),
            calls: 0,
            blocks: 0,
            usage: None,
            stop: None,
            ended: false,
        }
    }

    /// Reads the next frame.
    pub fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            return Ok(());
        }
        let data = frame.data();
        let data = match &data {
            Data::Absent => return Ok(()),
            Data::Line(span) => frame.bytes.get(span.clone()).unwrap_or_default(),
            Data::Lines(masked) => masked,
        };
        if frame.event() == Some(b"error") {
            return Err(UnusableAnswer::Failure(rejection::read_event(
                data,
                &self.model,
            )));
        }
        self.chunk(utf8(data)?, out)
    }

    /// Handles the end of the upstream's stream, which completes an answer with content
    /// (`docs/api/generate-content.md`).
    pub fn end(&mut self, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            return Ok(());
        }
        let stop = match self.stop.take() {
            Some(stop) => stop,
            None if self.blocks == 0 => return Err(UnusableAnswer::Unfinished),
            None if self.calls > 0 => Stop::ToolCalls,
            None => Stop::End,
        };
        self.close(out);
        out.push(Event::Finish(stop));
        self.ended = true;
        Ok(())
    }

    /// Reads one response object.
    pub(in crate::generate) fn chunk(
        &mut self,
        text: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        static CALL: Needle = Needle::new("functionCall");
        static LOGPROBS: Needle = Needle::new("logprobsResult");
        if CALL.is_in(text.as_bytes()) {
            self.seed(text)?;
        }
        if LOGPROBS.is_in(text.as_bytes()) {
            self.read_tokens(text)?;
        }
        let mut cursor = Cursor::new(text);
        let mut any = false;
        typed::object::<UnusableAnswer>(&mut cursor, "chunk", |cursor, name| {
            any = true;
            if typed::null(cursor)? {
                return Ok(());
            }
            if name == "error" {
                let error = cursor.value()?.text();
                let failure = rejection::read_event(error.as_bytes(), &self.model);
                return Err(UnusableAnswer::Failure(failure));
            }
            if !self.started {
                self.started = true;
                out.push(Event::Start);
            }
            match name {
                "candidates" => self.candidates(cursor, out),
                "usageMetadata" => {
                    self.usage = read_usage(cursor.value()?).or(self.usage);
                    Ok(())
                }
                "promptFeedback" => self.feedback(cursor),
                _ => cursor.value().map(drop).map_err(UnusableAnswer::from),
            }
        })?;
        cursor.end()?;
        if !any {
            return Err(UnusableAnswer::malformed("an answer is an empty object"));
        }
        self.report(out);
        Ok(())
    }

    /// Reads the response id ahead. It follows the calls in the chunk, but generated call ids depend on it.
    fn seed(&mut self, text: &str) -> Result<(), UnusableAnswer> {
        typed::object(&mut Cursor::new(text), "chunk", |cursor, name| {
            let value = cursor.value()?;
            if name == "responseId" {
                let id = value.string();
                self.seed = id.map_or_else(String::new, |id| id.decode_lossy().into_owned());
            }
            Ok(())
        })
    }

    /// Reads the log probabilities ahead. They follow the text in the chunk, but are passed on before the
    /// text.
    fn read_tokens(&mut self, text: &str) -> Result<(), UnusableAnswer> {
        typed::object::<UnusableAnswer>(&mut Cursor::new(text), "chunk", |cursor, name| {
            if name != "candidates" {
                return cursor.value().map(drop).map_err(UnusableAnswer::from);
            }
            typed::array::<UnusableAnswer>(cursor, name, |cursor, number| {
                if number > 0 || cursor.shape()? != Shape::Object {
                    return cursor.value().map(drop).map_err(UnusableAnswer::from);
                }
                typed::object::<UnusableAnswer>(cursor, "candidate", |cursor, name| {
                    match name {
                        "logprobsResult" => self.tokens.extend(logprobs::read(cursor)?),
                        _ => drop(cursor.value()?),
                    }
                    Ok(())
                })
            })
        })
    }

    fn put_tokens(&mut self, out: &mut Vec<Event>) {
        if !self.tokens.is_empty() {
            let tokens = std::mem::take(&mut self.tokens);
            out.push(Event::Delta(Delta::Logprobs(tokens)));
        }
    }

    /// Passes on the last usage report, unless a block is open.
    fn report(&mut self, out: &mut Vec<Event>) {
        if self.open.is_none() {
            out.extend(self.usage.take().map(Event::Usage));
        }
    }

    /// Reads the first candidate. No request asks for others.
    fn candidates(
        &mut self,
        cursor: &mut Cursor<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        typed::array::<UnusableAnswer>(cursor, "candidates", |cursor, number| {
            if number > 0 || cursor.shape()? != Shape::Object {
                cursor.value()?;
                return Ok(());
            }
            self.candidate(cursor, out)
        })
    }

    fn candidate(
        &mut self,
        cursor: &mut Cursor<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let [mut reason, mut grounding, mut citations] = [None::<Raw<'_>>; 3];
        typed::object::<UnusableAnswer>(cursor, "candidate", |cursor, name| {
            match name {
                "content" => self.content(cursor, out)?,
                "finishReason" => reason = Some(cursor.value()?),
                "groundingMetadata" => grounding = Some(cursor.value()?),
                "citationMetadata" => citations = Some(cursor.value()?),
                _ => drop(cursor.value()?),
            }
            Ok(())
        })?;
        self.cite(citations, grounding, out)?;
        if let Some(reason) = reason.and_then(|reason| reason.string()) {
            let stop = finish::read(&reason.decode_lossy(), self.calls > 0);
            self.stop = Some(stop.map_err(UnusableAnswer::Failure)?);
        }
        Ok(())
    }

    fn content(
        &mut self,
        cursor: &mut Cursor<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        typed::object::<UnusableAnswer>(cursor, "content", |cursor, name| {
            if name != "parts" {
                cursor.value()?;
                return Ok(());
            }
            typed::array(cursor, "parts", |cursor, _| {
                let part = Part::read(cursor)?;
                self.part(part, out)
            })
        })
    }

    fn part(&mut self, part: Part<'_>, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if let Some(call) = part.call {
            return self.call(call, part.signature.as_deref(), out);
        }
        if let Some(inline) = part.inline {
            return self.picture(inline, out);
        }
        let kind = if part.thought {
            OpenBlock::Thought
        } else {
            OpenBlock::Text
        };
        if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            self.ensure(kind, out);
            if kind == OpenBlock::Text {
                self.put_tokens(out);
            }
            self.offsets.push(&text);
            out.push(Event::Delta(Delta::Text(text.into_owned())));
        }
        // A signature may be on an empty part after the part that it signs.
        if let Some(signature) = part.signature
            && self.open.is_some()
        {
            out.push(Event::Delta(Delta::Opaque(self.opaque(&signature))));
            self.signed = true;
        }
        Ok(())
    }

    fn opaque(&self, signature: &str) -> Opaque {
        Opaque {
            origin: Dialect::Generate,
            model: self.model.clone(),
            text: signature.into(),
        }
    }

    /// Opens a block of this kind, unless the open block is of this kind and not signed yet.
    fn ensure(&mut self, kind: OpenBlock, out: &mut Vec<Event>) {
        if self.open == Some(kind) && !self.signed {
            return;
        }
        self.close(out);
        out.push(Event::BlockStart(match kind {
            OpenBlock::Text => Block::Text,
            OpenBlock::Thought => Block::Thought,
        }));
        self.open = Some(kind);
        self.blocks += 1;
        self.offsets = OffsetConverter::new();
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        if let Some(open) = self.open.take() {
            if open == OpenBlock::Text {
                self.put_tokens(out);
            }
            out.push(Event::BlockStop);
        }
        self.report(out);
        self.signed = false;
    }

    fn call(
        &mut self,
        call: Raw<'_>,
        signature: Option<&str>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let FunctionCall {
            name,
            id,
            arguments,
        } = FunctionCall::read(call)?;
        self.close(out);
        self.calls += 1;
        self.blocks += 1;
        let id = id.map_or_else(
            || call_id(&self.seed, self.calls, &name),
            std::borrow::Cow::into_owned,
        );
        out.push(Event::BlockStart(Block::ToolCall { id, name }));
        if let Some(signature) = signature {
            out.push(Event::Delta(Delta::Opaque(self.opaque(signature))));
        }
        let arguments = arguments.unwrap_or_else(|| "{}".to_owned());
        out.push(Event::Delta(Delta::Arguments(arguments)));
        out.push(Event::BlockStop);
        Ok(())
    }

    /// Passes on an image. The common form has no audio or other media.
    fn picture(&mut self, inline: Raw<'_>, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        let InlineData { mime, data } = InlineData::read(inline)?;
        if mime.starts_with("image/") {
            self.close(out);
            self.blocks += 1;
            out.push(Event::BlockStart(Block::Image { mime }));
            out.push(Event::Delta(Delta::Text(data)));
            out.push(Event::BlockStop);
        }
        Ok(())
    }

    /// Reads the feedback on a blocked prompt, which comes without candidates.
    fn feedback(&mut self, cursor: &mut Cursor<'_>) -> Result<(), UnusableAnswer> {
        let mut reason = None;
        typed::object::<UnusableAnswer>(cursor, "promptFeedback", |cursor, name| {
            let value = cursor.value()?;
            if name == "blockReason" {
                reason = value.string().map(|text| text.decode_lossy().into_owned());
            }
            Ok(())
        })?;
        if reason.is_some() && self.blocks == 0 {
            self.stop = Some(Stop::Filter(reason));
        }
        Ok(())
    }

    /// Passes on the sources of the open text.
    fn cite(
        &mut self,
        citations: Option<Raw<'_>>,
        grounding: Option<Raw<'_>>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        if self.open != Some(OpenBlock::Text) {
            return Ok(());
        }
        let mut sources = Vec::new();
        if let Some(citations) = citations {
            sources::citations(citations, &mut sources)?;
        }
        if let Some(grounding) = grounding {
            sources::grounding(grounding, &mut sources)?;
        }
        for source in sources {
            let start = self.offsets.characters(source.start);
            let end = self.offsets.characters(source.end);
            if let (Some(start), Some(end)) = (start, end) {
                out.push(Event::Delta(Delta::Citation {
                    url: source.url,
                    title: source.title,
                    start,
                    end,
                }));
            }
        }
        Ok(())
    }
}
