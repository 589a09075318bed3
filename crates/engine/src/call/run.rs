//! Runs a call of any kind: admit, try routes, relay, settle.

use std::pin::pin;
use std::sync::Arc;

use http::HeaderValue;
use protocol::native::{self, UnusableAnswer};
use protocol::{ByteQueue, Failure};
use store::RequestId;
use tokio::time::{Instant, timeout_at};
use upstream::{CallOutcome, Endpoint, UpstreamResponse};

use crate::call::admission::{Admission, RefusedAdmission};
use crate::call::answer::{Answer, AnswerBody};
use crate::call::arrival::Arrival;
use crate::call::attempt::Attempt;
use crate::call::collect_body::collect_body;
use crate::call::early_stream::EarlyStream;
use crate::call::failed_call::FailedCall;
use crate::call::kind::{CallKind, Encoded, Prepared};
use crate::call::open_record::OpenRecord;
use crate::call::progress::{Progress, SpawnedCall};
use crate::call::record::Record;
use crate::call::route_failure::RouteFailure;
use crate::call::route_timer::RouteTimer;
use crate::call::send::send;
use crate::call::started_stream::StartedStream;
use crate::call::stream::StreamRelay;
use crate::call::stream_source::StreamSource;
use crate::call::waiting_stream::RunningCall;
use crate::call::yield_to_ready::yield_to_ready;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::engine::Engine;

mod fallback;

impl Engine {
    /// Starts a call in its own task. `prepare` reads the request and refuses everything that can be refused before
    /// money moves. The returned future can be dropped at any time, which closes the hold.
    pub(crate) fn run_call<K: CallKind>(
        self: &Arc<Self>,
        arrival: Arrival,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Box<Prepared<K>>, Failure> + Send + 'static,
    ) -> RunningCall {
        let progress = Arc::new(Progress::new(self));
        // The record begins outside the task, because the task may be cancelled before its first poll.
        let record = OpenRecord::begin(Arc::clone(&progress), &arrival);
        // Boxed, because a task moves its future when it changes state, and this future is large.
        let call = Box::pin(async move {
            let (call, record) = Call::begin(arrival, record, prepare)?;
            call.run(record).await
        });
        RunningCall::new(SpawnedCall::begin(call, progress))
    }
}

/// A running call. It is boxed, so that the futures that use it stay small.
struct Call<K> {
    arrival: Arrival,
    prepared: Box<Prepared<K>>,
    /// The request for the next route, if it is already encoded.
    encoded: Option<Encoded>,
    /// When a stream begins without content, so that its client gets keep-alives.
    silent_until: Instant,
    /// Whether the stream has begun before an upstream has answered.
    begun: Option<BegunStream>,
    creates_media: bool,
    /// Whether an upstream may have done the work of this call.
    may_have_run: bool,
    progress: Arc<Progress>,
}

/// A stream whose head has been sent before an upstream has answered.
struct BegunStream {
    /// The value of `x-dropped-params` that was sent.
    dropped: Option<String>,
}

/// The answer of a route, and the members of its request that could not be converted.
struct Received<T> {
    answer: T,
    dropped: Option<String>,
}

impl<K: CallKind> Call<K> {
    /// Reads the request. If the call is refused here, this also journals it.
    fn begin(
        arrival: Arrival,
        mut record: OpenRecord,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Box<Prepared<K>>, Failure>,
    ) -> Result<(Box<Self>, OpenRecord), FailedCall> {
        let progress = Arc::clone(record.progress());
        let prepared = record.update_record(|record| prepare(progress.engine(), record));
        match prepared.unwrap_or_else(|| Err(Failure::internal())) {
            Ok(mut prepared) => {
                prepared.arrange_routes(arrival.key.wallet);
                for fallback in &mut prepared.fallbacks {
                    fallback.arrange_routes(arrival.key.wallet);
                }
                let silence = progress.engine().settings.keep_alive;
                let call = Box::new(Self {
                    silent_until: Instant::now() + silence,
                    begun: None,
                    creates_media: prepared.estimate.metering.creates_media(),
                    may_have_run: false,
                    arrival,
                    prepared,
                    encoded: None,
                    progress,
                });
                Ok((call, record))
            }
            Err(failure) => Err(record.refuse(failure)),
        }
    }

