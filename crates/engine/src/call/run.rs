//! The life of a call, whatever it asks for: admit, try routes, relay, settle.

use std::sync::Arc;

use http::HeaderValue;
use protocol::native::{self, Broken};
use protocol::{ByteQueue, Failure};
use upstream::{CallOutcome, Endpoint, UpstreamResponse};

use crate::billing::estimate::Estimate;
use crate::call::admission::{Admission, RefusedAdmission};
use crate::call::answer::{Answer, AnswerBody, FailedCall};
use crate::call::attempt::Attempt;
use crate::call::collect_body::{CollectError, collect_body};
use crate::call::kind::{Arrival, CallKind, Encoded, Prepared};
use crate::call::progress::{Progress, SpawnedCall};
use crate::call::record::Record;
use crate::call::route_plan::{self, RouteFailure, RoutePlan};
use crate::call::stream::{StreamRelay, StreamSource};
use crate::call::yield_to_ready::give_way;
use crate::catalog::Route;
use crate::engine::Engine;

impl Engine {
    /// Begins a call, as a task of its own. `prepare` reads it and refuses everything that can be refused
    /// before money moves. Dropping what is returned is safe at any point: the hold is closed.
    pub(crate) fn run_call<W: CallKind>(
        self: &Arc<Self>,
        arrival: Arrival,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Prepared<W>, Failure> + Send + 'static,
    ) -> SpawnedCall<Result<Answer, FailedCall>> {
        let progress = Arc::new(Progress::new(self));
        let seen = Arc::clone(&progress);
        // Boxed: a task moves what it holds whenever it goes on to its next state, and this is large.
        let call = Box::pin(async move {
            let (call, record) = Call::begin(arrival, seen, prepare)?;
            call.run(record).await
        });
        SpawnedCall::begin(call, progress)
    }
}

/// A call on its way. It stands on the heap, so that the futures it goes through stay small.
struct Call<W> {
    arrival: Arrival,
    kind: W,
    plan: RoutePlan,
    estimate: Estimate,
    /// The words for the route that is tried next, once they are found.
    encoded: Option<Encoded>,
    progress: Arc<Progress>,
}

/// A whole answer, and what its request had to leave out.
struct Received<T> {
    answer: T,
    dropped: Option<String>,
}

impl<W: CallKind> Call<W> {
    /// Reads the call; one that is refused already is journaled here.
    fn begin(
        arrival: Arrival,
        progress: Arc<Progress>,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Prepared<W>, Failure>,
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
        give_way().await;
        // What cannot be said to the route that is tried first is refused before money moves.
        if let Err(failure) = self.encode_first().await {
            self.progress.engine().journal(record.refused(&failure));
            return Err(failure.into());
        }
        give_way().await;
        let admitted = Admission::request(
            &self.arrival.key,
            self.plan.model(),
            std::mem::take(&mut self.estimate),
            Arc::clone(&self.progress),
            record,
        );
        let admission = match admitted.await {
            Ok(admission) => admission,
            Err(RefusedAdmission { record, unanswered }) => {
                self.progress
                    .engine()
                    .journal(record.refused(&unanswered.failure));
                return Err(unanswered);
            }
        };
        let rates = admission.rates;
        let answer = if self.kind.is_streamed() {
            self.streamed(admission).await
        } else {
            self.whole(admission).await
        };
        answer.map_err(|failure| FailedCall {
            failure,
            rates: Some(Box::new(rates)),
        })
    }

    async fn encode_first(&mut self) -> Result<(), Failure> {
        if let Some(route) = self.plan.first() {
            self.kind
                .prepare_for(self.progress.engine(), self.plan.model(), route)
                .await?;
            give_way().await;
            self.encoded = Some(self.kind.encode_for(self.plan.model(), route)?);
        }
        Ok(())
    }

