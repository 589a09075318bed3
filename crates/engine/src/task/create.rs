//! Creation: the row first, then one request to the upstream, never a second.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use ledger::{Ask, Meter, PriceKey, Rates};
use protocol::video::Identity;
use protocol::video::video_a::{self, Operation, Request};
use protocol::{Failure, Joined, Kind};
use store::{Admit, Claim, End, NewTask, TaskAccepted, TaskEnd, TaskId};
use upstream::{Endpoint, Link, Outgoing, Protocol, Sent};

use crate::admission::refusal;
use crate::answer::{Answer, AnswerBody, Unanswered};
use crate::asked::unreachable_model;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;
use crate::progress::Progress;
use crate::record::{Outcome, Record};
use crate::trial::Trial;
use crate::tries::{self, Tries};
use crate::work::Arrival;

/// How long an upstream may take to accept a task.
const ACCEPT_WITHIN: Duration = Duration::from_secs(120);
/// After this nobody waits for the creator any more; it outlasts the creation and its note.
const CREATION_LEASE: Duration = Duration::from_secs(180);
/// How long a task may take (reliability, section 2).
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The answer to a creation.
const ACCEPTED_BYTES_MAX: usize = 1 << 20;
/// How often an accepted task is noted when the store does not answer.
const NOTE_TRIES: u32 = 5;
const NOTE_PAUSE: Duration = Duration::from_millis(200);

/// A video request of a known caller, its body read.
#[derive(Debug)]
pub struct VideoCall {
    pub arrival: Arrival,
    pub operation: Operation,
    pub body: Bytes,
}

impl Engine {
    /// Creates a task. What was begun is brought to its end also when the caller leaves: a task that the
    /// upstream has accepted must be known here.
    pub async fn create_video(self: &Arc<Self>, call: VideoCall) -> Result<Answer, Unanswered> {
        let engine = Arc::clone(self);
        let created = self.tasks.spawn(create(engine, call)).await;
        created.unwrap_or_else(|_| Err(Failure::internal().into()))
    }
}

/// A request that may ask for money.
struct Prepared {
    request: Request,
    model: Arc<Model>,
    tries: Tries,
    bound: Meter,
    ask: Ask,
}

/// What became of a creation that was sent.
enum Sending {
    /// The upstream's id.
    Accepted(String),
    /// The upstream has said no: there is no task.
    Refused(Failure),
    /// No byte has left us.
    Unsent(Failure),
    /// Nobody knows whether there is a task.
    Unknown(Failure),
}

async fn create(engine: Arc<Engine>, call: VideoCall) -> Result<Answer, Unanswered> {
    let mut record = Record::begin(&call.arrival);
    let prepared = match prepare(&engine, &call, &mut record) {
        Ok(prepared) => prepared,
        Err(failure) => {
            engine.journal(record.refused(&failure));
            return Err(failure.into());
        }
    };
    let now = clock::now();
    let id = TaskId::random(now);
    let opened = engine.store.open_task(new_task(id, &call, &prepared));
    let opened = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            let failure = refusal(&error);
            engine.journal(record.refused(&failure));
            return Err(Unanswered {
                failure,
                rates: error.rates().map(Box::new),
            });
        }
    };
    record.admitted(opened.hold);
    let mut attempt = Attempt {
        engine: &engine,
        prepared,
        endpoint: endpoint(call.operation),
        id,
        claim: opened.claim,
    };
    let created = attempt.run(&mut record).await;
    let rates = opened.rates;
    match created {
        Ok(()) => {
            record.answers(None);
            engine.journal(record.opened());
            Ok(answer(id, rates))
        }
        Err((failure, end)) => {
            engine.journal(record.ended_early(&Outcome::failed(&failure), end));
            Err(Unanswered {
                failure,
                rates: Some(Box::new(rates)),
            })
        }
    }
}

