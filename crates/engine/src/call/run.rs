//! The life of a call, whatever it asks for: admit, try routes, relay, settle.

use std::sync::Arc;

use http::HeaderValue;
use protocol::native::{self, Broken};
use protocol::{ByteQueue, Failure};
use upstream::{CallOutcome, Endpoint, UpstreamResponse};

use crate::billing::estimate::Estimate;
use crate::call::admission::{Admission, RefusedAdmission};
use crate::call::answer::{Answer, AnswerBody};
use crate::call::arrival::Arrival;
use crate::call::attempt::Attempt;
use crate::call::collect_body::collect_body;
use crate::call::failed_call::FailedCall;
use crate::call::kind::{CallKind, Encoded, Prepared};
use crate::call::progress::{Progress, SpawnedCall};
use crate::call::record::Record;
use crate::call::route_failure::RouteFailure;
use crate::call::route_plan::RoutePlan;
use crate::call::send::send;
use crate::call::stream::StreamRelay;
use crate::call::stream_source::StreamSource;
use crate::call::yield_to_ready::yield_to_ready;
use crate::catalog::Route;
use crate::engine::Engine;
use crate::failures::no_memory_for;

impl Engine {
    /// Starts a call as a task of its own. `prepare` reads the request and refuses everything that can be refused
    /// before money moves. The returned future can be dropped at any point: the hold is then closed.
    pub(crate) fn run_call<K: CallKind>(
        self: &Arc<Self>,
        arrival: Arrival,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Prepared<K>, Failure> + Send + 'static,
    ) -> SpawnedCall<Result<Answer, FailedCall>> {
        let progress = Arc::new(Progress::new(self));
        let shared = Arc::clone(&progress);
        // Boxed: a task moves its future when it changes state, and this one is large.
        let call = Box::pin(async move {
            let (call, record) = Call::begin(arrival, shared, prepare)?;
            call.run(record).await
        });
        SpawnedCall::begin(call, progress)
    }
}

/// A running call. It lives on the heap, so that the futures that use it stay small.
struct Call<K> {
    arrival: Arrival,
    kind: K,
    plan: RoutePlan,
    estimate: Estimate,
    /// The request for the route that is tried next, if it is encoded already.
    encoded: Option<Encoded>,
    progress: Arc<Progress>,
}

/// What a route delivered, and the members that its request had to leave out.
struct Received<T> {
    answer: T,
    dropped: Option<String>,
}

impl<K: CallKind> Call<K> {
    /// Reads the request. A call that is refused here is journaled here.
    fn begin(
        arrival: Arrival,
        progress: Arc<Progress>,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Prepared<K>, Failure>,
    ) -> Result<(Box<Self>, Box<Record>), Failure> {
        let mut record = Box::new(Record::begin(&arrival));
        match prepare(progress.engine(), &mut record) {
            Ok(prepared) => {
                let call = Box::new(Self {
                    arrival,
                    kind: prepared.kind,
                    plan: prepared.plan,
                    estimate: prepared.estimate,
                    encoded: None,
                    progress,
                });
                Ok((call, record))
            }
            Err(failure) => {
                progress.engine().journal(record.refused(&failure));
                Err(failure)
            }
        }
    }

    async fn run(mut self: Box<Self>, record: Box<Record>) -> Result<Answer, FailedCall> {
        yield_to_ready().await;
        // A request that its first route cannot take is refused before money moves.
        if let Err(failure) = self.encode_for_first().await {
            self.progress.engine().journal(record.refused(&failure));
            return Err(failure.into());
        }
        yield_to_ready().await;
        let admitted = Admission::request(
            &self.arrival.key,
            self.plan.model(),
            std::mem::take(&mut self.estimate),
            Arc::clone(&self.progress),
            record,
        );
        let admission = match admitted.await {
            Ok(admission) => admission,
            Err(RefusedAdmission { record, failed }) => {
                let row = record.refused(&failed.failure);
                self.progress.engine().journal(row);
                return Err(failed);
            }
        };
        let rates = admission.rates;
        let answer = self.answer(admission).await;
        answer.map_err(|failure| FailedCall::admitted(failure, rates))
    }

    async fn encode_for_first(&mut self) -> Result<(), Failure> {
        if let Some(route) = self.plan.first() {
            let (engine, model) = (self.progress.engine(), self.plan.model());
            self.encoded = Some(self.kind.encode_for(engine, model, route).await?);
        }
        Ok(())
    }

    /// Tries one route after the other until one has answered. A stream has answered when it has shown content,
    /// which no other route may repeat.
    async fn answer(&mut self, mut admission: Box<Admission>) -> Result<Answer, Failure> {
        while let Some(route) = self.plan.next(&self.progress) {
            admission.start_attempt(&route);
            let failed = if self.kind.is_streamed() {
                match self.try_stream(&route, &mut admission).await {
                    Ok(received) => return self.deliver_stream(received, admission).await,
                    Err(failed) => failed,
                }
            } else {
                match self.try_whole(&route, &mut admission).await {
                    Ok(received) => return deliver_whole(received, admission).await,
                    Err(failed) => failed,
                }
            };
            admission.note(|record| record.attempt_failed(&failed.failure));
            self.plan.record_failure(failed);
        }
        let failure = self.plan.last_failure();
        admission.release(&failure);
        Err(failure)
    }

