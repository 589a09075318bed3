//! Serves embeddings calls.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use protocol::embeddings::{self, Form, Request};
use protocol::native::{self, UnusableAnswer};
use protocol::{Dialect, Failure, Kind, Translator};
use store::KeyHead;
use upstream::{Channel, Endpoint, Protocol, UpstreamRequest};

use crate::billing::estimate::Estimate;
use crate::call::answer::Answer;
use crate::call::arrival::Arrival;
use crate::call::failed_call::FailedCall;
use crate::call::kind::{CallKind, Encoded, Prepared, StreamPolicy};
use crate::call::record::Record;
use crate::call::route_plan::RoutePlan;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::memory_budget::MemoryShare;
use crate::settings::Settings;

/// The model, for calls whose path names it: `:embedContent` or `:batchEmbedContents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingsPath {
    pub model: String,
    pub batch: bool,
}

/// An embeddings request of an authenticated caller, with its body.
#[derive(Debug)]
pub struct EmbeddingsCall {
    pub arrival: Arrival,
    /// The model from the path, if the path names one.
    pub named: Option<EmbeddingsPath>,
    pub body: Bytes,
}

impl Engine {
    /// Serves an embeddings call.
    pub async fn embeddings(self: &Arc<Self>, call: EmbeddingsCall) -> Result<Answer, FailedCall> {
        let arrival = call.arrival.clone();
        self.run_call(arrival, move |engine, record| {
            prepare(engine, &call, record)
        })
        .await
    }
}

fn prepare(
    engine: &Engine,
    call: &EmbeddingsCall,
    record: &mut Record,
) -> Result<Box<Prepared<Embeddings>>, Failure> {
    if engine.settings.journal_bodies {
        record.keep_bodies(&call.body);
    }
    let request = match &call.named {
        Some(named) => embeddings::read_named_request(&call.body, &named.model, named.batch)?,
        None => embeddings::read_request(&call.body)?,
    };
    record.set_model(request.model.as_str(), false);
    let catalog = engine.catalog();
    let model = catalog.find(&request.model, &call.arrival.key)?;
    if model.kind != Kind::Embedding {
        return Err(Failure::model_not_supported(format!(
            "The model `{}` does not make embeddings.",
            model.id
        )));
    }
    let memory = charge_conversion(engine, &call.arrival.key, model, &request)?;
    let plan = plan_routes(model, &request)?;
    let estimate = Estimate::input_only(&request.input, &model.profile);
    let kind = Embeddings {
        model: Arc::clone(&model.id),
        key: call.arrival.key.clone(),
        request,
        _memory: memory,
    };
    Ok(Box::new(Prepared {
        fallbacks: VecDeque::new(),
        of_named_model: None,
        kind,
        plan,
        estimate,
    }))
}

/// Charges the memory for the many small inputs of a request that may be written in another form.
fn charge_conversion(
    engine: &Engine,
    key: &KeyHead,
    model: &Model,
    request: &Request,
) -> Result<Option<MemoryShare>, Failure> {
    let is_converted = |route: &Arc<Route>| !sends_own_form(route, request.form);
    if !model.routes.iter().any(is_converted) {
        return Ok(None);
    }
    match request.conversion_memory() {
        Ok(weight) => engine
            .callers()
            .share_of(key)
            .large_bodies()
            .take_for_parts(weight),
        // Only a route that needs no conversion can take the request.
        Err(_) => Ok(None),
    }
}

/// Plans the routes that can express the request. If there is none, encoding for the first route fails with the reason.
fn plan_routes(model: &Arc<Model>, request: &Request) -> Result<RoutePlan, Failure> {
    let speaks = |route: &Route| spoken_by(&route.channel, request.form).is_some();
    if let [_] | [] = model.routes.as_slice() {
        return RoutePlan::new(model, speaks);
    }
    let routes = model.routes.iter().map(|route| &**route);
    let fit: Vec<&Route> = routes
        .filter(|route| speaks(route) && expresses(route, request))
        .collect();
    if fit.is_empty() {
        return RoutePlan::new(model, speaks);
    }
    RoutePlan::new(model, |route| fit.iter().any(|it| std::ptr::eq(*it, route)))
}

