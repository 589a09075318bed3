//! Opens sessions: admits the caller and connects to an upstream. `run.rs` then relays.

use std::sync::Arc;

use http::HeaderValue;
use protocol::voice::{MeterReading, SessionRules, Watch};
use protocol::{Code, Failure, guard};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use upstream::{
    CallOutcome, Channel, Handshake, Socket, SocketEndpoint, SocketRequest, SocketStream,
    socket_config,
};

use super::hold::SessionHold;
use super::kind::SessionKind;
use super::pricing::{HoldAhead, SessionPricing};
use super::relay::SocketRelay;
use super::run::Session;
use crate::billing::estimate::Estimate;
use crate::billing::metering::Metering;
use crate::call::admission::{Admission, RefusedAdmission};
use crate::call::arrival::Arrival;
use crate::call::attempt::Attempt;
use crate::call::failed_call::FailedCall;
use crate::call::open_record::OpenRecord;
use crate::call::progress::Progress;
use crate::call::record::Record;
use crate::call::route_failure::RouteFailure;
use crate::call::route_plan::RoutePlan;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::memory_budget::MemoryShare;
use crate::speech::model;

/// A session request of an authenticated caller.
#[derive(Debug)]
pub struct SessionCall {
    pub arrival: Arrival,
    pub kind: SessionKind,
    pub model: String,
    /// The rest of the query, unchanged.
    pub query: String,
    /// The memory of the caller, for large messages.
    pub memory: MemoryShare,
}

/// A session whose upstream is connected. The client has received nothing yet.
#[derive(Debug)]
#[must_use = "the hold is settled by running the session, or by dropping it"]
pub struct OpenSession {
    upstream: Socket,
    upstream_model: Arc<str>,
    channel: Channel,
    model: Arc<Model>,
    kind: SessionKind,
    memory: MemoryShare,
    admission: Box<Admission>,
}

impl OpenSession {
    /// Relays until one side ends the session.
    pub async fn run<S>(self: Box<Self>, client: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let watch = match self.kind {
            SessionKind::Realtime => {
                Watch::realtime(&self.model.id, self.model.profile.context_tokens)
            }
            SessionKind::Speech => Watch::speech(),
            SessionKind::Transcript(listened) => Watch::transcript(listened),
        };
        let watch = watch.with_rules(SessionRules {
            refuses_urls: self.channel.spec().private_network,
            refuses_tools: self.admission.engine().settings.refuse_unpriced_tools,
        });
        let bounds = self.admission.engine().settings.sockets;
        let config = Some(socket_config(bounds.message_bytes_max));
        let client = SocketStream::of_client(client);
        let client = WebSocketStream::from_raw_socket(client, Role::Server, config).await;
        let pricing = SessionPricing::new(self.kind, &self.model);
        let session = Box::new(Session {
            relay: SocketRelay::new(client, self.upstream, self.memory),
            watch,
            hold: SessionHold::new(self.admission, pricing),
            bounds,
            names: (self.upstream_model, Arc::clone(&self.model.id)),
            channel: self.channel,
            began: Instant::now(),
        });
        session.run().await;
    }
}

impl Engine {
    /// Admits a session and connects to an upstream.
    pub async fn open_session(
        self: &Arc<Self>,
        call: SessionCall,
    ) -> Result<Box<OpenSession>, FailedCall> {
        let progress = Arc::new(Progress::new(self));
        let mut record = OpenRecord::begin(Arc::clone(&progress), &call.arrival);
        record.update_record(|record| record.set_model(call.model.as_str(), true));
        let found = guard::model_id(&call.model)
            .and_then(|()| {
                let price = Some(call.kind.price_key());
                model::find(self, &call.model, &call.arrival.key, price)
            })
            .and_then(|plan| self.refuse_unpriced_text(call.kind, plan));
        let found = found.and_then(|mut plan| {
            // A session takes no tokens from the limits of its route, because their number is not known in advance.
            plan.reserve(0, &mut record)?;
            Ok(plan)
        });
        let plan = match found {
            Ok(plan) => plan,
            Err(failure) => return Err(record.refuse(failure)),
        };
        let model = Arc::clone(plan.model());
        let admission = admit(&call, &model, record).await?;
        let rates = admission.rates;
        open(self, call, model, plan, &progress, admission)
            .await
            .map_err(|failure| FailedCall::admitted(failure, rates))
    }
}

