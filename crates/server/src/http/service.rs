//! What happens to every request: placed, recognised, read, served, answered.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use engine::{
    Caller, EmbeddingsCall, EmbeddingsPath, Engine, FailedCall, ImagesBody, ImagesCall, LastKey,
    Tally, TextCall, TextPath, TokenCountCall, VideoCall, VideoEndpoint, ids,
};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use ledger::Balance;
use protocol::images::Asked;
use protocol::{Code, Dialect, Failure};
use tokio_util::task::TaskTracker;

use super::connection::timers::Pulse;
use super::endpoint::surface::{Endpoint, Surface};
use super::handlers::websocket::{self, Switch};
use super::handlers::{catalog, media, tasks, voice};
use super::listener::{Limits, Seat};
use super::panics::catch_panic;
use super::request::body::{self, Bounds};
use super::request::body_memory::Payer;
use super::request::credentials;
use super::response::cors::{Cors, Grant};
use super::response::reply::{self, ReplyBody, Visit};

/// What all connections of the public listener share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) limits: Limits,
    /// Whether paths are served that only SDKs know.
    pub(crate) aliases: bool,
    /// Which pages may read answers in a browser; none without it.
    pub(crate) cors: Option<Cors>,
    /// Sessions that have left their connections; they end with the node.
    pub(crate) sessions: TaskTracker,
}

/// One connection of the public listener. Its requests and sessions hold it, not what all connections
/// share: who counts there writes to memory that every core wants.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) seat: Seat,
    pub(crate) last_key: LastKey,
}

