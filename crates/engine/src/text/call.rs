//! Text calls: the request is read, checked and refused where it must be, before money moves.

use std::sync::Arc;

use protocol::{Dialect, Failure};

use crate::billing::estimate::Estimate;
use crate::call::answer::Answer;
use crate::call::failed_call::FailedCall;
use crate::call::kind::Prepared;
use crate::call::record::Record;
use crate::call::route_plan::RoutePlan;
use crate::catalog::Route;
use crate::engine::Engine;
use crate::text::capability_check;
use crate::text::request::{TextCall, TextRequest};

impl Engine {
    /// Serves a text call. The future can be dropped at any point: the hold is then closed.
    pub async fn text(self: &Arc<Self>, call: TextCall) -> Result<Answer, FailedCall> {
        let arrival = call.arrival.clone();
        self.run_call(arrival, move |engine, record| {
            prepare(engine, &call, record)
        })
        .await
    }
}

/// Refuses everything that can be refused before money moves.
fn prepare(
    engine: &Engine,
    call: &TextCall,
    record: &mut Record,
) -> Result<Prepared<TextRequest>, Failure> {
    if engine.settings.journal_bodies {
        record.keep_bodies(&call.body);
    }
    let head = call.read_head()?;
    let catalog = engine.catalog();
    let found = catalog.find(head.model.as_str(), &call.arrival.key);
    let public_model: Arc<str> = match &found {
        Ok(model) => Arc::clone(&model.id),
        Err(_) => head.model.as_str().into(),
    };
    record.set_model(public_model, head.stream);
    let model = found?;
    capability_check::check(model, call.dialect, &head)?;
    let dialect_for = |route: &Route| route.channel.text_dialect_for(call.dialect, route.dialect);
    let plan = RoutePlan::new(model, |route| dialect_for(route).is_some())?;
    let keeps_cache = |route: &Route| dialect_for(route) == Some(Dialect::Messages);
    if head.long_cache && model.routes.iter().any(|route| keeps_cache(route)) {
        capability_check::refuse_unpriced_long_cache(model)?;
    }
    let reserve_tokens = engine.settings.output_reserve_tokens;
    let keeps_output_limit = model.keeps_output_limit;
    let mut estimate = Estimate::text(&head, &model.profile, keeps_output_limit, reserve_tokens);
    if capability_check::makes_pictures(model) {
        let grade = call.picture_grade()?;
        estimate = estimate.with_pictures(grade, head.choices, model);
    }
    Ok(Prepared {
        estimate,
        kind: TextRequest::new(call, head, model, &engine.settings),
        plan,
    })
}