/// Whether a route can express the request. Some routes accept only texts, or only one input per call.
fn expresses(route: &Route, request: &Request) -> bool {
    if sends_own_form(route, request.form) {
        return true;
    }
    let preset = route.channel.spec().preset;
    let Ok(Some(encoded)) = encode(route, request) else {
        return false;
    };
    let inputs_max = preset.instances_max(&route.model);
    let is_too_long = |max| request.inputs().is_ok_and(|inputs| inputs > max);
    encoded.form != Form::Instances || !inputs_max.is_some_and(is_too_long)
}

/// Whether a route gets the request in the form in which the caller sent it.
fn sends_own_form(route: &Route, form: Form) -> bool {
    !route.channel.spec().preset.embeds_instances() && is_native(&route.channel, form)
}

/// Whether a channel speaks the caller's own request format.
fn is_native(channel: &Channel, form: Form) -> bool {
    let own = if form == Form::List {
        Protocol::Embeddings
    } else {
        Protocol::Generate
    };
    channel.speaks(own)
}

/// Encodes the request for a route. `None` if the channel has no embeddings protocol.
fn encode(route: &Route, request: &Request) -> Result<Option<embeddings::EncodedRequest>, Failure> {
    let preset = route.channel.spec().preset;
    Ok(Some(match spoken_by(&route.channel, request.form) {
        Some(Protocol::Embeddings) => request.write_list(&route.model)?,
        Some(_) if preset.embeds_instances() && preset.embeds_content(&route.model) => {
            request.write_hosted_content()?
        }
        Some(_) if preset.embeds_instances() => request.write_instances()?,
        Some(_) => request.write_contents(&route.model)?,
        None => return Ok(None),
    }))
}

/// The embeddings protocol to use for a channel: the caller's own if the channel speaks it.
fn spoken_by(channel: &Channel, form: Form) -> Option<Protocol> {
    let mut order = [Protocol::Embeddings, Protocol::Generate];
    if form != Form::List {
        order.reverse();
    }
    order.into_iter().find(|protocol| channel.speaks(*protocol))
}

struct Embeddings {
    request: Request,
    key: KeyHead,
    model: Arc<str>,
    /// The memory that is charged for the inputs.
    _memory: Option<MemoryShare>,
}

impl CallKind for Embeddings {
    fn is_streamed(&self) -> bool {
        false
    }

    async fn encode_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
        funds: Funds,
    ) -> Result<Encoded, Failure> {
        if route.channel.spec().private_network {
            let links = self.request.fetchable_urls(engine.caller_urls_max())?;
            engine.check_caller_urls(&self.key, funds, links).await?;
        }
        let encoded = encode(route, &self.request)?.ok_or_else(|| model.unreachable())?;
        let endpoint = match encoded.form {
            Form::List => Endpoint::Embeddings,
            Form::Content => Endpoint::EmbedContent { batch: false },
            Form::Contents => Endpoint::EmbedContent { batch: true },
            Form::Instances => Endpoint::EmbedInstances,
            Form::HostedContent => Endpoint::EmbedHostedContent,
        };
        Ok(Encoded {
            call: UpstreamRequest::json(endpoint, Arc::clone(&route.model), encoded.pieces),
            dropped: encoded.dropped,
        })
    }

    fn translate_answer(
        &self,
        upstream_endpoint: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer> {
        let form = match upstream_endpoint {
            Endpoint::EmbedContent { batch: false } => Form::Content,
            Endpoint::EmbedContent { batch: true } => Form::Contents,
            Endpoint::EmbedInstances => Form::Instances,
            Endpoint::EmbedHostedContent => Form::HostedContent,
            _ => Form::List,
        };
        self.request.translate(form, &answer, &self.model)
    }

    /// Embeddings do not stream.
    fn stream_translator(&self, _: &Model, _: Endpoint) -> Result<Translator, Failure> {
        Err(Failure::internal())
    }

    fn stream_policy(&self) -> StreamPolicy {
        StreamPolicy {
            keep_alive: Dialect::Chat.keep_alive(),
            aborts_on_failure: false,
        }
    }

    /// Answers may be larger than text answers: a request may have two thousand inputs.
    fn answer_bytes_max(&self, settings: &Settings) -> usize {
        settings.media_bytes_max
    }
}
