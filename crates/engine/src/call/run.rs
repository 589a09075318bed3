//! The life of a call, whatever it asks for: admit, try routes, relay, settle.

use std::sync::Arc;

use http::HeaderValue;
use protocol::native::{self, Broken};
use protocol::{ByteQueue, Failure};
use upstream::{CallOutcome, Endpoint, UpstreamResponse};

use crate::billing::estimate::Estimate;
use crate::call::admission::{Admission, Refused};
use crate::call::answer::{Answer, AnswerBody, Unanswered};
use crate::call::attempt::Trial;
use crate::call::collect_body::{Ungathered, gather};
use crate::call::kind::{Arrival, Prepared, Worded, Work};
use crate::call::progress::{Outliving, Progress};
use crate::call::record::Record;
use crate::call::route_plan::{self, Miss, Tries};
use crate::call::stream::{Feed, Relay};
use crate::call::yield_to_ready::give_way;
use crate::catalog::Route;
use crate::engine::Engine;

impl Engine {
    /// Begins a call, as a task of its own. `prepare` reads it and refuses everything that can be refused
    /// before money moves. Dropping what is returned is safe at any point: the hold is closed.
    pub(crate) fn live<W: Work>(
        self: &Arc<Self>,
        arrival: Arrival,
        prepare: impl FnOnce(&Engine, &mut Record) -> Result<Prepared<W>, Failure> + Send + 'static,
    ) -> Outliving<Result<Answer, Unanswered>> {
        let progress = Arc::new(Progress::new(self));
        let seen = Arc::clone(&progress);
        // Boxed: a task moves what it holds whenever it goes on to its next state, and this is large.
        let call = Box::pin(async move {
            let (call, record) = Call::begin(arrival, seen, prepare)?;
            call.run(record).await
        });
        Outliving::begin(call, progress)
    }
}

/// A call on its way. It stands on the heap, so that the futures it goes through stay small.
struct Call<W> {
    arrival: Arrival,
    work: W,
    tries: Tries,
    estimate: Estimate,
    /// The words for the route that is tried next, once they are found.
    worded: Option<Worded>,
    progress: Arc<Progress>,
}

/// A whole answer, and what its request had to leave out.
struct Delivery<T> {
    answer: T,
    dropped: Option<String>,
}

impl<W: Work> Call<W> {
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
                    work: prepared.work,
                    tries: prepared.tries,
                    estimate: prepared.estimate,
                    worded: None,
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

    async fn run(mut self: Box<Self>, record: Box<Record>) -> Result<Answer, Unanswered> {
        give_way().await;
        // What cannot be said to the route that is tried first is refused before money moves.
        if let Err(failure) = self.word_first().await {
            self.progress.engine().journal(record.refused(&failure));
            return Err(failure.into());
        }
        give_way().await;
        let admitted = Admission::ask(
            &self.arrival.key,
            self.tries.model(),
            std::mem::take(&mut self.estimate),
            Arc::clone(&self.progress),
            record,
        );
        let admission = match admitted.await {
            Ok(admission) => admission,
            Err(Refused { record, unanswered }) => {
                self.progress
                    .engine()
                    .journal(record.refused(&unanswered.failure));
                return Err(unanswered);
            }
        };
        let rates = admission.rates;
        let answer = if self.work.is_streamed() {
            self.streamed(admission).await
        } else {
            self.whole(admission).await
        };
        answer.map_err(|failure| Unanswered {
            failure,
            rates: Some(Box::new(rates)),
        })
    }

    async fn word_first(&mut self) -> Result<(), Failure> {
        if let Some(route) = self.tries.first() {
            self.work
                .provide(self.progress.engine(), self.tries.model(), route)
                .await?;
            give_way().await;
            self.worded = Some(self.work.word(self.tries.model(), route)?);
        }
        Ok(())
    }

    /// Answers when the whole answer is there.
    async fn whole(&mut self, mut admission: Box<Admission>) -> Result<Answer, Failure> {
        while let Some(route) = self.tries.next(&self.progress) {
            admission.note(|record| record.tries(&route));
            match self.try_whole(&route, &mut admission).await {
                Ok(delivery) => return deliver_whole(delivery, admission).await,
                Err(miss) => {
                    admission.note(|record| record.missed(&miss.failure));
                    self.tries.miss(miss);
                }
            }
        }
        let failure = self.tries.failure();
        admission.release(&failure);
        Err(failure)
    }

