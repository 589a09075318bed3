//! Prepares text calls: reads and checks the request before money moves.

use std::collections::VecDeque;
use std::sync::Arc;

use protocol::Failure;
use protocol::native::{Head, LongCache};

use crate::billing::estimate::Estimate;
use crate::call::answer::Answer;
use crate::call::failed_call::FailedCall;
use crate::call::kind::Prepared;
use crate::call::record::Record;
use crate::call::route_plan::RoutePlan;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::text::capability_check;
use crate::text::request::{TextCall, TextRequest};

impl Engine {
    /// Serves a text call. The future can be dropped at any time, which closes the hold.
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
) -> Result<Box<Prepared<TextRequest>>, Failure> {
    if engine.settings.journal_bodies {
        record.keep_bodies(&call.body);
    }
    let head = call.read_head()?;
    let catalog = engine.catalog();
    let (id, key) = (head.model.as_str(), &call.arrival.key);
    let found = catalog.find(id, key);
    // Fallbacks may answer for a model that has no live channel at the moment.
    let covered = |model: &&Arc<Model>| key.allows(id) && !model.routing.fallbacks.is_empty();
    let named = found.as_ref().ok().copied();
    let named = named.or_else(|| catalog.get(id).filter(covered));
    let public_model = named.map_or_else(|| id.into(), |model| Arc::clone(&model.id));
    record.set_model(public_model, head.stream);
    let (model, out) = match (named, found) {
        (Some(model), found) => (model, found.err()),
        (None, found) => (found?, None),
    };
    let mut fallbacks = VecDeque::new();
    for id in &model.routing.fallbacks {
        let Some(other) = catalog.get(id).filter(|other| other.is_callable()) else {
            continue;
        };
        // A fallback model that cannot serve this request is left out.
        match prepare_for(engine, call, head.clone(), other) {
            Ok(fallback) => fallbacks.push_back(fallback),
            Err(failure) => record.fallback_unfit(&other.id, &failure),
        }
    }
    let prepared = match out {
        Some(failure) => Err(failure),
        None => prepare_for(engine, call, head, model),
    };
    match prepared {
        Ok(mut prepared) => {
            prepared.fallbacks = fallbacks;
            Ok(prepared)
        }
        // This model is out of service, so the first suitable fallback takes its place.
        Err(failure) if failure.status() == 503 => {
            let Some(mut first) = fallbacks.pop_front() else {
                return Err(failure);
            };
            record.fall_back(&model.id, &first.plan.model().id);
            first.fallbacks = fallbacks;
            first.of_named_model = Some(failure);
            Ok(first)
        }
        Err(failure) => Err(failure),
    }
}

/// Prepares the call for one model: the model that the caller named, or a fallback.
fn prepare_for(
    engine: &Engine,
    call: &TextCall,
    mut head: Head,
    model: &Arc<Model>,
) -> Result<Box<Prepared<TextRequest>>, Failure> {
    capability_check::check(model, call.dialect, &head)?;
    let dialect_for = |route: &Route| route.channel.text_dialect_for(call.dialect, route.dialect);
    let plan = RoutePlan::new(model, |route| dialect_for(route).is_some())?;
    capability_check::refuse_unpriced_long_cache(model, &head, dialect_for)?;
    // A converted request asks for one choice and for no cache, so nothing more is held.
    let is_native = |route: &Arc<Route>| dialect_for(route) == Some(call.dialect);
    if !model.routes.iter().any(is_native) {
        head.choices = 1;
        head.long_cache = LongCache::No;
    }
    let reserve_tokens = engine.settings.output_reserve_tokens;
    let keeps_output_limit = model.keeps_output_limit;
    let mut estimate = Estimate::text(&head, &model.profile, keeps_output_limit, reserve_tokens);
    if capability_check::makes_pictures(model) {
        let grade = call.picture_grade()?;
        estimate = estimate.with_pictures(grade, head.choices, model);
    }
    Ok(Box::new(Prepared {
        estimate,
        kind: TextRequest::new(call, head, model, &engine.settings),
        plan,
        fallbacks: VecDeque::new(),
        of_named_model: None,
    }))
}
