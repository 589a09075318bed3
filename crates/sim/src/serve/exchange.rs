//! Handles one request: reads it, logs it, creates the reply, and sends it with its delays and faults.

use super::body::Body;
use super::endpoint::{self, Endpoint, NoEndpoint};
use super::state::State;
use super::wire::SocketState;
use crate::amazon::{self, Converse, Invoke};
use crate::call_context::CallContext;
use crate::call_log::{CallEnd, CallRecord};
use crate::catalog;
use crate::chat::Chat;
use crate::cloud::{self, Outcome};
use crate::content_task;
use crate::control;
use crate::embed::Embed;
use crate::embeddings::Embeddings;
use crate::fault::{BreakKind, BreakOff, BreakPoint, Script, SubstituteReply, split_model};
use crate::generate::{self, Generate};
use crate::google;
use crate::habit;
use crate::images::{EditsCall, GenerationsCall};
use crate::interactions::Interactions;
use crate::messages::{self, Messages};
use crate::omni;
use crate::openai::{self, Refusal};
use crate::predict;
use crate::protocol::{IncomingCall, Protocol};
use crate::reply::{BodySteps, Reply, Vendor, html_page, identity_headers, request_id};
use crate::responses::{self, Responses};
use crate::seed::Seed;
use crate::video_a;
use crate::voice::{self, SpeechCall, TranscriptCall, socket};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum time for the body of a request to arrive.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);

/// The error that closes a connection without an answer.
#[derive(Debug)]
pub(crate) struct ClosedUnanswered;

impl fmt::Display for ClosedUnanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed without an answer")
    }
}

impl std::error::Error for ClosedUnanswered {}

pub(super) async fn exchange(
    request: Request<Incoming>,
    state: Arc<State>,
    wire: Arc<SocketState>,
) -> Result<Response<Body>, ClosedUnanswered> {
    if let Some(path) = socket::Path::of(request.uri().path(), request.headers()) {
        return Ok(session(path, request, &state, wire));
    }
    let (parts, incoming) = request.into_parts();
    if control::owns(parts.uri.path()) {
        let body = match read(incoming, control::REQUEST_BYTES_MAX).await {
            Ok(body) => body,
            Err(ReadError::TooLarge) => Bytes::new(),
            Err(ReadError::Broken) => return Err(ClosedUnanswered),
        };
        let reply = control::answer(&parts, &body, &state);
        let steps = BodySteps::new(reply.content, &Script::default(), None);
        let mut response = Response::new(Body::new(steps, wire, None));
        *response.status_mut() = reply.status;
        let content_type = HeaderValue::from_static(reply.content_type);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        return Ok(response);
    }

    let mut vendor = Vendor::of_path(parts.uri.path());
    let mut record = state.calls.open(&parts);
    let (reply, script) = match read(incoming, state.settings.request_bytes_max).await {
        Ok(body) => {
            record.body(&body);
            match pass_to_cloud(&parts, &body, &state, &record) {
                Outcome::NotForCloud => decide(&parts, &body, &state, &record),
                Outcome::Refused(reply) => without_script(*reply),
                Outcome::TokenAnswer(reply, script) => {
                    (habit::apply(*reply, &script.habits), *script)
                }
                Outcome::Converted(request) => {
                    vendor = Vendor::of_path(request.parts.uri.path());
                    let (reply, script) = decide(&request.parts, &request.body, &state, &record);
                    (request.change_answer(reply), script)
                }
            }
        }
        Err(ReadError::TooLarge) => {
            let refusal = too_large(parts.uri.path(), &request_id(record.seq()));
            without_script(refusal)
        }
        Err(ReadError::Broken) => {
            record.will_end(CallEnd::Broken);
            return Err(ClosedUnanswered);
        }
    };
    if let Some(delay) = script.times.delay {
        tokio::time::sleep(delay).await;
    }
    if let Some(BreakOff {
        how,
        place: BreakPoint::Head,
    }) = script.stop
    {
        match how {
            // hyper drops this future when the peer closes the connection.
            BreakKind::Hang => std::future::pending::<()>().await,
            BreakKind::Reset => {
                wire.reset_on_close();
                record.will_end(CallEnd::Reset);
            }
            BreakKind::Cut | BreakKind::Truncate => record.will_end(CallEnd::Cut),
        }
        return Err(ClosedUnanswered);
    }
    record.status(reply.status.as_u16());
    Ok(respond(reply, vendor, &script, &state, wire, record))
}

/// Passes a request to the clouds. Calls of token endpoints have a model name of their own in the log and for faults.
fn pass_to_cloud(parts: &Parts, body: &Bytes, state: &State, record: &CallRecord) -> Outcome {
    let script = || {
        let queued = state.queue.take(cloud::TOKEN_MODEL).unwrap_or_default();
        record.model(cloud::TOKEN_MODEL, &queued);
        let mut script = Script::default();
        // This cannot fail, because a script that cannot be parsed is refused when it is queued.
        let _ = script.apply(&queued);
        script
    };
    let (settings, number) = (&state.settings, record.seq());
    cloud::receive(parts, body, settings, &state.issued_tokens, number, script)
}