    async fn run(mut self: Box<Self>, mut record: OpenRecord) -> Result<Answer, FailedCall> {
        yield_to_ready().await;
        if let Err(failure) = self.choose_route(&mut record).await {
            return Err(record.refuse(failure));
        }
        yield_to_ready().await;
        let admission = match self.admit(record).await {
            Ok(admission) => admission,
            Err(refused) => return Err(self.refused(refused)),
        };
        let rates = admission.rates;
        let answer = self.answer(admission).await;
        answer.map_err(|failure| FailedCall::admitted(self.with_retry_advice(failure), rates))
    }

    /// Tells clients not to retry automatically if an upstream may have made pictures or speech, which would then be
    /// made and paid for twice.
    fn with_retry_advice(&self, failure: Failure) -> Failure {
        if self.creates_media && self.may_have_run {
            failure.should_retry(false)
        } else {
            failure
        }
    }

    /// Encodes the request for its first route. A request that the route cannot serve is refused before money moves.
    /// The share of the route's limits is taken after the encoding, which may have to fetch pictures or find that the
    /// caller has no credits.
    async fn choose_route(&mut self, record: &mut OpenRecord) -> Result<(), Failure> {
        loop {
            match self.encode_for_first().await {
                Ok(()) => {}
                Err(failure) if self.prepared.of_named_model.is_some() => {
                    self.substitute(failure, record)?;
                    continue;
                }
                Err(failure) => return Err(failure),
            }
            let encoded_for = self.prepared.plan.first().map(Arc::as_ptr);
            self.reserve_route(record)?;
            if self.prepared.plan.first().map(Arc::as_ptr) == encoded_for {
                return Ok(());
            }
            // Another route has capacity. The share is taken again after the request is encoded for that route.
            self.prepared.plan.return_share();
            self.encoded = None;
        }
    }

    /// Journals a refusal of the ledger. If the refusal concerns a fallback, the caller gets the failure of the model
    /// that they named.
    fn refused(&mut self, refused: RefusedAdmission) -> FailedCall {
        match self.prepared.of_named_model.take() {
            Some(failure) => refused.record.refuse(failure),
            None => refused.journal(),
        }
    }

    async fn encode_for_first(&mut self) -> Result<(), Failure> {
        if let Some(route) = self.prepared.plan.first() {
            let (engine, model) = (self.progress.engine(), self.prepared.plan.model());
            let encoded = self
                .prepared
                .kind
                .encode_for(engine, model, route, Funds::Unknown);
            self.encoded = Some(encoded.await?);
        }
        Ok(())
    }

    /// Tries one route after another until one has answered. A stream has answered when it has delivered content, which
    /// no other route may repeat.
    async fn answer(&mut self, mut admission: Box<Admission>) -> Result<Answer, Failure> {
        loop {
            match self.try_routes(admission).await {
                Ok(answer) => return answer,
                Err(unanswered) => admission = unanswered,
            }
            let failure = self.prepared.plan.last_failure();
            // The caller gets the failure of the model that they named.
            let failure = self.prepared.of_named_model.get_or_insert(failure).clone();
            if !self.fall_back(&mut admission) {
                admission.release(&failure);
                return Err(failure);
            }
        }
    }

