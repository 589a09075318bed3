//! Serves image calls.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use protocol::count::IMAGE_TOKENS;
use protocol::images::{self, Family, Operation, PriceGrade, Request, Rewriter};
use protocol::multipart::Form;
use protocol::native::{self, UnusableAnswer};
use protocol::{Dialect, Failure, Kind, Translator};
use store::KeyHead;
use upstream::{Endpoint, Protocol, UpstreamRequest};

use crate::billing::estimate::Estimate;
use crate::billing::metering::PictureMetering;
use crate::call::answer::Answer;
use crate::call::arrival::Arrival;
use crate::call::failed_call::FailedCall;
use crate::call::kind::{CallKind, Encoded, Prepared, StreamPolicy};
use crate::call::record::Record;
use crate::call::route_plan::RoutePlan;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;
use crate::ids;
use crate::memory_budget::MemoryShare;
use crate::settings::Settings;
use crate::text::capability_check::refuse_unpriced_tools;

/// An image request of an authenticated caller, with its body.
#[derive(Debug)]
pub struct ImagesCall {
    pub arrival: Arrival,
    pub operation: Operation,
    pub body: ImagesBody,
}

/// The two encodings of an image request.
#[derive(Debug)]
pub enum ImagesBody {
    Json(Bytes),
    /// A form, and the memory that is charged for its body.
    Form(Form, MemoryShare),
}

impl Engine {
    /// Serves an image call.
    pub async fn images(self: &Arc<Self>, call: ImagesCall) -> Result<Answer, FailedCall> {
        let ImagesCall {
            arrival,
            operation,
            body,
        } = call;
        let key = arrival.key.clone();
        self.run_call(arrival, move |engine, record| {
            prepare(engine, &key, operation, body, record)
        })
        .await
    }
}

fn prepare(
    engine: &Engine,
    key: &KeyHead,
    operation: Operation,
    body: ImagesBody,
    record: &mut Record,
) -> Result<Box<Prepared<Images>>, Failure> {
    if engine.settings.journal_bodies {
        match &body {
            ImagesBody::Json(body) => record.keep_bodies(body),
            ImagesBody::Form(form, _) => record.keep_bodies(form.for_journal().as_bytes()),
        }
    }
    let (request, share) = match body {
        ImagesBody::Json(body) => (images::read_json(operation, &body)?, None),
        ImagesBody::Form(form, share) => (images::read_form(form)?, Some(share)),
    };
    record.set_model(request.model.as_str(), request.stream);
    let catalog = engine.catalog();
    let model = catalog.find(&request.model, key)?;
    let family = family(model)?;
    request.check(&model.profile)?;
    if engine.settings.refuse_unpriced_tools {
        refuse_unpriced_tools(model, request.tools)?;
    }
    let plan = RoutePlan::new(model, |route| route.channel.speaks(Protocol::Images))?;
    let (prompt_tokens_max, tools) = (request.prompt_tokens_max, request.tools);
    let metering = PictureMetering {
        prompt_tokens: request.prompt_tokens,
        source_tokens: request.options.sources.saturating_mul(IMAGE_TOKENS),
        // The configuration requires this value for models that are billed by tokens.
        image_tokens_max: model.profile.image_tokens_max.unwrap_or(0),
        requested_grade: PriceGrade::requested(&request.options, family),
        images_held: request.images_max(family),
        has_text: false,
    };
    Ok(Box::new(Prepared {
        fallbacks: VecDeque::new(),
        of_named_model: None,
        kind: Images {
            request,
            key: key.clone(),
            family,
            model: Arc::clone(&model.id),
            _share: share,
        },
        estimate: Estimate::pictures(metering, prompt_tokens_max, tools, model),
        plan,
    }))
}

/// The family of a model, or the failure for a model that these endpoints do not serve.
fn family(model: &Model) -> Result<Family, Failure> {
    let not_here = |why: &str| {
        let message = format!("The model `{}` {why}.", model.id);
        Failure::model_not_supported(message)
    };
    if model.kind != Kind::Image {
        return Err(not_here("does not make pictures here"));
    }
    let family = Family::of(&model.profile);
    family.ok_or_else(|| not_here("makes pictures through `:generateContent`"))
}

struct Images {
    request: Request,
    key: KeyHead,
    family: Family,
    model: Arc<str>,
    /// The memory of the node that is charged for the files of a form.
    _share: Option<MemoryShare>,
}

impl CallKind for Images {
    fn is_streamed(&self) -> bool {
        self.request.stream
    }

    async fn encode_for(
        &mut self,
        engine: &Engine,
        _: &Model,
        route: &Route,
        funds: Funds,
    ) -> Result<Encoded, Failure> {
        if route.channel.spec().private_network {
            let links = self.request.fetchable_urls(engine.caller_urls_max())?;
            engine.check_caller_urls(&self.key, funds, links).await?;
        }
        // Random, so that it does not occur in any of the files.
        let boundary: String = ids::fresh("form-");
        let encoded = self.request.write(self.family, &route.model, &boundary)?;
        let endpoint = match encoded.operation {
            Operation::Generation => Endpoint::ImageGenerations,
            Operation::Edit => Endpoint::ImageEdits,
        };
        let mut call = UpstreamRequest::json(endpoint, Arc::clone(&route.model), encoded.pieces);
        if let Some(content_type) = encoded.content_type {
            let content_type = HeaderValue::try_from(content_type);
            call.content_type = content_type.map_err(|_| Failure::internal())?;
        }
        Ok(Encoded {
            call,
            dropped: encoded.dropped,
        })
    }

    fn translate_answer(
        &self,
        _: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer> {
        let created = clock::now().get() / 1000;
        self.request
            .rewrite(self.family, &answer, &self.model, created)
    }

    fn stream_translator(&self, _: &Model, _: Endpoint) -> Result<Translator, Failure> {
        let rewriter = Rewriter::new(&self.request, self.family, &self.model);
        Ok(Translator::Images(Box::new(rewriter)))
    }

    fn stream_policy(&self) -> StreamPolicy {
        StreamPolicy {
            keep_alive: Dialect::Chat.keep_alive(),
            aborts_on_failure: false,
        }
    }

    fn answer_bytes_max(&self, settings: &Settings) -> usize {
        settings.media_bytes_max
    }
}