/// Accepts a WebSocket session, or refuses it with a normal HTTP answer.
fn session(
    path: socket::Path,
    mut request: Request<Incoming>,
    state: &Arc<State>,
    wire: Arc<SocketState>,
) -> Response<Body> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let mut record = state.calls.open(&parts);
    let call = IncomingCall {
        parts: &parts,
        body: &Bytes::new(),
        settings: &state.settings,
        jobs: &state.jobs,
        content_tasks: &state.content_tasks,
        request_id: &request_id(record.seq()),
    };
    let queued = |name: &str| state.queue.take(name).unwrap_or_default();
    let session = match socket::Session::read(path, &call, queued) {
        Ok(session) => session,
        Err(reply) => {
            record.status(reply.status.as_u16());
            let vendor = Vendor::of_path(parts.uri.path());
            return respond(reply, vendor, &Script::default(), state, wire, record);
        }
    };
    record.model(&session.name, &session.faults);
    record.status(StatusCode::SWITCHING_PROTOCOLS.as_u16());
    state.sessions.lock().spawn(async move {
        if let Ok(io) = upgrade.await {
            let usage = session.run(TokioIo::new(io)).await;
            record.session_usage(usage);
            record.will_end(CallEnd::Completed);
        }
    });
    let nothing = Reply::json(StatusCode::SWITCHING_PROTOCOLS, "");
    let steps = BodySteps::new(nothing.content, &Script::default(), None);
    let mut response = Response::new(Body::new(steps, wire, None));
    *response.status_mut() = nothing.status;
    *response.headers_mut() = socket::switching(&parts.headers);
    response
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

/// Creates the reply, and the script with the faults to apply to it.
fn decide(parts: &Parts, body: &Bytes, state: &State, record: &CallRecord) -> (Reply, Script) {
    let call = IncomingCall {
        parts,
        body,
        settings: &state.settings,
        jobs: &state.jobs,
        content_tasks: &state.content_tasks,
        request_id: &request_id(record.seq()),
    };
    let path = parts.uri.path();
    let checked = match amazon::check_signature(parts, body, &state.settings, unix_seconds()) {
        Ok(checked) => checked,
        Err(refusal) => return without_script(refusal),
    };
    let call = match &checked {
        Some(parts) => IncomingCall { parts, ..call },
        None => call,
    };
    match endpoint::find(&parts.method, path) {
        Err(why) => without_script(no_endpoint(&call, why)),
        Ok(Endpoint::Models) => without_script(catalog::list(&call)),
        Ok(Endpoint::Model(id)) => without_script(catalog::show(id, &call)),
        Ok(Endpoint::Voices) => without_script(voice::list(&call)),
        Ok(Endpoint::Voice(id)) => without_script(voice::show(id, &call)),
        Ok(Endpoint::Transcript) => answer_call::<TranscriptCall>(&call, state, record),
        Ok(Endpoint::Speech) => answer_call::<SpeechCall>(&call, state, record),
        Ok(Endpoint::Converse) => answer_call::<Converse>(&call, state, record),
        Ok(Endpoint::Invoke) => answer_call::<Invoke>(&call, state, record),
        Ok(Endpoint::Chat) => answer_call::<Chat>(&call, state, record),
        Ok(Endpoint::Embed) => answer_call::<Embed>(&call, state, record),
        Ok(Endpoint::Embeddings) => answer_call::<Embeddings>(&call, state, record),
        Ok(Endpoint::Generate) => answer_call::<Generate>(&call, state, record),
        Ok(Endpoint::ImageEdits) => answer_call::<EditsCall>(&call, state, record),
        Ok(Endpoint::ImageGenerations) => answer_call::<GenerationsCall>(&call, state, record),
        Ok(Endpoint::Interactions) if omni::is_asked(&call) => {
            answer_call::<omni::Create>(&call, state, record)
        }
        Ok(Endpoint::Interactions) => answer_call::<Interactions>(&call, state, record),
        Ok(Endpoint::Responses) => answer_call::<Responses>(&call, state, record),
        Ok(Endpoint::CreateVideo) => answer_call::<video_a::Create>(&call, state, record),
        Ok(Endpoint::PollVideo) => answer_call::<video_a::Poll>(&call, state, record),
        Ok(Endpoint::Predict) => answer_call::<predict::Create>(&call, state, record),
        Ok(Endpoint::Operation) => answer_call::<predict::Poll>(&call, state, record),
        Ok(Endpoint::File) => answer_call::<google::File>(&call, state, record),
        Ok(Endpoint::VideoFile) => without_script(video_a::show_file(&call)),
        Ok(Endpoint::ContentTasks) => answer_call::<content_task::Create>(&call, state, record),
        Ok(Endpoint::ContentTaskList) => without_script(content_task::list(&call)),
        Ok(Endpoint::ContentTask) => answer_call::<content_task::Poll>(&call, state, record),
        Ok(Endpoint::ContentTaskDeletion) => {
            answer_call::<content_task::Delete>(&call, state, record)
        }
        Ok(Endpoint::ContentFile) => answer_call::<content_task::File>(&call, state, record),
        Ok(Endpoint::Messages) => answer_call::<Messages>(&call, state, record),
        Ok(Endpoint::ResponseCount) => answer_call::<responses::Count>(&call, state, record),
        Ok(Endpoint::MessageCount) => answer_call::<messages::Count>(&call, state, record),
        Ok(Endpoint::GenerateCount) => answer_call::<generate::Count>(&call, state, record),
    }
}

