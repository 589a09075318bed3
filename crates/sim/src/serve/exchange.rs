//! The life of one exchange: read, note, decide, wait, answer.

use super::State;
use super::body::Body;
use super::surface::{self, Endpoint, NoEndpoint};
use super::wire::Wire;
use crate::ask::Ask;
use crate::calls::{End, Record};
use crate::chat;
use crate::control;
use crate::fault::{How, Instead, Place, Script, Stop, split_model};
use crate::models;
use crate::openai::{self, Refusal};
use crate::reply::{Play, Reply, html_page, identity_headers};
use crate::seed::Seed;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A peer that sends its request slower than this is let go.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);

/// The connection ends without an answer.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed without an answer")
    }
}

impl std::error::Error for Closed {}

pub(super) async fn exchange(
    request: Request<Incoming>,
    state: Arc<State>,
    wire: Arc<Wire>,
) -> Result<Response<Body>, Closed> {
    let (parts, incoming) = request.into_parts();
    if control::owns(parts.uri.path()) {
        let body = match read(incoming, control::REQUEST_BYTES_MAX).await {
            Ok(body) => body,
            Err(ReadError::TooLarge) => Bytes::new(),
            Err(ReadError::Broken) => return Err(Closed),
        };
        let reply = control::answer(&parts, &body, &state);
        return Ok(respond(reply, &Script::default(), &state, wire, None));
    }

    let mut record = state.calls.open(&parts);
    let (reply, script) = match read(incoming, state.settings.request_bytes_max).await {
        Ok(body) => {
            record.body(&body);
            decide(&parts, &body, &state, &record)
        }
        Err(ReadError::TooLarge) => (openai::failure(&Refusal::too_large()), Script::default()),
        Err(ReadError::Broken) => {
            record.will_end(End::Broken);
            return Err(Closed);
        }
    };
    if let Some(delay) = script.times.delay {
        tokio::time::sleep(delay).await;
    }
    if let Some(Stop {
        how,
        place: Place::Head,
    }) = script.stop
    {
        match how {
            // hyper drops this future when the peer goes away.
            How::Hang => std::future::pending::<()>().await,
            How::Reset => {
                wire.reset_on_close();
                record.will_end(End::Reset);
            }
            How::Cut | How::Truncate => record.will_end(End::Cut),
        }
        return Err(Closed);
    }
    record.status(reply.status.as_u16());
    Ok(respond(reply, &script, &state, wire, Some(record)))
}

enum ReadError {
    TooLarge,
    Broken,
}

async fn read(incoming: Incoming, bytes_max: usize) -> Result<Bytes, ReadError> {
    let reading = Limited::new(incoming, bytes_max).collect();
    match tokio::time::timeout(REQUEST_TIME_MAX, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ReadError::TooLarge),
        Ok(Err(_)) | Err(_) => Err(ReadError::Broken),
    }
}

/// What is answered, and with which faults.
fn decide(parts: &Parts, body: &Bytes, state: &State, record: &Record) -> (Reply, Script) {
    let refused = |refusal: &Refusal| (openai::failure(refusal), Script::default());
    let path = parts.uri.path();
    let endpoint = match surface::find(&parts.method, path) {
        Ok(endpoint) => endpoint,
        Err(NoEndpoint::Path) => return refused(&Refusal::no_such_path(&parts.method, path)),
        Err(NoEndpoint::Method) => return refused(&Refusal::no_such_method(&parts.method, path)),
    };
    if let Err(refusal) = openai::authorise(&parts.headers, &state.settings) {
        return refused(&refusal);
    }
    match endpoint {
        Endpoint::Models => (models::list(), Script::default()),
        Endpoint::Model(id) => (models::show(id), Script::default()),
        Endpoint::Chat => match ask_chat(body, state, record) {
            Ok((reply, script)) => (reply, script),
            Err(refusal) => refused(&refusal),
        },
    }
}

/// A chat call: the script of its model, then the answer or what stands in its place.
fn ask_chat(body: &Bytes, state: &State, record: &Record) -> Result<(Reply, Script), Refusal> {
    let request = chat::parse(body)?;
    let (name, own_faults) = split_model(chat::model_of(&request)?);
    let queued = state.queue.take(name).unwrap_or_default();
    let faults = [own_faults, &queued]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("+");
    record.model(name, &faults);

    let mut script = Script::default();
    script
        .apply(own_faults)
        .and_then(|()| script.apply(&queued))
        .map_err(|error| Refusal::bad_script(&error))?;
    let ask = Ask {
        name,
        script: &script,
        seed: Seed::of(&[body, &record.seq().to_le_bytes()]),
        created: unix_seconds(),
    };
    let reply = match &script.instead {
        Some(Instead::Status(status)) => openai::of_status(status, name),
        Some(Instead::ErrorIn200) => chat::error_in_200(&request, name),
        Some(Instead::HtmlPage) => html_page(),
        Some(Instead::EmptyObject) => chat::empty_object(&request),
        // The play replaces the bytes; the head is that of the true answer.
        Some(Instead::Swapped | Instead::Garbage | Instead::EndlessLine) | None => {
            chat::answer(&request, &ask).unwrap_or_else(|refusal| openai::failure(&refusal))
        }
    };
    Ok((reply, script))
}

fn respond(
    reply: Reply,
    script: &Script,
    state: &State,
    wire: Arc<Wire>,
    record: Option<Record>,
) -> Response<Body> {
    let seq = record.as_ref().map_or(0, Record::seq);
    let play = Play::new(reply.content, script, state.settings.pace);
    let mut response = Response::new(Body::new(play, wire, record));
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    if seq > 0 {
        *headers = identity_headers(&mut Seed::new(seq));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.extend(reply.headers);
    response
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|since| since.as_secs())
        .unwrap_or_default()
}
