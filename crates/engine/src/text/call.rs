//! Text calls: read, refused where they must be, and put into the words of each route.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use protocol::native::{self, Broken, Identity};
use protocol::{Dialect, Failure, Translator};
use upstream::Endpoint;

use crate::billing::estimate::Estimate;
use crate::call::answer::{Answer, FailedCall};
use crate::call::kind::{Arrival, CallKind, Encoded, Prepared, StreamPolicy};
use crate::call::record::Record;
use crate::call::route_plan::RoutePlan;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::ids;
use crate::text::capability_check;
use crate::text::request::TextRequest;

/// The model and the manner of a call, where its path says them: Generate Content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPath {
    pub model: String,
    pub stream: bool,
}

/// A text request of a known caller, its body read.
#[derive(Debug)]
pub struct TextCall {
    pub arrival: Arrival,
    pub dialect: Dialect,
    /// What the path says, where it names the model.
    pub named: Option<TextPath>,
    pub body: Bytes,
    /// Headers for an upstream that speaks the caller's own dialect.
    pub extra: HeaderMap,
}

impl Engine {
    /// Serves a text call. Dropping the future is safe at any point: the hold is closed.
    pub async fn text(self: &Arc<Self>, call: TextCall) -> Result<Answer, FailedCall> {
        let arrival = call.arrival.clone();
        self.run_call(arrival, move |engine, record| {
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
    let request = TextRequest::read(call, &engine.settings)?;
    let catalog = engine.catalog();
    let name = request.head.model.as_str();
    let found = catalog.find(name);
    let read: Arc<str> = match &found {
        Ok(model) => Arc::clone(&model.id),
        Err(_) => name.into(),
    };
    record.set_model(read, request.head.stream);
    let model = found?;
    capability_check::check(model, call.dialect, &request.head)?;
    let dialect_for = |route: &Route| route.channel.text_dialect_for(call.dialect, route.dialect);
    let plan = RoutePlan::new(model, |route| dialect_for(route).is_some())?;
    let keeps_cache = |route: &Route| dialect_for(route) == Some(Dialect::Messages);
    if request.head.long_cache && model.routes.iter().any(|route| keeps_cache(route)) {
        capability_check::priced_long_cache(model)?;
    }
    let reserve_tokens = engine.settings.output_reserve_tokens;
    let mut estimate = Estimate::text(
        &request.head,
        &model.profile,
        model.keeps_output_limit,
        reserve_tokens,
    );
    if capability_check::makes_pictures(model) {
        let grade = request.picture_grade()?;
        estimate = estimate.with_pictures(grade, request.head.choices, model);
    }
    Ok(Prepared {
        estimate,
        kind: Text {
            identity: Identity {
                id: ids::fresh(id_prefix(call.dialect)),
                model: Arc::clone(&model.id),
            },
            request,
        },
        plan,
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
    request: TextRequest,
    identity: Identity,
}

impl CallKind for Text {
    fn is_streamed(&self) -> bool {
        self.request.head.stream
    }

    async fn prepare_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
    ) -> Result<(), Failure> {
        self.request.prepare_for(engine, model, route).await
    }

    fn encode_for(&self, model: &Model, route: &Route) -> Result<Encoded, Failure> {
        self.request.encode_for(model, route)
    }

    fn translate_answer(
        &self,
        spoken: Endpoint,
        answer: Bytes,
    ) -> Result<Result<native::Answer, Broken>, Failure> {
        self.request
            .translate_answer(spoken.dialect(), &self.identity, answer)
    }

    fn stream_translator(&self, model: &Model, spoken: Endpoint) -> Result<Translator, Failure> {
        self.request
            .stream_translator(spoken.dialect(), &self.identity, &model.price)
    }

    fn stream_policy(&self) -> StreamPolicy {
        StreamPolicy {
            keep_alive: self.request.dialect.keep_alive(),
            aborts_on_failure: self.request.dialect == Dialect::Generate,
        }
    }
}