    async fn try_whole(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Received<native::Answer>, RouteFailure> {
        let mut attempt = Attempt::on(&route.channel);
        let (response, spoken, dropped) = self.send(route, &mut attempt).await?;
        admission.note(Record::upstream_answered);
        let engine = self.progress.engine();
        let bytes_max = self.kind.answer_bytes_max(&engine.settings);
        let body = collect_body(response.body, bytes_max, engine.budget()).await;
        let body = body
            .map_err(|error| RouteFailure::uncollected(route, &error, bytes_max, &mut attempt))?;
        yield_to_ready().await;
        let answer = self.kind.translate_answer(spoken, body);
        let answer = answer.map_err(|broken| RouteFailure::broken(route, &broken, &mut attempt))?;
        attempt.report(CallOutcome::Served);
        Ok(Received { answer, dropped })
    }

    async fn try_stream(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Received<StartedStream>, RouteFailure> {
        let mut attempt = Attempt::on(&route.channel);
        let (response, spoken, dropped) = self.send(route, &mut attempt).await?;
        admission.note(Record::upstream_answered);
        if !self.kind.accepts(response.content_type.as_ref()) {
            let why = format!("an answer of type {:?}", response.content_type);
            let broken = Broken::Malformed(why);
            return Err(RouteFailure::broken(route, &broken, &mut attempt));
        }
        let translator = self.kind.stream_translator(self.plan.model(), spoken);
        let translator = translator.map_err(RouteFailure::stop)?;
        let engine = self.progress.engine();
        let mut started = StartedStream {
            content_type: self.kind.content_type(response.content_type.as_ref()),
            source: StreamSource::new(response.body, translator, engine.budget().clone()),
            out: ByteQueue::new(),
            broken: None,
        };
        // A model that thinks for long sends nothing. Then the stream starts without content, so that the client
        // gets keep-alives.
        let content = tokio::time::timeout(
            engine.settings.keep_alive,
            started.read_until_content(route, &mut attempt),
        );
        if let Ok(Err(failed)) = content.await {
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
        mut admission: Box<Admission>,
    ) -> Result<Answer, Failure> {
        let Received {
            answer: started,
            dropped,
        } = received;
        if let Err(failure) = admission.wait_until_durable().await {
            admission.release(&failure);
            return Err(failure);
        }
        admission.note(|record| {
            record.start_answer(dropped.as_deref());
            record.keep_answer(&started.out, 0);
        });
        let rates = admission.rates;
        let mut relay = StreamRelay::new(
            started.source,
            started.out,
            admission,
            self.kind.stream_policy(),
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

    /// Sends the request over a route. Returns the response, the upstream's endpoint, and the members that were
    /// left out for it.
    async fn send(
        &mut self,
        route: &Route,
        attempt: &mut Attempt<'_>,
    ) -> Result<(UpstreamResponse, Endpoint, Option<String>), RouteFailure> {
        let model = self.plan.model();
        let encoded = match &mut self.encoded {
            Some(encoded) => encoded,
            none => {
                let encoded = self.kind.encode_for(self.progress.engine(), model, route);
                none.insert(encoded.await.map_err(RouteFailure::stop)?)
            }
        };
        yield_to_ready().await;
        let (spoken, dropped) = (encoded.call.endpoint, encoded.dropped.take());
        let sent = send(route, &model.id, &encoded.call, &self.progress, attempt).await;
        // The next route needs an encoding of its own.
        self.encoded = None;
        Ok((sent?, spoken, dropped))
    }
}

async fn deliver_whole(
    received: Received<native::Answer>,
    mut admission: Box<Admission>,
) -> Result<Answer, Failure> {
    let Received { answer, dropped } = received;
    yield_to_ready().await;
    admission.note(|record| record.keep_answer(&answer.pieces, 0));
    let rates = admission.rates;
    admission
        .settle_whole(&answer.seen(), dropped.as_deref())
        .await?;
    Ok(Answer {
        content_type: HeaderValue::from_static("application/json"),
        rates,
        dropped,
        body: AnswerBody::Whole(answer.pieces),
    })
}

/// A stream whose response head has arrived.
struct StartedStream {
    content_type: HeaderValue,
    source: StreamSource,
    out: ByteQueue,
    /// Why the stream broke, if it broke behind its first content in the same read.
    broken: Option<Failure>,
}

impl StartedStream {
    /// Reads until the stream has shown content or has ended.
    async fn read_until_content(
        &mut self,
        route: &Route,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), RouteFailure> {
        loop {
            match self.source.upstream.next().await {
                Some(Ok(chunk)) => {
                    if let Err(broken) = self.source.translator.push(chunk, &mut self.out) {
                        return self.broke(RouteFailure::broken(route, &broken, attempt));
                    }
                    if !self.source.charge(&self.out) {
                        let failure = no_memory_for("this answer");
                        return self.broke(RouteFailure::stop(failure));
                    }
                }
                Some(Err(error)) => return Err(RouteFailure::lost(route, &error, attempt)),
                None => {
                    let ended = self.source.translator.end(&mut self.out);
                    return ended.map_err(|broken| RouteFailure::broken(route, &broken, attempt));
                }
            }
            let seen = self.source.translator.seen();
            if seen.content || seen.ended {
                return Ok(());
            }
        }
    }

    /// Content that came before the break is delivered, followed by the error. How the bytes were cut into reads
    /// must not decide whether another route is tried (S3).
    fn broke(&mut self, failed: RouteFailure) -> Result<(), RouteFailure> {
        if !self.source.translator.seen().content {
            return Err(failed);
        }
        self.broken = Some(failed.failure);
        Ok(())
    }
}
