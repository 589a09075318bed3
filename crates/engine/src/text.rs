//! The life of one text call: read, admit, try routes, relay, settle.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use protocol::native::{self, Broken, Identity, Seen};
use protocol::{Dialect, Failure, Joined, Translator};
use store::KeyHead;
use upstream::Incoming;

use crate::admission::{Admission, Refused};
use crate::answer::{Answer, AnswerBody, Unanswered};
use crate::asked::{Asked, Worded, unreachable_model};
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::fit;
use crate::ids;
use crate::progress::{Outliving, Progress};
use crate::record::Record;
use crate::stream::Relay;
use crate::tries::{self, Miss, Tries};

/// The model and the manner of a call, where its path says them: Generate Content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub model: String,
    pub stream: bool,
}

/// A text request of a known caller, its body read.
#[derive(Debug)]
pub struct TextCall {
    pub dialect: Dialect,
    /// What the path says, where it names the model.
    pub named: Option<Named>,
    pub key: KeyHead,
    pub body: Bytes,
    /// Headers for an upstream that speaks the caller's own dialect.
    pub extra: HeaderMap,
    pub request_id: Arc<str>,
    /// The path template, for the journal.
    pub endpoint: &'static str,
    pub arrived: Instant,
}

impl Engine {
    /// Serves a text call. Dropping the future is safe at any point: the hold is closed.
    pub async fn text(self: &Arc<Self>, call: TextCall) -> Result<Answer, Unanswered> {
        let progress = Arc::new(Progress::default());
        let run = run(Arc::clone(self), call, Arc::clone(&progress));
        Outliving::new(
            run,
            progress,
            self.settings.client_gone_drain,
            self.tasks.clone(),
        )
        .await
    }
}

async fn run(
    engine: Arc<Engine>,
    call: TextCall,
    progress: Arc<Progress>,
) -> Result<Answer, Unanswered> {
    let mut record = Box::new(Record::begin(&call));
    let prepared = match prepare(&engine, &call, &mut record) {
        Ok(prepared) => prepared,
        Err(failure) => {
            engine.journal(record.refused(&failure));
            return Err(failure.into());
        }
    };
    let Prepared {
        asked,
        model,
        tries,
        first,
    } = prepared;
    let admitted = Admission::ask(
        &engine,
        &call.key,
        &model,
        &asked.head,
        Arc::clone(&progress),
        record,
    )
    .await;
    let admission = match admitted {
        Ok(admission) => admission,
        Err(Refused { record, unanswered }) => {
            engine.journal(record.refused(&unanswered.failure));
            return Err(unanswered);
        }
    };
    let identity = Identity {
        id: ids::fresh(id_prefix(call.dialect)).into(),
        model: Arc::clone(&model.id),
    };
    let is_stream = asked.head.stream;
    let attempt = Attempt {
        engine: &engine,
        request_id: &call.request_id,
        asked,
        model,
        first: Some(first),
        identity,
        progress: &progress,
    };
    let rates = admission.rates;
    let answer = if is_stream {
        attempt.streamed(tries, admission).await
    } else {
        attempt.whole(tries, admission).await
    };
    answer.map_err(|failure| Unanswered {
        failure,
        rates: Some(Box::new(rates)),
    })
}

/// A call that may ask for money.
struct Prepared {
    asked: Asked,
    model: Arc<Model>,
    tries: Tries,
    /// The request in the words of the route that is tried first: what cannot be said there is
    /// refused before money moves.
    first: Worded,
}

/// Everything that can be refused before money moves.
fn prepare(engine: &Engine, call: &TextCall, record: &mut Record) -> Result<Prepared, Failure> {
    let asked = Asked::read(call)?;
    record.reads(&asked.head);
    let catalog = engine.catalog();
    let model = catalog
        .find(&asked.head.model)
        .ok_or_else(|| Failure::model_not_found(&asked.head.model))?;
    fit::check(model, call.dialect, &asked.head)?;
    let tries = Tries::of(model, call.dialect).ok_or_else(|| unreachable_model(model))?;
    let route = tries.first().ok_or_else(|| unreachable_model(model))?;
    let first = asked.word(model, route)?;
    Ok(Prepared {
        asked,
        model: Arc::clone(model),
        tries,
        first,
    })
}

fn id_prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "chatcmpl_",
        Dialect::Responses => "resp_",
        Dialect::Messages => "msg_",
        Dialect::Generate => "gen_",
        Dialect::Interactions => "int_",
    }
}

/// One admitted call on its way through the routes.
struct Attempt<'c> {
    engine: &'c Arc<Engine>,
    request_id: &'c Arc<str>,
    asked: Asked,
    model: Arc<Model>,
    first: Option<Worded>,
    identity: Identity,
    progress: &'c Progress,
}

/// A whole answer, and what its request had to leave out.
struct Delivery<T> {
    answer: T,
    dropped: Option<String>,
}