impl Engine {
    /// Refuses realtime sessions whose text tokens have no price, if the settings require that.
    fn refuse_unpriced_text(
        &self,
        kind: SessionKind,
        plan: RoutePlan,
    ) -> Result<RoutePlan, Failure> {
        let model = plan.model();
        let is_realtime = kind == SessionKind::Realtime;
        if is_realtime && self.settings.refuse_unpriced_text && !model.price.prices_text() {
            let message = format!(
                "Realtime sessions of the model `{}` are not offered here.",
                model.id
            );
            return Err(Failure::model_not_supported(message));
        }
        Ok(plan)
    }
}

/// Asks for a hold of one step, or of one unit if the wallet or the limit of the key does not cover a step.
async fn admit(
    call: &SessionCall,
    model: &Arc<Model>,
    record: OpenRecord,
) -> Result<Box<Admission>, FailedCall> {
    let pricing = SessionPricing::new(call.kind, model);
    let ask = async |more: HoldAhead, record| {
        let held = pricing.meter(MeterReading::default(), more);
        let mut estimate = Estimate::voice(held, Metering::Session);
        // Nothing has been used yet.
        estimate.metering = Metering::Session(Box::default());
        Admission::request(&call.arrival.key, model, &estimate, record).await
    };
    let refused = match ask(HoldAhead::FullStep, record).await {
        Ok(admission) => return Ok(admission),
        Err(refused) => refused,
    };
    let is_poor = matches!(
        refused.failed.failure.code,
        Code::InsufficientQuota | Code::KeyLimitReached
    );
    if !is_poor {
        return Err(refused.journal());
    }
    let admission = ask(HoldAhead::OneUnit, refused.record).await;
    admission.map_err(RefusedAdmission::journal)
}

async fn open(
    engine: &Arc<Engine>,
    call: SessionCall,
    model: Arc<Model>,
    mut plan: RoutePlan,
    progress: &Progress,
    mut admission: Box<Admission>,
) -> Result<Box<OpenSession>, Failure> {
    while let Some(route) = plan.next(progress, &mut *admission) {
        let traceparent = admission.traceparent(&route);
        match handshake(engine, &call, &model, &route, traceparent.as_ref()).await {
            Ok(upstream) => {
                admission.update_record(Record::upstream_answered);
                let admission = admission.start_answer(None).await?;
                progress.mark_sent();
                return Ok(Box::new(OpenSession {
                    upstream: *upstream,
                    upstream_model: Arc::clone(&route.model),
                    channel: route.channel.clone(),
                    kind: call.kind,
                    memory: call.memory,
                    model,
                    admission,
                }));
            }
            Err(failed) => plan.attempt_failed(failed, &mut *admission),
        }
    }
    let failure = plan.last_failure();
    admission.release(&failure);
    Err(failure)
}

async fn handshake(
    engine: &Engine,
    call: &SessionCall,
    model: &Model,
    route: &Route,
    traceparent: Option<&HeaderValue>,
) -> Result<Box<Socket>, RouteFailure> {
    let message_bytes_max = engine.settings.sockets.message_bytes_max;
    let mut attempt = Attempt::over(route).of_call(call.arrival.request_id);
    let query = match call.kind {
        // The model in the query only selects the route, so it is left out.
        SessionKind::Speech => call.query.clone(),
        SessionKind::Realtime | SessionKind::Transcript(_) => {
            let mut query = String::from("model=");
            encode(&route.model, &mut query);
            if !call.query.is_empty() {
                query.push('&');
                query.push_str(&call.query);
            }
            query
        }
    };
    let ask = SocketRequest {
        endpoint: match call.kind {
            SessionKind::Realtime => SocketEndpoint::Realtime,
            SessionKind::Speech => SocketEndpoint::Speech,
            SessionKind::Transcript(_) => SocketEndpoint::Transcript,
        },
        query: &query,
        traceparent,
        message_bytes_max,
    };
    match route.channel.open_socket(ask).await {
        Ok(Handshake::Open(socket)) => {
            attempt.report(CallOutcome::Served);
            Ok(socket)
        }
        Ok(Handshake::Refused(incoming)) => {
            attempt.report(CallOutcome::of_status(
                incoming.status,
                incoming.retry_after,
            ));
            Err(
                RouteFailure::refused_handshake(route, &model.id, incoming, attempt.request_id())
                    .await,
            )
        }
        Err(error) => Err(RouteFailure::lost(route, &error, &mut attempt)),
    }
}

/// Percent-encodes a value of the query.
fn encode(value: &str, out: &mut String) {
    use std::fmt::Write as _;
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}