    /// Tries the routes of one model. If none of them answers, returns the admission.
    async fn try_routes(
        &mut self,
        mut admission: Box<Admission>,
    ) -> Result<Result<Answer, Failure>, Box<Admission>> {
        while let Some(route) = self.prepared.plan.next(&self.progress, &mut *admission) {
            let is_streamed = self.prepared.kind.is_streamed();
            let timed = self.prepared.plan.time(&route, is_streamed);
            let failed = if is_streamed {
                match Box::pin(self.try_stream(&route, &mut admission)).await {
                    Ok(received) => {
                        timed.inspect(RouteTimer::answered);
                        self.may_have_run = true;
                        return Ok(Box::pin(self.deliver_stream(received, admission)).await);
                    }
                    Err(failed) => failed,
                }
            } else {
                match self.try_whole(&route, &mut admission).await {
                    Ok(received) => {
                        timed.inspect(RouteTimer::answered);
                        self.may_have_run = true;
                        return Ok(deliver_whole(received, admission).await);
                    }
                    Err(failed) => failed,
                }
            };
            // A rejection of the request itself says nothing about the route.
            timed
                .filter(|_| failed.may_try_next)
                .inspect(RouteTimer::failed);
            self.may_have_run |= failed.may_have_run;
            self.prepared.plan.attempt_failed(failed, &mut *admission);
        }
        Err(admission)
    }