/// Everything that can be refused before money moves.
fn prepare(engine: &Engine, call: &VideoCall, record: &mut Record) -> Result<Prepared, Failure> {
    let request = video_a::read_request(&call.body, call.operation)?;
    record.reads(&request.model, false);
    if let Some(url) = &request.callback_url {
        Link::parse_any(url).map_err(|refusal| {
            Failure::invalid(format!("`callback_url`: {refusal}.")).param("callback_url")
        })?;
    }
    let catalog = engine.catalog();
    let model = catalog
        .find(&request.model)
        .ok_or_else(|| Failure::model_not_found(&request.model))?;
    let speaks = |route: &Route| route.channel.speaks(Protocol::VideoA);
    if model.kind != Kind::Video || !model.routes.iter().any(speaks) {
        let message = format!("The model `{}` makes no videos on this endpoint.", model.id);
        return Err(Failure::model_not_supported(message));
    }
    request.check(&model.profile)?;
    let tries = Tries::of(model, speaks).ok_or_else(|| unreachable_model(model))?;
    let dearest = || model.price.dearest_tier(PriceKey::VideoSecond);
    let bound = Meter {
        video_seconds: request.seconds_max(&model.profile),
        video_tier: request.resolution().or_else(dearest).map(Into::into),
        ..Meter::default()
    };
    let hold = ledger::hold_of(&model.price, &bound).map_err(|error| {
        tracing::error!(model = %model.id, %error, "a task cannot be priced");
        Failure::insufficient_quota()
    })?;
    // A task's hold is the task's, and counts for no key's concurrency.
    let ask = Ask {
        hold,
        tokens: 0,
        counts: false,
    };
    Ok(Prepared {
        request,
        model: Arc::clone(model),
        tries,
        bound,
        ask,
    })
}

fn new_task(id: TaskId, call: &VideoCall, prepared: &Prepared) -> NewTask {
    let name = id.to_string();
    let identity = Identity {
        id: &name,
        model: &prepared.model.id,
        upstream_model: "",
    };
    let url = prepared.request.callback_url.as_deref();
    NewTask {
        id,
        admit: Admit {
            wallet: call.arrival.key.wallet,
            key: call.arrival.key.key,
            ask: prepared.ask,
            request_id: (&*call.arrival.request_id).into(),
            now: clock::now(),
        },
        protocol: Protocol::VideoA.as_str().into(),
        model: (&*prepared.model.id).into(),
        price_version: prepared.model.price_version,
        bound: Box::new(prepared.bound.clone()),
        callback_url: url.map(Into::into),
        snapshot: video_a::write_pending(&identity, 0).into(),
        lease: CREATION_LEASE,
        lifetime: LIFETIME,
    }
}

fn endpoint(operation: Operation) -> Endpoint {
    match operation {
        Operation::Generation => Endpoint::VideoGenerations,
        Operation::Edit => Endpoint::VideoEdits,
        Operation::Extension => Endpoint::VideoExtensions,
    }
}

fn answer(id: TaskId, rates: Rates) -> Answer {
    let mut body = Joined::new();
    body.push(video_a::write_accepted(&id.to_string()).into());
    Answer {
        content_type: HeaderValue::from_static("application/json"),
        rates,
        dropped: None,
        body: AnswerBody::Whole(body),
    }
}

/// A task whose row is durable, on its way to an upstream.
struct Attempt<'e> {
    engine: &'e Arc<Engine>,
    prepared: Prepared,
    endpoint: Endpoint,
    id: TaskId,
    claim: Claim,
}