/// A vendor's refusal of an unknown path or method.
fn no_endpoint(call: &IncomingCall<'_>, why: NoEndpoint) -> Reply {
    let (method, path) = (&call.parts.method, call.parts.uri.path());
    match (Vendor::of_path(path), why) {
        (Vendor::Anthropic, _) => messages::no_such_path(call.request_id),
        (Vendor::Amazon, _) => amazon::no_such_path(),
        (Vendor::Google, NoEndpoint::Path) => {
            google::failure_at(path, &google::Refusal::no_such_path(path))
        }
        (Vendor::Google, NoEndpoint::Method) => {
            google::failure_at(path, &google::Refusal::no_such_method(method, path))
        }
        (Vendor::OpenAi, NoEndpoint::Path) => openai::failure(&Refusal::no_such_path(method, path)),
        (Vendor::OpenAi, NoEndpoint::Method) => {
            openai::failure(&Refusal::no_such_method(method, path))
        }
    }
}

fn too_large(path: &str, request_id: &str) -> Reply {
    match Vendor::of_path(path) {
        Vendor::Anthropic => messages::too_large(request_id),
        Vendor::Amazon => amazon::too_large(),
        Vendor::Google => google::failure_at(path, &google::Refusal::too_large()),
        Vendor::OpenAi => openai::failure(&Refusal::too_large()),
    }
}

fn without_script(reply: Reply) -> (Reply, Script) {
    (reply, Script::default())
}

/// Creates the answer to a call, or the reply that its script substitutes. Also returns the script.
fn answer_call<P: Protocol>(
    call: &IncomingCall<'_>,
    state: &State,
    record: &CallRecord,
) -> (Reply, Script) {
    let request = match P::read(call) {
        Ok(request) => request,
        Err(refusal) => return without_script(refusal),
    };
    let (name, own_faults) = split_model(request.model());
    let queued = state.queue.take(name).unwrap_or_default();
    let faults = [own_faults, &queued]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("+");
    record.model(name, &faults);

    let mut script = Script::default();
    if let Err(error) = script
        .apply(own_faults)
        .and_then(|()| script.apply(&queued))
    {
        return without_script(request.errors().bad_script(&error));
    }
    let reply = match &script.substitute {
        Some(SubstituteReply::Status(status)) => request.errors().of_status(status, name),
        Some(SubstituteReply::ErrorIn200) => request.errors().error_in_200(name),
        Some(SubstituteReply::HtmlPage) => html_page(),
        Some(SubstituteReply::EmptyObject) => request.errors().empty_object(),
        Some(SubstituteReply::Refusal(refusal)) => refusal.reply(name),
        // `Garbage` and `EndlessLine` keep the head of the true answer; `BodySteps` replaces the body. For `Swapped`,
        // `answer` itself swaps a whole answer and a stream, if the protocol has both.
        Some(
            SubstituteReply::Swapped | SubstituteReply::Garbage | SubstituteReply::EndlessLine,
        )
        | None => {
            let used = Cell::new(None);
            let reply = request.answer(&CallContext {
                name,
                script: &script,
                seed: Seed::of(&[call.body, &record.seq().to_le_bytes()]),
                created: unix_seconds(),
                true_usage: &used,
            });
            record.true_usage(used.get());
            habit::apply(reply, &script.habits)
        }
    };
    (reply, script)
}

fn respond(
    reply: Reply,
    vendor: Vendor,
    script: &Script,
    state: &State,
    wire: Arc<SocketState>,
    record: CallRecord,
) -> Response<Body> {
    let mut headers = identity_headers(vendor, record.seq());
    let steps = BodySteps::new(reply.content, script, state.settings.pace);
    let mut response = Response::new(Body::new(steps, wire, Some(record)));
    *response.status_mut() = reply.status;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.extend(reply.headers);
    *response.headers_mut() = headers;
    response
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|since| since.as_secs())
        .unwrap_or_default()
}