impl Attempt<'_> {
    /// Answers when the whole answer is there.
    async fn whole(
        mut self,
        mut tries: Tries,
        mut admission: Admission,
    ) -> Result<Answer, Failure> {
        while let Some(index) = tries.next(self.engine, self.progress) {
            let Some(route) = tries.route(index) else {
                continue;
            };
            admission.note(|record| record.tries(route));
            match self.try_whole(route, &mut admission).await {
                Ok(delivery) => return deliver_whole(delivery, admission).await,
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

    async fn try_whole(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Delivery<native::Answer>, Miss> {
        let (incoming, spoken, dropped) = self.send(route).await?;
        admission.note(Record::head_came);
        let body = incoming
            .body
            .collect(self.engine.settings.answer_bytes_max)
            .await;
        // An answer cut halfway was content: it is not asked for again.
        let body = body.map_err(|error| Miss {
            elsewhere: false,
            ..tries::lost(route, &error)
        })?;
        let answer = self
            .asked
            .translate(spoken, &self.identity, body)
            .map_err(Miss::here)?
            .map_err(|broken| broken_miss(route, &broken))?;
        Ok(Delivery { answer, dropped })
    }

    /// Answers when the stream has shown content, which no other route may repeat.
    async fn streamed(
        mut self,
        mut tries: Tries,
        mut admission: Admission,
    ) -> Result<Answer, Failure> {
        while let Some(index) = tries.next(self.engine, self.progress) {
            let Some(route) = tries.route(index) else {
                continue;
            };
            admission.note(|record| record.tries(route));
            match self.try_stream(route, &mut admission).await {
                Ok(delivery) => return self.deliver_stream(delivery, admission).await,
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

    async fn try_stream(
        &mut self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<Delivery<Opened>, Miss> {
        let (incoming, spoken, dropped) = self.send(route).await?;
        admission.note(Record::head_came);
        let translator = self
            .asked
            .translator(spoken, &self.identity)
            .map_err(Miss::here)?;
        let mut opened = Opened {
            incoming,
            translator,
            out: Joined::new(),
            broken: None,
        };
        // A model that thinks for long sends nothing: then the stream begins without content,
        // so that the caller gets signs of life.
        let content =
            tokio::time::timeout(self.engine.settings.keep_alive, opened.until_content(route));
        match content.await {
            Ok(Err(miss)) => Err(miss),
            Ok(Ok(())) | Err(_) => Ok(Delivery {
                answer: opened,
                dropped,
            }),
        }
    }

    async fn deliver_stream(
        &self,
        delivery: Delivery<Opened>,
        mut admission: Admission,
    ) -> Result<Answer, Failure> {
        let Delivery {
            answer: opened,
            dropped,
        } = delivery;
        if let Err(failure) = admission.durable().await {
            admission.release(&failure);
            return Err(failure);
        }
        admission.note(|record| record.answers(dropped.as_deref()));
        let rates = admission.rates;
        let mut relay = Relay::new(
            opened.incoming.body,
            opened.translator,
            opened.out,
            admission,
            self.asked.dialect,
            Arc::clone(self.request_id),
        );
        if let Some(failure) = &opened.broken {
            relay.break_off(failure);
        }
        Ok(Answer {
            content_type: "text/event-stream",
            rates,
            dropped,
            body: AnswerBody::Stream(Box::new(relay)),
        })
    }

    /// Sends the call over a route, and says which dialect it was spoken to in and what was left
    /// out for it.
    async fn send(&mut self, route: &Route) -> Result<(Incoming, Dialect, Option<String>), Miss> {
        let mut worded = match self.first.take() {
            Some(worded) => worded,
            None => self.asked.word(&self.model, route).map_err(Miss::here)?,
        };
        let (spoken, dropped) = (worded.dialect, worded.dropped.take());
        let stream = self.asked.head.stream;
        let incoming = tries::send(route, &self.model.id, stream, worded, self.progress).await?;
        Ok((incoming, spoken, dropped))
    }
}

async fn deliver_whole(
    delivery: Delivery<native::Answer>,
    mut admission: Admission,
) -> Result<Answer, Failure> {
    let Delivery { answer, dropped } = delivery;
    if let Err(failure) = admission.durable().await {
        admission.release(&failure);
        return Err(failure);
    }
    admission.note(|record| record.answers(dropped.as_deref()));
    let rates = admission.rates;
    let seen = Seen {
        usage: answer.usage,
        interim_usage: None,
        usage_malformed: answer.usage_malformed,
        content: true,
        output_tokens_counted: answer.output_tokens_counted,
        ended: true,
    };
    let outcome = admission.outcome();
    admission.settle(&seen, &outcome);
    Ok(Answer {
        content_type: "application/json",
        rates,
        dropped,
        body: AnswerBody::Whole(answer.pieces),
    })
}

/// A stream whose head has come.
struct Opened {
    incoming: Incoming,
    translator: Translator,
    out: Joined,
    /// It broke behind its first content, in the same read.
    broken: Option<Failure>,
}

impl Opened {
    /// Reads until output or the end has gone by.
    async fn until_content(&mut self, route: &Route) -> Result<(), Miss> {
        loop {
            match self.incoming.body.next().await {
                Some(Ok(chunk)) => {
                    if let Err(broken) = self.translator.push(chunk, &mut self.out) {
                        return self.broke(broken_miss(route, &broken));
                    }
                }
                Some(Err(error)) => return Err(tries::lost(route, &error)),
                None => {
                    self.translator
                        .end(&mut self.out)
                        .map_err(|broken| broken_miss(route, &broken))?;
                    return Ok(());
                }
            }
            let seen = self.translator.seen();
            if seen.content || seen.ended {
                return Ok(());
            }
        }
    }

    /// Content that came before the break is delivered, and the break behind it: how the bytes
    /// were cut into reads must not decide whether another route is tried (S3).
    fn broke(&mut self, miss: Miss) -> Result<(), Miss> {
        if !self.translator.seen().content {
            return Err(miss);
        }
        self.broken = Some(miss.failure);
        Ok(())
    }
}

/// An answer that is none: another route may do better, for nothing has reached the caller.
fn broken_miss(route: &Route, broken: &Broken) -> Miss {
    tracing::warn!(channel = route.channel.name(), %broken, "an upstream's answer is not one");
    let failure = broken_failure(broken);
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