impl Attempt<'_> {
    /// Sends the creation. Another channel is tried only when no byte has left us (reliability T3). A
    /// failure comes with the word for how the hold has ended.
    async fn run(&mut self, record: &mut Record) -> Result<(), (Failure, &'static str)> {
        let nobody_leaves = Progress::default();
        let mut last = Failure::upstream_error();
        while let Some(index) = self.prepared.tries.next(self.engine, &nobody_leaves) {
            let Some(route) = self.prepared.tries.route(index) else {
                continue;
            };
            record.tries(route);
            let sending = self.send(route).await;
            match sending {
                Sending::Accepted(upstream_id) => {
                    record.head_came();
                    let accepted = self.accepted(route, upstream_id);
                    return self.note(accepted).await;
                }
                Sending::Refused(failure) => {
                    record.missed(&failure);
                    self.take_back().await;
                    return Err((failure, "released"));
                }
                Sending::Unknown(failure) => {
                    record.missed(&failure);
                    return Err((self.lose(failure).await, "abandoned"));
                }
                Sending::Unsent(failure) => {
                    record.missed(&failure);
                    last = failure;
                }
            }
        }
        self.take_back().await;
        Err((last, "released"))
    }

    async fn send(&self, route: &Route) -> Sending {
        let mut trial = Trial::of(&route.channel);
        let body = match self.prepared.request.write(&route.model) {
            Ok(body) => body,
            Err(failure) => return Sending::Refused(failure),
        };
        let outgoing = Outgoing::json(self.endpoint, &route.model, body);
        let exchange = async {
            let incoming = route.channel.send(outgoing).await?;
            let (status, retry_after) = (incoming.status, incoming.retry_after);
            if !(200..300).contains(&status) {
                return Ok(Err((status, incoming)));
            }
            let body = incoming.body.collect(ACCEPTED_BYTES_MAX).await?;
            Ok(Ok((body, retry_after)))
        };
        let answered: Result<Result<_, upstream::CallError>, _> =
            tokio::time::timeout(ACCEPT_WITHIN, exchange).await;
        let Ok(answered) = answered else {
            trial.tell(upstream::Outcome::Failed);
            return Sending::Unknown(Failure::upstream_timeout());
        };
        match answered {
            Err(error) => {
                let unsent = error.sent == Sent::No;
                let failure = tries::lost(route, &error, &mut trial).failure;
                if unsent {
                    Sending::Unsent(failure)
                } else {
                    Sending::Unknown(failure)
                }
            }
            Ok(Err((status, incoming))) => {
                trial.tell(upstream::Outcome::of_status(status, incoming.retry_after));
                let miss =
                    tries::refused(route, &self.prepared.model.id, self.endpoint, incoming).await;
                // A time-out is no answer to the request.
                if (400..500).contains(&status) && status != 408 {
                    Sending::Refused(miss.failure)
                } else {
                    Sending::Unknown(miss.failure)
                }
            }
            Ok(Ok((body, _))) => match video_a::read_accepted(&body) {
                Some(id) => {
                    trial.tell(upstream::Outcome::Served);
                    Sending::Accepted(id)
                }
                None => {
                    trial.tell(upstream::Outcome::Failed);
                    Sending::Unknown(Failure::upstream_error())
                }
            },
        }
    }

    fn accepted(&self, route: &Route, upstream_id: String) -> TaskAccepted {
        TaskAccepted {
            claim: self.claim,
            channel: route.channel.name().into(),
            upstream_model: route.model.as_str().into(),
            upstream_id: upstream_id.into(),
            next_in: self.engine.settings.tasks.poll_first,
            now: clock::now(),
        }
    }

    /// Notes the upstream's id; the caller hears of the task when it is durable.
    async fn note(&self, accepted: TaskAccepted) -> Result<(), (Failure, &'static str)> {
        for tried in 1..=NOTE_TRIES {
            match self.engine.store.accept_task(accepted.clone()).await {
                Ok(true) => return Ok(()),
                // The creation took longer than its lease.
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, task = %self.id, tried, "an accepted task could not be noted");
                    tokio::time::sleep(NOTE_PAUSE * tried).await;
                }
            }
        }
        let failure = Failure::unavailable("The task could not be recorded.");
        Err((failure.should_retry(false), "abandoned"))
    }

    /// There is no task upstream: the row goes, the hold is released.
    async fn take_back(&self) {
        if let Err(error) = self
            .engine
            .store
            .refuse_task(self.claim, clock::now())
            .await
        {
            // It ends with its lease, as one that was never heard of again.
            tracing::warn!(%error, task = %self.id, "a refused task could not be taken back");
        }
    }

    /// Nobody knows whether there is a task upstream. The caller must not try again by itself.
    async fn lose(&self, failure: Failure) -> Failure {
        let name = self.id.to_string();
        let identity = Identity {
            id: &name,
            model: &self.prepared.model.id,
            upstream_model: "",
        };
        let outcome = video_a::write_failed(&identity, "internal_error", UNKNOWN);
        let end = TaskEnd {
            claim: self.claim,
            status: outcome.status.into(),
            end: End::Abandoned,
            snapshot: outcome.snapshot.into(),
            now: clock::now(),
        };
        if let Err(error) = self.engine.store.end_task(end).await {
            tracing::warn!(%error, task = %self.id, "a lost task could not be ended; its lease ends it");
        }
        failure.should_retry(false)
    }
}

/// What is told of a task whose creation was never answered.
pub(super) const UNKNOWN: &str = "The upstream did not say whether it accepted the task.";
