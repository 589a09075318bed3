//! Sessions: admitted, opened with an upstream, then relayed (`session.rs`).

use std::sync::Arc;

use protocol::voice::{Listened, Reading, Watch};
use protocol::{Code, Failure, guard};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use upstream::{
    CallOutcome, Channel, Endpoint, Handshake, Socket, SocketEndpoint, SocketRequest, socket_config,
};

use super::hold::Purse;
use super::pricing::{More, Tariff, price_key};
use super::relay::Lanes;
use super::run::Session;
use crate::billing::estimate::Estimate;
use crate::billing::metering::Gauge;
use crate::call::admission::{Admission, Refused};
use crate::call::answer::Unanswered;
use crate::call::attempt::Trial;
use crate::call::kind::Arrival;
use crate::call::progress::Progress;
use crate::call::record::Record;
use crate::call::route_plan::{self, Miss, Tries};
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::speech::model;

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    Realtime,
    Speech,
    Transcript(Listened),
}

/// A wish for a session of a known caller.
#[derive(Debug)]
pub struct SocketCall {
    pub arrival: Arrival,
    pub kind: SocketKind,
    pub model: String,
    /// The rest of the query, as it was written.
    pub query: String,
}

/// A session whose upstream waits; nothing of it has reached the caller yet.
#[derive(Debug)]
#[must_use = "the hold is settled by running the session, or by dropping it"]
pub struct OpenSocket {
    upstream: Socket,
    upstream_model: Arc<str>,
    channel: Channel,
    model: Arc<Model>,
    kind: SocketKind,
    admission: Box<Admission>,
}

impl OpenSocket {
    /// Relays until one side ends it.
    pub async fn run<S>(self: Box<Self>, client: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let watch = match self.kind {
            SocketKind::Realtime => Watch::realtime(&self.model.id),
            SocketKind::Speech => Watch::speech(),
            SocketKind::Transcript(listened) => Watch::transcript(listened),
        };
        let bounds = self.admission.engine().settings.sockets;
        let config = Some(socket_config(bounds.message_bytes_max));
        let client = WebSocketStream::from_raw_socket(client, Role::Server, config).await;
        let tariff = Tariff::new(self.kind, &self.model);
        let session = Box::new(Session {
            lanes: Lanes::new(client, self.upstream),
            watch,
            purse: Purse::new(self.admission, tariff),
            bounds,
            names: (self.upstream_model, Arc::clone(&self.model.id)),
            channel: self.channel,
            began: Instant::now(),
        });
        session.run().await;
    }
}

impl Engine {
    /// Admits a session and opens it with an upstream.
    pub async fn open_socket(
        self: &Arc<Self>,
        call: SocketCall,
    ) -> Result<Box<OpenSocket>, Unanswered> {
        let mut record = Box::new(Record::begin(&call.arrival));
        record.reads(call.model.as_str(), true);
        let found = guard::model_id(&call.model)
            .and_then(|()| model::find(self, &call.model, Some(price_key(call.kind))))
            .and_then(|tries| self.refuse_unpriced_text(call.kind, tries));
        let tries = match found {
            Ok(tries) => tries,
            Err(failure) => {
                self.journal(record.refused(&failure));
                return Err(failure.into());
            }
        };
        let model = Arc::clone(tries.model());
        let progress = Arc::new(Progress::new(self));
        let admission = admit(self, &call, &model, &progress, record).await?;
        let rates = admission.rates;
        open(self, call, model, tries, &progress, admission)
            .await
            .map_err(|failure| Unanswered {
                failure,
                rates: Some(Box::new(rates)),
            })
    }
}

impl Engine {
    /// Refuses realtime sessions whose text would cost nothing, where the settings ask for it.
    fn refuse_unpriced_text(&self, kind: SocketKind, tries: Tries) -> Result<Tries, Failure> {
        let model = tries.model();
        let is_realtime = kind == SocketKind::Realtime;
        if is_realtime && self.settings.refuse_unpriced_text && !model.price.prices_text() {
            let message = format!(
                "Realtime sessions of the model `{}` are not offered here.",
                model.id
            );
            return Err(Failure::model_not_supported(message));
        }
        Ok(tries)
    }
}

