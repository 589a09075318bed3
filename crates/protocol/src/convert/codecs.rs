//! Dispatches to the readers and writers of the five dialects.

use crate::byte_queue::ByteQueue;
use crate::canon::{self, AnswerContext, Dropped, Event, Request, Response, Target};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::sse::Frame;
use crate::unusable_answer::UnusableAnswer;
use crate::{chat, generate, interactions, messages, responses};

/// Reads a request that [`crate::native::read_head`] has accepted. `stream` comes from the head,
/// because some dialects have it in the path.
pub fn read_request(dialect: Dialect, body: &[u8], stream: bool) -> Result<Request, Failure> {
    let mut request = match dialect {
        Dialect::Chat => chat::read_request(body),
        Dialect::Responses => responses::read_request(body),
        Dialect::Messages => messages::read_request(body),
        Dialect::Generate => generate::read_request(body),
        Dialect::Interactions => interactions::read_request(body),
    }?;
    request.stream = stream;
    canon::pair_results(&mut request.turns)?;
    Ok(request)
}

/// Writes a request for an upstream of this dialect. Dropped members are listed in `dropped`. The
/// request is refused if dropping a member would change its meaning.
pub fn write_request(
    dialect: Dialect,
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    match dialect {
        Dialect::Chat => chat::write_request(request, target, dropped),
        Dialect::Responses => responses::write_request(request, target, dropped),
        Dialect::Messages => messages::write_request(request, target, dropped),
        Dialect::Generate => generate::write_request(request, target, dropped),
        Dialect::Interactions => interactions::write_request(request, target, dropped),
    }
}

/// Reads a whole answer. `model` is the public id, which marks the origin of signatures.
pub(super) fn read_response(
    dialect: Dialect,
    body: &[u8],
    model: &str,
) -> Result<Response, UnusableAnswer> {
    match dialect {
        Dialect::Chat => chat::read_response(body, model),
        Dialect::Responses => responses::read_response(body, model),
        Dialect::Messages => messages::read_response(body, model),
        Dialect::Generate => generate::read_response(body, model),
        Dialect::Interactions => interactions::read_response(body, model),
    }
}

pub(super) fn write_response(
    dialect: Dialect,
    response: &Response,
    context: &AnswerContext,
) -> Vec<u8> {
    match dialect {
        Dialect::Chat => chat::write_response(response, context),
        Dialect::Responses => responses::write_response(response, context),
        Dialect::Messages => messages::write_response(response, context),
        Dialect::Generate => generate::write_response(response, context),
        Dialect::Interactions => interactions::write_response(response, context),
    }
}

#[derive(Debug)]
pub(super) enum Reader {
    Chat(chat::Reader),
    Responses(responses::Reader),
    Messages(messages::Reader),
    Generate(generate::Reader),
    Interactions(interactions::Reader),
}

impl Reader {
    pub(super) fn new(dialect: Dialect, model: &str) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat(chat::Reader::new(model)),
            Dialect::Responses => Self::Responses(responses::Reader::new(model)),
            Dialect::Messages => Self::Messages(messages::Reader::new(model)),
            Dialect::Generate => Self::Generate(generate::Reader::new(model)),
            Dialect::Interactions => Self::Interactions(interactions::Reader::new(model)),
        }
    }

    pub(super) fn frame(
        &mut self,
        frame: &Frame,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        match self {
            Self::Chat(reader) => reader.frame(frame, out),
            Self::Responses(reader) => reader.frame(frame, out),
            Self::Messages(reader) => reader.frame(frame, out),
            Self::Generate(reader) => reader.frame(frame, out),
            Self::Interactions(reader) => reader.frame(frame, out),
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        match self {
            Self::Chat(reader) => reader.end(out),
            Self::Responses(reader) => reader.end(out),
            Self::Messages(reader) => reader.end(out),
            Self::Generate(reader) => reader.end(out),
            Self::Interactions(reader) => reader.end(out),
        }
    }

    /// Whether the usage reports so far are interim. Messages reports usage at the start of an answer, and
    /// Interactions after each step. In the other dialects the last report of a complete answer is final.
    pub(super) fn has_only_interim_usage(&self) -> bool {
        match self {
            Self::Messages(reader) => reader.has_only_interim_usage(),
            Self::Interactions(reader) => reader.has_only_interim_usage(),
            Self::Chat(_) | Self::Responses(_) | Self::Generate(_) => false,
        }
    }
}

#[derive(Debug)]
pub(super) enum Writer {
    Chat(chat::Writer),
    Responses(responses::Writer),
    Messages(messages::Writer),
    Generate(generate::Writer),
    Interactions(interactions::Writer),
}

impl Writer {
    pub(super) fn new(dialect: Dialect, context: AnswerContext) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat(chat::Writer::new(context)),
            Dialect::Responses => Self::Responses(responses::Writer::new(context)),
            Dialect::Messages => Self::Messages(messages::Writer::new(context)),
            Dialect::Generate => Self::Generate(generate::Writer::new(context)),
            Dialect::Interactions => Self::Interactions(interactions::Writer::new(context)),
        }
    }

    pub(super) fn event(&mut self, event: Event, out: &mut ByteQueue) {
        match self {
            Self::Chat(writer) => writer.event(event, out),
            Self::Responses(writer) => writer.event(event, out),
            Self::Messages(writer) => writer.event(event, out),
            Self::Generate(writer) => writer.event(event, out),
            Self::Interactions(writer) => writer.event(event, out),
        }
    }
}