/// Answers one request. It always answers: refusals and panics have their envelope too.
pub(crate) async fn serve(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Response<ReplyBody> {
    let is_head = request.method() == Method::HEAD;
    let grant = connection.shared.cors.as_ref();
    let grant = grant.map(|cors| cors.grant(&request));
    let is_preflight = grant.as_ref().is_some_and(Grant::is_preflight);
    let mut response = answer(connection, request, is_preflight).await;
    if let Some(grant) = grant
        && response.status() != StatusCode::SWITCHING_PROTOCOLS
    {
        grant.write(response.headers_mut());
    }
    if is_head {
        reply::without_content(response)
    } else {
        response
    }
}

async fn answer(
    connection: Arc<Connection>,
    request: Request<Incoming>,
    is_preflight: bool,
) -> Response<ReplyBody> {
    let Connection { shared, pulse, .. } = &*connection;
    let surface = Surface::find(request.method(), request.uri().path(), shared.aliases);
    // Only calls take places: a node full of them still tells balances and its catalog.
    let place = surface
        .endpoint
        .is_call()
        .then(|| shared.engine.enter())
        .transpose();
    connection.tally.arrived();
    let (place, refused) = match place {
        Ok(place) => (place, None),
        Err(failure) => (None, Some(failure)),
    };
    let visit = Visit {
        connection: Arc::clone(&connection),
        request_id: ids::fresh("req_"),
        family: surface.family,
        endpoint: surface.template(),
        arrived: Instant::now(),
        caller: OnceLock::new(),
        place,
        _serving: pulse.serve(),
    };
    if let Some(refused) = pulse.next_refusal() {
        return visit.last_failure(&Failure::invalid(refused.message()));
    }
    if let Some(failure) = refused {
        return visit.failure(&failure);
    }
    if is_preflight {
        return visit.nothing();
    }
    // In a block of its own: the visit moves into its answer.
    let served = {
        let dispatched = pin!(dispatch(shared, &visit, surface, request));
        catch_panic(dispatched).await
    };
    match served {
        Ok(Ok(Served::Document(document))) => visit.json(document),
        Ok(Ok(Served::Answer(answer))) => visit.answer(answer),
        Ok(Ok(Served::Switch(switch))) => {
            let response = visit.switching(&switch);
            shared.sessions.spawn(switch.run(visit));
            response
        }
        Ok(Ok(Served::Media(reply))) => visit.media(reply),
        Ok(Err(unanswered)) => visit.unanswered(&unanswered),
        Err(_) => {
            visit.panicked("a request");
            visit.failure(&Failure::internal())
        }
    }
}

pub(super) enum Served {
    Document(Vec<u8>),
    Answer(engine::Answer),
    Switch(Box<Switch>),
    Media(media::Reply),
}

async fn dispatch(
    shared: &Shared,
    visit: &Visit,
    surface: Surface,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    let engine = &shared.engine;
    check_head(request.headers(), request.uri(), &shared.limits)?;
    if websocket::is_misplaced(&surface.endpoint, &request, shared.aliases) {
        return Err(Failure::websocket_not_supported().into());
    }
    if surface.endpoint == Endpoint::Unknown {
        return Err(Failure::not_found("There is no such endpoint.").into());
    }
    if let Endpoint::Media(asked, name) = surface.endpoint {
        let (method, headers) = (request.method(), request.headers());
        let from = shared.limits.counted(visit.connection.seat.address());
        return Ok(media::serve(engine, from, name, asked, method, headers)
            .await
            .map(Served::Media)?);
    }
    let recognised = recognise(&visit.connection, &surface, &request).await?;
    let caller = visit.caller.get_or_init(|| recognised);
    let key = &caller.key;
    // Every connection keeps room for the largest of these futures: large ones that are asked for
    // now and then stand elsewhere.
    match surface.endpoint {
        Endpoint::Models => Ok(Served::Document(catalog::list(&engine.catalog()))),
        Endpoint::GoogleModels => Ok(Served::Document(catalog::google_list(&engine.catalog()))),
        Endpoint::Model(id) => Ok(with_model(engine, &id, catalog::one)?),
        Endpoint::GoogleModel(id) => Ok(with_model(engine, &id, catalog::google_one)?),
        Endpoint::Balance => Ok(balance(engine, key).await?),
        Endpoint::Text(Dialect::Interactions) => interactions(shared, visit, caller, request).await,
        Endpoint::Text(dialect) => text(shared, visit, dialect, None, caller, request).await,
        Endpoint::Named(named) => {
            text(
                shared,
                visit,
                Dialect::Generate,
                Some(named),
                caller,
                request,
            )
            .await
        }
        Endpoint::TokenCount(dialect) => {
            Box::pin(token_count(shared, visit, dialect, None, caller, request)).await
        }
        Endpoint::NamedTokenCount(model) => {
            let count = token_count(
                shared,
                visit,
                Dialect::Generate,
                Some(model),
                caller,
                request,
            );
            Box::pin(count).await
        }
        Endpoint::Embeddings => embeddings(shared, visit, None, caller, request).await,
        Endpoint::Images(asked) => Box::pin(images(shared, visit, asked, caller, request)).await,
        Endpoint::Contents(named) => embeddings(shared, visit, Some(named), caller, request).await,
        Endpoint::Speech(form) => voice::speech(shared, visit, form, caller, request).await,
        Endpoint::Socket(path) => {
            let switch = Box::pin(websocket::open(shared, visit, path, caller, request)).await?;
            Ok(Served::Switch(Box::new(switch)))
        }
        Endpoint::Transcript(form) => {
            Box::pin(voice::transcript(shared, visit, form, caller, request)).await
        }
        Endpoint::Voices(name) => {
            Box::pin(voice::voices(shared, visit, name, caller, &request)).await
        }
        Endpoint::Video(ask) => video(shared, visit, ask, caller, request).await,
        Endpoint::Task(id) => Ok(Served::Document(engine.task(key, &id).await?.into())),
        Endpoint::ContentTasks => {
            let query = tasks::list_query(request.uri())?;
            Ok(Served::Document(engine.content_tasks(key, query).await?))
        }
        Endpoint::TaskDeletion(id) => {
            engine.delete_task(key, &id).await?;
            Ok(Served::Document(b"{}".to_vec()))
        }
        Endpoint::Media(..) | Endpoint::Unknown => {
            Err(Failure::not_found("There is no such endpoint.").into())
        }
    }
}

/// Limits of the head, beyond what the HTTP library refuses by itself.
fn check_head(headers: &HeaderMap, uri: &Uri, limits: &Limits) -> Result<(), Failure> {
    let target_bytes = uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if target_bytes > limits.target_bytes_max {
        let failure = Failure::new(Code::RequestTooLarge, "The request target is too long.");
        return Err(failure.with_status(414));
    }
    let mut total = 0;
    for (name, value) in headers {
        let bytes = name.as_str().len() + value.len();
        total += bytes;
        if bytes > limits.header_bytes_max || total > limits.headers_bytes_max {
            let failure = Failure::new(Code::RequestTooLarge, "The request headers are too large.");
            return Err(failure.with_status(431));
        }
    }
    Ok(())
}

async fn recognise(
    connection: &Connection,
    surface: &Surface,
    request: &Request<Incoming>,
) -> Result<Caller, Failure> {
    let secret = credentials::find(surface.family, request.headers(), request.uri())
        .map_err(|_| Failure::invalid_api_key())?;
    let Connection {
        shared, last_key, ..
    } = connection;
    shared.engine.recognise(secret, last_key).await
}

fn with_model(
    engine: &Engine,
    id: &str,
    write: fn(&engine::Model) -> Vec<u8>,
) -> Result<Served, Failure> {
    let catalog = engine.catalog();
    Ok(Served::Document(write(catalog.find(id)?)))
}

async fn balance(engine: &Engine, key: &store::KeyHead) -> Result<Served, Failure> {
    let (wallet, key) = engine.balance(key).await?;
    let document =
        serde_json::to_vec(&Balance::view(&wallet, &key)).map_err(|_| Failure::internal())?;
    Ok(Served::Document(document))
}

async fn text(
    shared: &Shared,
    visit: &Visit,
    dialect: Dialect,
    named: Option<TextPath>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    body::check_json_headers(request.headers())?;
    let extra = forwarded(dialect, request.headers());
    let bounds = bounds(shared, shared.limits.body_text_bytes);
    let payer = payer(shared, caller);
    let body = body::read(request.into_body(), bounds, payer).await?;
    let call = TextCall {
        arrival: visit.arrival(caller),
        dialect,
        named,
        body,
        extra,
    };
    shared.engine.text(call).await.map(Served::Answer)
}

/// How many tokens a text request has.
async fn token_count(
    shared: &Shared,
    visit: &Visit,
    dialect: Dialect,
    named: Option<String>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    body::check_json_headers(request.headers())?;
    let extra = forwarded(dialect, request.headers());
    let bounds = bounds(shared, shared.limits.body_text_bytes);
    // Before the body is read: a key beyond its limit must not keep the node busy with large ones.
    let arrival = visit.arrival(caller);
    shared.engine.take_token_count(&arrival, caller)?;
    let payer = payer(shared, caller);
    let body = body::read(request.into_body(), bounds, payer).await?;
    let call = TokenCountCall {
        arrival,
        dialect,
        named,
        body,
        extra,
    };
    let counted = shared.engine.count_tokens(call).await?;
    Ok(Served::Document(counted))
}

/// Interactions are of two kinds, which only the body tells apart: a text that is answered, a video that is a
/// task.
async fn interactions(
    shared: &Shared,
    visit: &Visit,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    body::check_json_headers(request.headers())?;
    let extra = forwarded(Dialect::Interactions, request.headers());
    let limits = &shared.limits;
    let bytes_max = limits.body_text_bytes.max(limits.body_video_bytes);
    let bounds = bounds(shared, bytes_max);
    let payer = payer(shared, caller);
    let body = body::read(request.into_body(), bounds, payer).await?;
    let is_video = shared.engine.is_video_interaction(&body);
    let bytes_max = if is_video {
        limits.body_video_bytes
    } else {
        limits.body_text_bytes
    };
    if body.len() > bytes_max {
        let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        return Err(Failure::request_too_large(bytes_max).into());
    }
    let arrival = visit.arrival(caller);
    let answer = if is_video {
        let ask = VideoEndpoint::Omni;
        let call = VideoCall { arrival, ask, body };
        shared.engine.create_video(call).await
    } else {
        let call = TextCall {
            arrival,
            dialect: Dialect::Interactions,
            named: None,
            body,
            extra,
        };
        shared.engine.text(call).await
    };
    answer.map(Served::Answer)
}

async fn embeddings(
    shared: &Shared,
    visit: &Visit,
    named: Option<EmbeddingsPath>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    body::check_json_headers(request.headers())?;
    let bounds = bounds(shared, shared.limits.body_embeddings_bytes);
    let payer = payer(shared, caller);
    let body = body::read(request.into_body(), bounds, payer).await?;
    let call = EmbeddingsCall {
        arrival: visit.arrival(caller),
        named,
        body,
    };
    shared.engine.embeddings(call).await.map(Served::Answer)
}

async fn images(
    shared: &Shared,
    visit: &Visit,
    asked: Asked,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    let bounds = bounds(shared, shared.limits.body_image_bytes);
    let payer = payer(shared, caller);
    let is_form = asked == Asked::Edit && body::is_form(request.headers());
    let body = if is_form {
        let reader = body::form_reader(request.headers())?;
        let (form, share) = body::read_form(request.into_body(), reader, bounds, payer).await?;
        ImagesBody::Form(form, share)
    } else {
        body::check_json_headers(request.headers())?;
        ImagesBody::Json(body::read(request.into_body(), bounds, payer).await?)
    };
    let call = ImagesCall {
        arrival: visit.arrival(caller),
        asked,
        body,
    };
    shared.engine.images(call).await.map(Served::Answer)
}

async fn video(
    shared: &Shared,
    visit: &Visit,
    ask: VideoEndpoint,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    body::check_json_headers(request.headers())?;
    let bounds = bounds(shared, shared.limits.body_video_bytes);
    let payer = payer(shared, caller);
    let body = body::read(request.into_body(), bounds, payer).await?;
    let call = VideoCall {
        arrival: visit.arrival(caller),
        ask,
        body,
    };
    shared.engine.create_video(call).await.map(Served::Answer)
}

pub(super) fn bounds(shared: &Shared, bytes_max: usize) -> Bounds {
    Bounds {
        bytes_max,
        idle: shared.limits.body_idle,
        total: shared.limits.body_total,
    }
}

pub(super) fn payer<'a>(shared: &'a Shared, caller: &'a Caller) -> Payer<'a> {
    Payer {
        engine: &shared.engine,
        caller,
    }
}

/// What a caller tells an upstream of its own dialect beside the body: the betas it asks for.
fn forwarded(dialect: Dialect, headers: &HeaderMap) -> HeaderMap {
    const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
    let mut forwarded = HeaderMap::new();
    if dialect == Dialect::Messages {
        for value in headers.get_all(&BETA) {
            forwarded.append(&BETA, value.clone());
        }
    }
    forwarded
}

pub(super) fn refuse_idempotency_key(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key("idempotency-key") {
        return Err(Failure::idempotency_key_not_supported());
    }
    Ok(())
}
