//! The voices of a model: asked of its upstream, and free.

use std::sync::Arc;

use bytes::Bytes;
use protocol::scrub::Names;
use protocol::{Failure, guard, voice};
use upstream::{CallOutcome, Endpoint, UpstreamRequest};

use super::model;
use crate::call::attempt::Trial;
use crate::call::collect_body::{Ungathered, gather};
use crate::call::kind::Arrival;
use crate::call::progress::Progress;
use crate::call::record::Record;
use crate::call::route_plan::{self, Miss};
use crate::call::run::{broken_miss, no_memory};
use crate::catalog::{Model, Route};
use crate::engine::Engine;

/// The largest list of voices.
const VOICES_BYTES_MAX: usize = 4 << 20;

/// A request for the voices of a model, or for one of them.
#[derive(Debug)]
pub struct VoicesCall {
    pub arrival: Arrival,
    pub model: String,
    pub voice: Option<String>,
}

impl Engine {
    /// Lists voices as the upstream does. Nothing is held or charged.
    pub async fn voices(self: &Arc<Self>, call: VoicesCall) -> Result<Bytes, Failure> {
        let mut record = Box::new(Record::begin(&call.arrival));
        record.reads(call.model.as_str(), false);
        let listed = list(self, &call, &mut record).await;
        self.journal(match &listed {
            Ok(_) => record.free(),
            Err(failure) => record.refused(failure),
        });
        listed
    }
}

async fn list(
    engine: &Arc<Engine>,
    call: &VoicesCall,
    record: &mut Record,
) -> Result<Bytes, Failure> {
    guard::model_id(&call.model)?;
    if let Some(voice) = &call.voice {
        guard::voice_id(voice)?;
    }
    let mut tries = model::find(engine, &call.model, None)?;
    let model = Arc::clone(tries.model());
    let progress = Progress::new(engine);
    while let Some(route) = tries.next(&progress) {
        record.tries(&route);
        match ask(engine, call, &model, &route, &progress).await {
            Ok(voices) => return Ok(voices),
            Err(miss) => {
                record.missed(&miss.failure);
                tries.miss(miss);
            }
        }
    }
    Err(tries.failure())
}

async fn ask(
    engine: &Engine,
    call: &VoicesCall,
    model: &Model,
    route: &Route,
    progress: &Progress,
) -> Result<Bytes, Miss> {
    let mut trial = Trial::of(&route.channel);
    let outgoing = UpstreamRequest {
        item: call.voice.as_deref().map(Into::into),
        ..UpstreamRequest::json(Endpoint::Voices, Arc::clone(&route.model), Vec::new())
    };
    let incoming = route_plan::send(route, &model.id, &outgoing, progress, &mut trial).await?;
    let body = gather(incoming.body, VOICES_BYTES_MAX, engine.budget()).await;
    let body = body.map_err(|ungathered| match ungathered {
        Ungathered::Lost(error) => route_plan::lost(route, &error, &mut trial),
        Ungathered::TooLarge => Miss::here(Failure::upstream_error()),
        Ungathered::NoMemory => Miss::here(no_memory()),
    })?;
    let names = Names::of_model(&route.model, &model.id);
    let voices = voice::clean_voices(&body, names);
    let voices = voices.map_err(|broken| broken_miss(route, &broken, &mut trial))?;
    trial.tell(CallOutcome::Served);
    Ok(voices)
}