    /// Answers when the whole answer is there.
    async fn whole(&mut self, mut admission: Box<Admission>) -> Result<Answer, Failure> {
        while let Some(route) = self.plan.next(&self.progress) {
            admission.note(|record| record.start_attempt(&route));
            match self.try_whole(&route, &mut admission).await {
                Ok(received) => return deliver_whole(received, admission).await,
                Err(failed) => {
                    admission.note(|record| record.attempt_failed(&failed.failure));
                    self.plan.record_failure(failed);
                }
            }
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
        let (incoming, spoken, dropped) = self.send(route, &mut attempt).await?;
        admission.note(Record::upstream_answered);
        let bytes_max = self.kind.answer_bytes_max(&self.progress.engine().settings);
        let body = collect_body(incoming.body, bytes_max, self.progress.engine().budget()).await;
        let body = body.map_err(|error| match error {
            // An answer cut halfway was content: it is not asked for again.
            CollectError::Lost(error) => RouteFailure {
                may_try_next: false,
                ..route_plan::lost(route, &error, &mut attempt)
            },
            CollectError::TooLarge => {
                attempt.report(CallOutcome::Failed);
                let channel = route.channel.name();
                tracing::warn!(channel, bytes_max, "an upstream's answer is too large");
                RouteFailure::stop(Failure::upstream_error())
            }
            CollectError::NoMemory => RouteFailure::stop(no_memory()),
        })?;
        give_way().await;
        let answer = self
            .kind
            .translate_answer(spoken, body)
            .map_err(RouteFailure::stop)?
            .map_err(|broken| broken_answer(route, &broken, &mut attempt))?;
        attempt.report(CallOutcome::Served);
        Ok(Received { answer, dropped })
    }

    /// Answers when the stream has shown content, which no other route may repeat.
    async fn streamed(&mut self, mut admission: Box<Admission>) -> Result<Answer, Failure> {
        while let Some(route) = self.plan.next(&self.progress) {
            admission.note(|record| record.start_attempt(&route));
            match self.try_stream(&route, &mut admission).await {
                Ok(received) => return self.deliver_stream(received, admission).await,
                Err(failed) => {
                    admission.note(|record| record.attempt_failed(&failed.failure));
                    self.plan.record_failure(failed);
                }
            }
        }
        let failure = self.plan.last_failure();
        admission.release(&failure);
        Err(failure)
    }

    async fn try_stream(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Received<StartedStream>, RouteFailure> {
        let mut attempt = Attempt::on(&route.channel);
        let (incoming, spoken, dropped) = self.send(route, &mut attempt).await?;
        admission.note(Record::upstream_answered);
        if !self.kind.accepts(incoming.content_type.as_ref()) {
            let why = format!("an answer of type {:?}", incoming.content_type);
            return Err(broken_answer(route, &Broken::Malformed(why), &mut attempt));
        }
        let translator = self
            .kind
            .stream_translator(self.plan.model(), spoken)
            .map_err(RouteFailure::stop)?;
        let budget = self.progress.engine().budget().clone();
        let mut started = StartedStream {
            content_type: self.kind.content_type(incoming.content_type.as_ref()),
            source: StreamSource::new(incoming.body, translator, budget),
            out: ByteQueue::new(),
            broken: None,
        };
        // A model that thinks for long sends nothing: then the stream begins without content,
        // so that the caller gets signs of life.
        let content = tokio::time::timeout(
            self.progress.engine().settings.keep_alive,
            started.until_content(route, &mut attempt),
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

    /// Sends the call over a route, and says what of the upstream was called and what was left
    /// out for it.
    async fn send(
        &mut self,
        route: &Route,
        attempt: &mut Attempt<'_>,
    ) -> Result<(UpstreamResponse, Endpoint, Option<String>), RouteFailure> {
        if self.encoded.is_none() {
            let prepared = self
                .kind
                .prepare_for(self.progress.engine(), self.plan.model(), route)
                .await;
            prepared.map_err(RouteFailure::stop)?;
        }
        let encoded = match &mut self.encoded {
            Some(encoded) => encoded,
            none => none.insert(
                self.kind
                    .encode_for(self.plan.model(), route)
                    .map_err(RouteFailure::stop)?,
            ),
        };
        give_way().await;
        let (spoken, dropped) = (encoded.call.endpoint, encoded.dropped.take());
        let sent = route_plan::send(
            route,
            &self.plan.model().id,
            &encoded.call,
            &self.progress,
            attempt,
        )
        .await;
        self.encoded = None;
        let incoming = sent?;
        Ok((incoming, spoken, dropped))
    }
}

async fn deliver_whole(
    received: Received<native::Answer>,
    mut admission: Box<Admission>,
) -> Result<Answer, Failure> {
    let Received { answer, dropped } = received;
    give_way().await;
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

/// A stream whose head has come.
struct StartedStream {
    content_type: HeaderValue,
    source: StreamSource,
    out: ByteQueue,
    /// It broke behind its first content, in the same read.
    broken: Option<Failure>,
}

impl StartedStream {
    /// Reads until output or the end has gone by.
    async fn until_content(
        &mut self,
        route: &Route,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), RouteFailure> {
        loop {
            match self.source.upstream.next().await {
                Some(Ok(chunk)) => {
                    if let Err(broken) = self.source.translator.push(chunk, &mut self.out) {
                        return self.broke(broken_answer(route, &broken, attempt));
                    }
                    if !self.source.charge(&self.out) {
                        return self.broke(RouteFailure::stop(no_memory()));
                    }
                }
                Some(Err(error)) => return Err(route_plan::lost(route, &error, attempt)),
                None => {
                    self.source
                        .translator
                        .end(&mut self.out)
                        .map_err(|broken| broken_answer(route, &broken, attempt))?;
                    return Ok(());
                }
            }
            let seen = self.source.translator.seen();
            if seen.content || seen.ended {
                return Ok(());
            }
        }
    }

    /// Content that came before the break is delivered, and the break behind it: how the bytes
    /// were cut into reads must not decide whether another route is tried (S3).
    fn broke(&mut self, failed: RouteFailure) -> Result<(), RouteFailure> {
        if !self.source.translator.seen().content {
            return Err(failed);
        }
        self.broken = Some(failed.failure);
        Ok(())
    }
}

/// An answer that is none: another route may do better, for nothing has reached the caller.
pub(crate) fn broken_answer(
    route: &Route,
    broken: &Broken,
    attempt: &mut Attempt<'_>,
) -> RouteFailure {
    tracing::warn!(channel = route.channel.name(), %broken, "an upstream's answer is not one");
    let failure = broken_failure(broken);
    // A refusal of the request under a good status is an answer; all else is none.
    attempt.report(if failure.status() < 500 {
        CallOutcome::Served
    } else {
        CallOutcome::Failed
    });
    RouteFailure {
        may_try_next: failure.status() >= 500,
        failure,
    }
}

/// What the caller is told of a broken answer.
pub(crate) fn broken_failure(broken: &Broken) -> Failure {
    match broken {
        Broken::Failure(failure) => failure.clone(),
        Broken::Malformed(_) | Broken::TooLarge(_) | Broken::Unfinished => {
            Failure::upstream_error()
        }
    }
}

/// An answer is larger than the node has room for now.
pub(crate) fn no_memory() -> Failure {
    Failure::unavailable("The service has no memory left for this answer.").retry_after(1)
}