    async fn try_whole(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Delivery<native::Answer>, Miss> {
        let mut trial = Trial::of(&route.channel);
        let (incoming, spoken, dropped) = self.send(route, &mut trial).await?;
        admission.note(Record::head_came);
        let bytes_max = self.work.answer_bytes_max(&self.progress.engine().settings);
        let body = gather(incoming.body, bytes_max, self.progress.engine().budget()).await;
        let body = body.map_err(|ungathered| match ungathered {
            // An answer cut halfway was content: it is not asked for again.
            Ungathered::Lost(error) => Miss {
                elsewhere: false,
                ..route_plan::lost(route, &error, &mut trial)
            },
            Ungathered::TooLarge => {
                trial.tell(CallOutcome::Failed);
                let channel = route.channel.name();
                tracing::warn!(channel, bytes_max, "an upstream's answer is too large");
                Miss::here(Failure::upstream_error())
            }
            Ungathered::NoMemory => Miss::here(no_memory()),
        })?;
        give_way().await;
        let answer = self
            .work
            .translate(spoken, body)
            .map_err(Miss::here)?
            .map_err(|broken| broken_miss(route, &broken, &mut trial))?;
        trial.tell(CallOutcome::Served);
        Ok(Delivery { answer, dropped })
    }

    /// Answers when the stream has shown content, which no other route may repeat.
    async fn streamed(&mut self, mut admission: Box<Admission>) -> Result<Answer, Failure> {
        while let Some(route) = self.tries.next(&self.progress) {
            admission.note(|record| record.tries(&route));
            match self.try_stream(&route, &mut admission).await {
                Ok(delivery) => return self.deliver_stream(delivery, admission).await,
                Err(miss) => {
                    admission.note(|record| record.missed(&miss.failure));
                    self.tries.miss(miss);
                }
            }
        }
        let failure = self.tries.failure();
        admission.release(&failure);
        Err(failure)
    }

    async fn try_stream(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Delivery<Opened>, Miss> {
        let mut trial = Trial::of(&route.channel);
        let (incoming, spoken, dropped) = self.send(route, &mut trial).await?;
        admission.note(Record::head_came);
        if !self.work.takes(incoming.content_type.as_ref()) {
            let why = format!("an answer of type {:?}", incoming.content_type);
            return Err(broken_miss(route, &Broken::Malformed(why), &mut trial));
        }
        let translator = self
            .work
            .translator(self.tries.model(), spoken)
            .map_err(Miss::here)?;
        let budget = self.progress.engine().budget().clone();
        let mut opened = Opened {
            content_type: self.work.content_type(incoming.content_type.as_ref()),
            feed: Feed::new(incoming.body, translator, budget),
            out: ByteQueue::new(),
            broken: None,
        };
        // A model that thinks for long sends nothing: then the stream begins without content,
        // so that the caller gets signs of life.
        let content = tokio::time::timeout(
            self.progress.engine().settings.keep_alive,
            opened.until_content(route, &mut trial),
        );
        if let Ok(Err(miss)) = content.await {
            return Err(miss);
        }
        trial.tell(CallOutcome::Served);
        Ok(Delivery {
            answer: opened,
            dropped,
        })
    }

    async fn deliver_stream(
        &self,
        delivery: Delivery<Opened>,
        mut admission: Box<Admission>,
    ) -> Result<Answer, Failure> {
        let Delivery {
            answer: opened,
            dropped,
        } = delivery;
        if let Err(failure) = admission.durable().await {
            admission.release(&failure);
            return Err(failure);
        }
        admission.note(|record| {
            record.answers(dropped.as_deref());
            record.keep_answer(&opened.out, 0);
        });
        let rates = admission.rates;
        let mut relay = Relay::new(
            opened.feed,
            opened.out,
            admission,
            self.work.manner(),
            self.arrival.request_id,
        );
        if let Some(failure) = &opened.broken {
            relay.break_off(failure);
        }
        Ok(Answer {
            content_type: opened.content_type,
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
        trial: &mut Trial<'_>,
    ) -> Result<(UpstreamResponse, Endpoint, Option<String>), Miss> {
        if self.worded.is_none() {
            let provided = self
                .work
                .provide(self.progress.engine(), self.tries.model(), route)
                .await;
            provided.map_err(Miss::here)?;
        }
        let worded = match &mut self.worded {
            Some(worded) => worded,
            none => none.insert(
                self.work
                    .word(self.tries.model(), route)
                    .map_err(Miss::here)?,
            ),
        };
        give_way().await;
        let (spoken, dropped) = (worded.call.endpoint, worded.dropped.take());
        let sent = route_plan::send(
            route,
            &self.tries.model().id,
            &worded.call,
            &self.progress,
            trial,
        )
        .await;
        self.worded = None;
        let incoming = sent?;
        Ok((incoming, spoken, dropped))
    }
}

async fn deliver_whole(
    delivery: Delivery<native::Answer>,
    mut admission: Box<Admission>,
) -> Result<Answer, Failure> {
    let Delivery { answer, dropped } = delivery;
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
struct Opened {
    content_type: HeaderValue,
    feed: Feed,
    out: ByteQueue,
    /// It broke behind its first content, in the same read.
    broken: Option<Failure>,
}

impl Opened {
    /// Reads until output or the end has gone by.
    async fn until_content(&mut self, route: &Route, trial: &mut Trial<'_>) -> Result<(), Miss> {
        loop {
            match self.feed.upstream.next().await {
                Some(Ok(chunk)) => {
                    if let Err(broken) = self.feed.translator.push(chunk, &mut self.out) {
                        return self.broke(broken_miss(route, &broken, trial));
                    }
                    if !self.feed.charge(&self.out) {
                        return self.broke(Miss::here(no_memory()));
                    }
                }
                Some(Err(error)) => return Err(route_plan::lost(route, &error, trial)),
                None => {
                    self.feed
                        .translator
                        .end(&mut self.out)
                        .map_err(|broken| broken_miss(route, &broken, trial))?;
                    return Ok(());
                }
            }
            let seen = self.feed.translator.seen();
            if seen.content || seen.ended {
                return Ok(());
            }
        }
    }

    /// Content that came before the break is delivered, and the break behind it: how the bytes
    /// were cut into reads must not decide whether another route is tried (S3).
    fn broke(&mut self, miss: Miss) -> Result<(), Miss> {
        if !self.feed.translator.seen().content {
            return Err(miss);
        }
        self.broken = Some(miss.failure);
        Ok(())
    }
}

/// An answer that is none: another route may do better, for nothing has reached the caller.
pub(crate) fn broken_miss(route: &Route, broken: &Broken, trial: &mut Trial<'_>) -> Miss {
    tracing::warn!(channel = route.channel.name(), %broken, "an upstream's answer is not one");
    let failure = broken_failure(broken);
    // A refusal of the request under a good status is an answer; all else is none.
    trial.tell(if failure.status() < 500 {
        CallOutcome::Served
    } else {
        CallOutcome::Failed
    });
    Miss {
        elsewhere: failure.status() >= 500,
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