    async fn try_whole(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Received<native::Answer>, RouteFailure> {
        let mut attempt = Attempt::over(route).of_call(self.arrival.request_id);
        let (response, upstream_endpoint, dropped) =
            self.send(route, admission, &mut attempt).await?;
        admission.update_record(Record::upstream_answered);
        let engine = self.progress.engine();
        let bytes_max = self.prepared.kind.answer_bytes_max(&engine.settings);
        let body = collect_body(response.body, bytes_max, engine.budget()).await;
        let body = body
            .map_err(|error| RouteFailure::uncollected(route, &error, bytes_max, &mut attempt))?;
        yield_to_ready().await;
        let answer = self.prepared.kind.translate_answer(upstream_endpoint, body);
        let answer = answer.map_err(|broken| RouteFailure::broken(route, &broken, &mut attempt))?;
        attempt.report(CallOutcome::Served);
        Ok(Received { answer, dropped })
    }

    async fn try_stream(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Received<StartedStream>, RouteFailure> {
        let mut attempt = Attempt::over(route).of_call(self.arrival.request_id);
        let (response, upstream_endpoint, dropped) =
            self.send(route, admission, &mut attempt).await?;
        admission.update_record(Record::upstream_answered);
        if !self.prepared.kind.accepts(response.content_type.as_ref()) {
            let why = format!("an answer of type {:?}", response.content_type);
            let broken = UnusableAnswer::Malformed(why);
            return Err(RouteFailure::broken(route, &broken, &mut attempt));
        }
        let translator = self
            .prepared
            .kind
            .stream_translator(self.prepared.plan.model(), upstream_endpoint);
        let translator = translator.map_err(RouteFailure::stop)?;
        let engine = self.progress.engine();
        let mut started = StartedStream {
            content_type: self
                .prepared
                .kind
                .content_type(response.content_type.as_ref()),
            source: StreamSource::new(
                response.body,
                route.channel.clone(),
                translator,
                engine.budget().clone(),
            ),
            out: ByteQueue::new(),
            broken: None,
        };
        // A model that thinks for a long time sends nothing. After this time the stream starts without content, so that
        // the client gets keep-alives.
        let begins = if self.prepared.kind.stream_policy().keep_alive.is_empty() {
            Instant::now() + engine.settings.keep_alive
        } else {
            self.silent_until
        };
        let content = started.read_until_content(route, &mut attempt);
        if self.begun.is_some() {
            // The client gets keep-alives already.
            content.await?;
        } else if let Ok(Err(failed)) = timeout_at(begins, content).await {
            return Err(failed);
        }
        attempt.report(CallOutcome::Served);
        Ok(Received {
            answer: started,
            dropped,
        })
    }

    async fn deliver_stream(
        &self,
        received: Received<StartedStream>,
        admission: Box<Admission>,
    ) -> Result<Answer, Failure> {
        let Received {
            answer: started,
            dropped,
        } = received;
        let mut admission = admission.start_answer(dropped.as_deref()).await?;
        admission.update_record(|record| record.keep_answer(&started.out, 0));
        let rates = admission.rates;
        let mut relay = StreamRelay::new(
            started.source,
            started.out,
            admission,
            self.prepared.kind.stream_policy(),
            self.arrival.request_id,
        );
        if let Some(failure) = &started.broken {
            relay.break_off(failure);
        }
        Ok(Answer {
            content_type: started.content_type,
            rates,
            dropped,
            body: AnswerBody::Stream(Box::new(relay)),
        })
    }

    /// Sends the request over a route. Returns the response, the upstream's endpoint, and the members that could not be
    /// converted.
    async fn send(
        &mut self,
        route: &Route,
        admission: &mut Admission,
        attempt: &mut Attempt<'_>,
    ) -> Result<(UpstreamResponse, Endpoint, Option<String>), RouteFailure> {
        let model = self.prepared.plan.model();
        // The next route needs its own encoding.
        let mut encoded = if let Some(encoded) = self.encoded.take() {
            encoded
        } else {
            let engine = self.progress.engine();
            let encoded = self
                .prepared
                .kind
                .encode_for(engine, model, route, Funds::Held);
            encoded.await.map_err(RouteFailure::stop)?
        };
        yield_to_ready().await;
        let (upstream_endpoint, dropped) = (encoded.call.endpoint, encoded.dropped.take());
        if self.begun.as_ref().is_some_and(|it| it.dropped != dropped) {
            let why = "The stream has begun, and no other route drops the same members.";
            return Err(RouteFailure::stop(Failure::unavailable(why)));
        }
        encoded.call.traceparent = admission.traceparent(route);
        let mut sending = pin!(send(
            route,
            &model.id,
            &encoded.call,
            &self.progress,
            attempt
        ));
        if !self.prepared.kind.is_streamed() || self.begun.is_some() {
            return Ok((sending.await?, upstream_endpoint, dropped));
        }
        let sent = match timeout_at(self.silent_until, sending.as_mut()).await {
            Ok(sent) => sent,
            Err(_silent) => {
                // The head must not be sent before the hold is durable (W12).
                let is_durable = tokio::select! {
                    biased;
                    sent = sending.as_mut() => return Ok((sent?, upstream_endpoint, dropped)),
                    waited = admission.wait_until_durable() => waited.is_ok(),
                };
                let dropped = dropped.clone();
                let endpoint = upstream_endpoint;
                if is_durable
                    && let Some(early) = early_stream(
                        &self.prepared.kind,
                        model,
                        endpoint,
                        (self.arrival.request_id, admission),
                        dropped.as_deref(),
                    )
                {
                    self.begun = Some(BegunStream { dropped });
                    self.progress.begin_early(early);
                }
                sending.await
            }
        };
        Ok((sent?, upstream_endpoint, dropped))
    }
}

/// The head of a stream whose upstream has not answered yet. `None` if its protocol has no keep-alives.
fn early_stream<K: CallKind>(
    kind: &K,
    model: &Model,
    endpoint: Endpoint,
    (request_id, admission): (RequestId, &mut Admission),
    dropped: Option<&str>,
) -> Option<EarlyStream> {
    let policy = kind.stream_policy();
    if policy.keep_alive.is_empty() {
        return None;
    }
    let translator = kind.stream_translator(model, endpoint).ok()?;
    admission.update_record(|record| record.start_answer(dropped));
    Some(EarlyStream {
        content_type: kind.content_type(None),
        rates: admission.rates,
        dropped: dropped.map(ToOwned::to_owned),
        keep_alive: policy.keep_alive,
        aborts_on_failure: policy.aborts_on_failure,
        translator,
        request_id,
    })
}

async fn deliver_whole(
    received: Received<native::Answer>,
    mut admission: Box<Admission>,
) -> Result<Answer, Failure> {
    yield_to_ready().await;
    let answer = &received.answer;
    admission.update_record(|record| record.keep_answer(&answer.pieces, 0));
    let rates = admission.rates;
    admission
        .settle_whole(&answer.summary(), received.dropped.as_deref())
        .await?;
    Ok(Answer {
        content_type: HeaderValue::from_static("application/json"),
        rates,
        dropped: received.dropped,
        body: AnswerBody::Whole(received.answer.pieces),
    })
}
