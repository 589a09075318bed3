//! Text calls: read, refused where they must be, and put into the words of each route.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use protocol::native::{self, Broken, Identity};
use protocol::{Dialect, Failure, Translator};
use upstream::Endpoint;

use crate::billing::estimate::Estimate;
use crate::call::answer::{Answer, Unanswered};
use crate::call::kind::{Arrival, Manner, Prepared, Worded, Work};
use crate::call::record::Record;
use crate::call::route_plan::Tries;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::ids;
use crate::text::capability_check;
use crate::text::request::Asked;

/// The model and the manner of a call, where its path says them: Generate Content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub model: String,
    pub stream: bool,
}

/// A text request of a known caller, its body read.
#[derive(Debug)]
pub struct TextCall {
    pub arrival: Arrival,
    pub dialect: Dialect,
    /// What the path says, where it names the model.
    pub named: Option<Named>,
    pub body: Bytes,
    /// Headers for an upstream that speaks the caller's own dialect.
    pub extra: HeaderMap,
}

impl Engine {
    /// Serves a text call. Dropping the future is safe at any point: the hold is closed.
    pub async fn text(self: &Arc<Self>, call: TextCall) -> Result<Answer, Unanswered> {
        let arrival = call.arrival.clone();
        self.live(arrival, move |engine, record| {
            prepare(engine, &call, record)
        })
        .await
    }
}

/// Everything that can be refused before money moves.
fn prepare(
    engine: &Engine,
    call: &TextCall,
    record: &mut Record,
) -> Result<Prepared<Text>, Failure> {
    if engine.settings.journal_bodies {
        record.keep_bodies(&call.body);
    }
    let asked = Asked::read(call, &engine.settings)?;
    let catalog = engine.catalog();
    let name = asked.head.model.as_str();
    let found = catalog.find(name);
    let read: Arc<str> = match &found {
        Ok(model) => Arc::clone(&model.id),
        Err(_) => name.into(),
    };
    record.reads(read, asked.head.stream);
    let model = found?;
    capability_check::check(model, call.dialect, &asked.head)?;
    let dialect_for = |route: &Route| route.channel.text_dialect_for(call.dialect, route.dialect);
    let tries = Tries::of(model, |route| dialect_for(route).is_some())?;
    let keeps_cache = |route: &Route| dialect_for(route) == Some(Dialect::Messages);
    if asked.head.long_cache && model.routes.iter().any(|route| keeps_cache(route)) {
        capability_check::priced_long_cache(model)?;
    }
    let reserve_tokens = engine.settings.output_reserve_tokens;
    let mut estimate = Estimate::text(
        &asked.head,
        &model.profile,
        model.keeps_output_limit,
        reserve_tokens,
    );
    if capability_check::makes_pictures(model) {
        let grade = asked.picture_grade()?;
        estimate = estimate.with_pictures(grade, asked.head.choices, model);
    }
    Ok(Prepared {
        estimate,
        work: Text {
            identity: Identity {
                id: ids::fresh(id_prefix(call.dialect)),
                model: Arc::clone(&model.id),
            },
            asked,
        },
        tries,
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

/// A text request and who answers it.
struct Text {
    asked: Asked,
    identity: Identity,
}

impl Work for Text {
    fn is_streamed(&self) -> bool {
        self.asked.head.stream
    }

    async fn provide(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
    ) -> Result<(), Failure> {
        self.asked.provide(engine, model, route).await
    }

    fn word(&self, model: &Model, route: &Route) -> Result<Worded, Failure> {
        self.asked.word(model, route)
    }

    fn translate(
        &self,
        spoken: Endpoint,
        answer: Bytes,
    ) -> Result<Result<native::Answer, Broken>, Failure> {
        self.asked
            .translate(spoken.dialect(), &self.identity, answer)
    }

    fn translator(&self, model: &Model, spoken: Endpoint) -> Result<Translator, Failure> {
        self.asked
            .translator(spoken.dialect(), &self.identity, &model.price)
    }

    fn manner(&self) -> Manner {
        Manner {
            keep_alive: self.asked.dialect.keep_alive(),
            aborts: self.asked.dialect == Dialect::Generate,
        }
    }
}