/// Holds a step, or what is affordable of it.
async fn admit(
    engine: &Arc<Engine>,
    call: &SocketCall,
    model: &Arc<Model>,
    progress: &Arc<Progress>,
    record: Box<Record>,
) -> Result<Box<Admission>, Unanswered> {
    let tariff = Tariff::new(call.kind, model);
    let ask = |more: More, record| {
        let held = tariff.meter(Reading::default(), more);
        let mut estimate = Estimate::voice(held, Gauge::Session);
        // Nothing has been used yet.
        estimate.gauge = Gauge::Session(Box::default());
        let progress = Arc::clone(progress);
        Admission::ask(&call.arrival.key, model, estimate, progress, record)
    };
    let refused = match ask(More::Step, record).await {
        Ok(admission) => return Ok(admission),
        Err(refused) => refused,
    };
    let is_poor = matches!(
        refused.unanswered.failure.code,
        Code::InsufficientQuota | Code::KeyLimitReached
    );
    let Refused { record, unanswered } = if is_poor {
        match ask(More::Unit, refused.record).await {
            Ok(admission) => return Ok(admission),
            Err(refused) => refused,
        }
    } else {
        refused
    };
    engine.journal(record.refused(&unanswered.failure));
    Err(unanswered)
}

async fn open(
    engine: &Arc<Engine>,
    call: SocketCall,
    model: Arc<Model>,
    mut tries: Tries,
    progress: &Progress,
    mut admission: Box<Admission>,
) -> Result<Box<OpenSocket>, Failure> {
    while let Some(route) = tries.next(progress) {
        admission.note(|record| record.tries(&route));
        match handshake(engine, &call, &model, &route).await {
            Ok(upstream) => {
                admission.note(Record::head_came);
                if let Err(failure) = admission.durable().await {
                    admission.release(&failure);
                    return Err(failure);
                }
                admission.note(|record| record.answers(None));
                progress.mark_sent();
                return Ok(Box::new(OpenSocket {
                    upstream: *upstream,
                    upstream_model: Arc::clone(&route.model),
                    channel: route.channel.clone(),
                    kind: call.kind,
                    model,
                    admission,
                }));
            }
            Err(miss) => {
                admission.note(|record| record.missed(&miss.failure));
                tries.miss(miss);
            }
        }
    }
    let failure = tries.failure();
    admission.release(&failure);
    Err(failure)
}

async fn handshake(
    engine: &Engine,
    call: &SocketCall,
    model: &Model,
    route: &Route,
) -> Result<Box<Socket>, Miss> {
    let message_bytes_max = engine.settings.sockets.message_bytes_max;
    let mut trial = Trial::of(&route.channel);
    let query = match call.kind {
        // It only selects the route.
        SocketKind::Speech => call.query.clone(),
        SocketKind::Realtime | SocketKind::Transcript(_) => {
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
            SocketKind::Realtime => SocketEndpoint::Realtime,
            SocketKind::Speech => SocketEndpoint::Speech,
            SocketKind::Transcript(_) => SocketEndpoint::Transcript,
        },
        query: &query,
        message_bytes_max,
    };
    match route.channel.open_socket(ask).await {
        Ok(Handshake::Open(socket)) => {
            trial.tell(CallOutcome::Served);
            Ok(socket)
        }
        Ok(Handshake::Refused(incoming)) => {
            trial.tell(CallOutcome::of_status(
                incoming.status,
                incoming.retry_after,
            ));
            // The sockets refuse in the words of the endpoints beside them.
            let endpoint = Endpoint::Speech;
            Err(route_plan::refused(route, &model.id, endpoint, &[], incoming).await)
        }
        Err(error) => Err(route_plan::lost(route, &error, &mut trial)),
    }
}

/// A value in a query.
fn encode(value: &str, out: &mut String) {
    use std::fmt::Write as _;
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to memory cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}
