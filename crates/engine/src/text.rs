//! The life of one text call: read, admit, try routes, relay, settle.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use protocol::native::{self, Broken, Head, Identity, Rewriter, Seen};
use protocol::{Dialect, Failure, Joined};
use store::KeyHead;
use upstream::Incoming;

use crate::admission::Admission;
use crate::answer::{Answer, AnswerBody};
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::fit;
use crate::ids;
use crate::progress::{Outliving, Progress};
use crate::record::{Outcome, Record};
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
    pub request_id: Arc<str>,
    /// The path template, for the journal.
    pub endpoint: &'static str,
    pub arrived: Instant,
}

impl Engine {
    /// Serves a text call. Dropping the future is safe at any point: the hold is closed.
    pub async fn text(self: &Arc<Self>, call: TextCall) -> Result<Answer, Failure> {
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
) -> Result<Answer, Failure> {
    let mut record = Box::new(Record::begin(&call));
    let (head, model, tries) = match prepare(&engine, &call, &mut record) {
        Ok(prepared) => prepared,
        Err(failure) => {
            engine.journal(record.refused(&failure));
            return Err(failure);
        }
    };
    let admitted = Admission::ask(
        &engine,
        &call.key,
        &model,
        &head,
        Arc::clone(&progress),
        record,
    )
    .await;
    let admission = match admitted {
        Ok(admission) => admission,
        Err((record, failure)) => {
            engine.journal(record.refused(&failure));
            return Err(failure);
        }
    };
    let identity = Identity {
        id: ids::fresh(id_prefix(call.dialect)).into(),
        model: Arc::clone(&model.id),
    };
    let attempt = Attempt {
        engine: &engine,
        call: &call,
        head: &head,
        identity,
        progress: &progress,
    };
    if head.stream {
        attempt.streamed(tries, admission).await
    } else {
        attempt.whole(tries, admission).await
    }
}

/// Everything that can be refused before money moves.
fn prepare(
    engine: &Engine,
    call: &TextCall,
    record: &mut Record,
) -> Result<(Head, Arc<Model>, Tries), Failure> {
    let head = match &call.named {
        Some(Named { model, stream }) => native::read_named_head(&call.body, model, *stream)?,
        None => native::read_head(call.dialect, &call.body)?,
    };
    record.reads(&head);
    let catalog = engine.catalog();
    let model = catalog
        .find(&head.model)
        .ok_or_else(|| Failure::model_not_found(&head.model))?;
    fit::check(model, call.dialect, &head)?;
    let tries = Tries::native(model, call.dialect).ok_or_else(|| {
        Failure::model_not_supported(format!(
            "The model `{}` cannot be reached through this endpoint.",
            model.id
        ))
    })?;
    Ok((head, Arc::clone(model), tries))
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
    call: &'c TextCall,
    head: &'c Head,
    identity: Identity,
    progress: &'c Progress,
}

impl Attempt<'_> {
    /// Answers when the whole answer is there.
    async fn whole(self, mut tries: Tries, mut admission: Admission) -> Result<Answer, Failure> {
        while let Some(index) = tries.next(self.engine, self.progress) {
            let Some(route) = tries.route(index) else {
                continue;
            };
            admission.note(|record| record.tries(route));
            match self.try_whole(route, &mut admission).await {
                Ok(answer) => return self.deliver_whole(answer, admission).await,
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
        &self,
        route: &Route,
        admission: &mut Admission,
    ) -> Result<native::Answer, Miss> {
        let incoming = self.send(route).await?;
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
        native::rewrite_answer(self.call.dialect, body, &self.identity)
            .map_err(|broken| broken_miss(route, &broken))
    }

    async fn deliver_whole(
        &self,
        answer: native::Answer,
        mut admission: Admission,
    ) -> Result<Answer, Failure> {
        if let Err(failure) = admission.durable().await {
            admission.release(&failure);
            return Err(failure);
        }
        admission.note(Record::answers);
        let rates = admission.rates;
        let seen = Seen {
            usage: answer.usage,
            interim_usage: None,
            usage_malformed: answer.usage_malformed,
            content: true,
            output_tokens_counted: answer.output_tokens_counted,
            ended: true,
        };
        admission.settle(&seen, &Outcome::done());
        Ok(Answer {
            content_type: "application/json",
            rates,
            body: AnswerBody::Whole(answer.pieces),
        })
    }

    /// Answers when the stream has shown content, which no other route may repeat.
    async fn streamed(self, mut tries: Tries, mut admission: Admission) -> Result<Answer, Failure> {
        while let Some(index) = tries.next(self.engine, self.progress) {
            let Some(route) = tries.route(index) else {
                continue;
            };
            admission.note(|record| record.tries(route));
            match self.try_stream(route, &mut admission).await {
                Ok(opened) => return self.deliver_stream(opened, admission).await,
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

    async fn try_stream(&self, route: &Route, admission: &mut Admission) -> Result<Opened, Miss> {
        let incoming = self.send(route).await?;
        admission.note(Record::head_came);
        let mut opened = Opened {
            incoming,
            rewriter: Rewriter::new(
                self.call.dialect,
                self.identity.clone(),
                self.head.include_usage,
            ),
            out: Joined::new(),
            broken: None,
        };
        // A model that thinks for long sends nothing: then the stream begins without content,
        // so that the caller gets signs of life.
        let content =
            tokio::time::timeout(self.engine.settings.keep_alive, opened.until_content(route));
        match content.await {
            Ok(Err(miss)) => Err(miss),
            Ok(Ok(())) | Err(_) => Ok(opened),
        }
    }

    async fn deliver_stream(
        &self,
        opened: Opened,
        mut admission: Admission,
    ) -> Result<Answer, Failure> {
        if let Err(failure) = admission.durable().await {
            admission.release(&failure);
            return Err(failure);
        }
        admission.note(Record::answers);
        let rates = admission.rates;
        let mut relay = Relay::new(
            opened.incoming.body,
            opened.rewriter,
            opened.out,
            admission,
            self.call.dialect,
            Arc::clone(&self.call.request_id),
        );
        if let Some(failure) = &opened.broken {
            relay.break_off(failure);
        }
        Ok(Answer {
            content_type: "text/event-stream",
            rates,
            body: AnswerBody::Stream(Box::new(relay)),
        })
    }

    async fn send(&self, route: &Route) -> Result<Incoming, Miss> {
        let model = &self.identity.model;
        tries::send(
            route,
            model,
            self.call.dialect,
            self.head,
            &self.call.body,
            self.progress,
        )
        .await
    }
}

/// A stream whose head has come.
struct Opened {
    incoming: Incoming,
    rewriter: Rewriter,
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
                    if let Err(broken) = self.rewriter.push(chunk, &mut self.out) {
                        return self.broke(broken_miss(route, &broken));
                    }
                }
                Some(Err(error)) => return Err(tries::lost(route, &error)),
                None => {
                    self.rewriter
                        .end(&mut self.out)
                        .map_err(|broken| broken_miss(route, &broken))?;
                    return Ok(());
                }
            }
            let seen = self.rewriter.seen();
            if seen.content || seen.ended {
                return Ok(());
            }
        }
    }

    /// Content that came before the break is delivered, and the break behind it: how the bytes
    /// were cut into reads must not decide whether another route is tried (S3).
    fn broke(&mut self, miss: Miss) -> Result<(), Miss> {
        if !self.rewriter.seen().content {
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
