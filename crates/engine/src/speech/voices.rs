//! Lists the voices of a model, as reported by its upstream, free of charge.

use std::sync::Arc;

use bytes::Bytes;
use protocol::scrub::Names;
use protocol::{Failure, guard, voice};
use upstream::{Endpoint, UpstreamRequest};

use super::model;
use crate::call::arrival::Arrival;
use crate::call::attempt::Attempt;
use crate::call::collect_body::{CollectError, collect_body};
use crate::call::open_record::OpenRecord;
use crate::call::progress::Progress;
use crate::call::route_failure::RouteFailure;
use crate::call::send::send;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::failures::no_memory_for;

const VOICES_BYTES_MAX: usize = 4 << 20;

/// A request for the voices of a model, or for one of them.
#[derive(Debug)]
pub struct VoicesCall {
    pub arrival: Arrival,
    pub model: String,
    pub voice: Option<String>,
}

impl Engine {
    /// Lists voices. Nothing is held or charged.
    pub async fn voices(self: &Arc<Self>, call: VoicesCall) -> Result<Bytes, Failure> {
        let mut record = OpenRecord::begin(Arc::new(Progress::new(self)), &call.arrival);
        record.update_record(|record| record.set_model(call.model.as_str(), false));
        let listed = list(self, &call, &mut record).await;
        record.end_free(&listed);
        listed
    }
}

async fn list(
    engine: &Arc<Engine>,
    call: &VoicesCall,
    record: &mut OpenRecord,
) -> Result<Bytes, Failure> {
    guard::model_id(&call.model)?;
    if let Some(voice) = &call.voice {
        guard::voice_id(voice)?;
    }
    let mut plan = model::find(engine, &call.model, &call.arrival.key, None)?;
    let model = Arc::clone(plan.model());
    let progress = Arc::clone(record.progress());
    while let Some(route) = plan.next(&progress, record) {
        match ask(engine, call, &model, &route, &progress).await {
            Ok(voices) => return Ok(voices),
            Err(failed) => plan.attempt_failed(failed, record),
        }
    }
    Err(plan.last_failure())
}

async fn ask(
    engine: &Engine,
    call: &VoicesCall,
    model: &Model,
    route: &Route,
    progress: &Progress,
) -> Result<Bytes, RouteFailure> {
    let mut attempt = Attempt::of_free_request(&route.channel).of_call(call.arrival.request_id);
    let outgoing = UpstreamRequest {
        item: call.voice.as_deref().map(Into::into),
        ..UpstreamRequest::json(Endpoint::Voices, Arc::clone(&route.model), Vec::new())
    };
    let incoming = send(route, &model.id, &outgoing, progress, &mut attempt).await?;
    let body = collect_body(incoming.body, VOICES_BYTES_MAX, engine.budget()).await;
    let body = body.map_err(|error| match error {
        CollectError::Lost(error) => RouteFailure::lost(route, &error, &mut attempt),
        CollectError::TooLarge => RouteFailure::stop(Failure::upstream_error()),
        CollectError::NoMemory => RouteFailure::stop(no_memory_for("this answer")),
    })?;
    let names = Names {
        hidden: route.channel.identity(),
        ..Names::of_model(&route.model, &model.id)
    };
    let voices = voice::clean_voices(&body, names);
    voices.map_err(|broken| RouteFailure::broken(route, &broken, &mut attempt))
}
