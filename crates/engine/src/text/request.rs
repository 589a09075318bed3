//! What a caller asks, put into the words of whichever route is tried.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use ledger::PriceCard;
use protocol::canon::{self, Dropped, Echo, ImageSource, Target};
use protocol::convert::{self, Transcoder};
use protocol::generate;
use protocol::images::Grade;
use protocol::native::{self, Head, Identity, Rewriter};
use protocol::{ByteQueue, Dialect, Failure, Tool, Tools, Translator};
use upstream::{Endpoint, UpstreamRequest};

use crate::call::collect_body::FREE_BYTES;
use crate::call::kind::Encoded;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::{Engine, Settings};
use crate::memory_budget::MemoryShare;
use crate::text::call::{TextCall, TextPath};

/// A request that was read and not refused.
#[derive(Debug)]
pub(crate) struct TextRequest {
    pub(crate) dialect: Dialect,
    pub(crate) head: Head,
    body: Bytes,
    extra: HeaderMap,
    refuses_unpriced_tools: bool,
    /// The common form, made when the first route needs it.
    common: Option<Arc<canon::Request>>,
    /// What it takes of the node's memory beside the body: small parts in great number, and
    /// pictures that were fetched into it.
    memory: Vec<MemoryShare>,
}

impl TextRequest {
    /// Reads the request and refuses what its endpoint refuses.
    pub(crate) fn read(call: &TextCall, settings: &Settings) -> Result<Self, Failure> {
        let head = match &call.named {
            Some(TextPath { model, stream }) => {
                native::read_named_head(&call.body, model, *stream)?
            }
            None => native::read_head(call.dialect, &call.body)?,
        };
        Ok(Self {
            dialect: call.dialect,
            head,
            body: call.body.clone(),
            extra: call.extra.clone(),
            refuses_unpriced_tools: settings.refuse_unpriced_tools,
            common: None,
            memory: Vec::new(),
        })
    }

    /// Reads the request into the common form for a route of another dialect, and fetches the
    /// pictures that its upstream cannot fetch. What an upstream inside a private network is to
    /// fetch is checked here first.
    pub(crate) async fn prepare_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
    ) -> Result<(), Failure> {
        let spoken = self.spoken(model, route)?;
        let is_private = route.channel.spec().private_network;
        if spoken == self.dialect {
            if is_private {
                let links = native::links(self.dialect, &self.body)?;
                engine.caller_urls.check(links).await?;
            }
            return Ok(());
        }
        let mut common = match self.common.take() {
            Some(common) => common,
            None => Arc::new(self.read_common(engine)?),
        };
        let request = Arc::make_mut(&mut common);
        let must_be_inline = |url: &str| !convert::takes_image_url(spoken, &model.profile, url);
        let shares = engine.caller_urls.inline(request, must_be_inline).await?;
        self.memory.extend(shares);
        if is_private {
            let linked = request
                .images_mut()
                .filter_map(|(_, image)| match &image.source {
                    ImageSource::Url(url) => Some(url.clone()),
                    ImageSource::Inline { .. } => None,
                });
            let links = linked.collect();
            engine.caller_urls.check(links).await?;
        }
        self.common = Some(common);
        Ok(())
    }

    /// Takes the request apart, once its many small parts are charged to the node.
    fn read_common(&mut self, engine: &Engine) -> Result<canon::Request, Failure> {
        let weight = convert::weigh_request(&self.body)?;
        if weight > FREE_BYTES {
            let share = engine.budget().take(weight).ok_or_else(no_memory)?;
            self.memory.push(share);
        }
        convert::read_request(self.dialect, &self.body, self.head.stream)
    }

    /// The grade of the pictures that are asked for. Only Generate Content can ask for them.
    pub(crate) fn picture_grade(&self) -> Result<Grade, Failure> {
        match self.dialect {
            Dialect::Generate => generate::asked_grade(&self.body),
            _ => Ok(Grade::default()),
        }
    }

    fn spoken(&self, model: &Model, route: &Route) -> Result<Dialect, Failure> {
        let dialect = route.channel.text_dialect_for(self.dialect, route.dialect);
        dialect.ok_or_else(|| unreachable_model(model))
    }

    /// The request as this route takes it, which has been provided for.
    pub(crate) fn encode_for(&self, model: &Model, route: &Route) -> Result<Encoded, Failure> {
        let dialect = self.spoken(model, route)?;
        let endpoint = Endpoint::Text {
            dialect,
            stream: self.head.stream,
        };
        if dialect == self.dialect {
            if self.refuses_unpriced_tools {
                priced_tools(model, self.head.tools)?;
            }
            let mut out = ByteQueue::new();
            native::write_request_to(dialect, &self.body, &self.head, &route.model, &mut out);
            return Ok(Encoded {
                call: UpstreamRequest {
                    extra: self.extra.clone(),
                    ..UpstreamRequest::json(endpoint, Arc::clone(&route.model), out.into_pieces())
                },
                dropped: None,
            });
        }
        let target = Target {
            upstream_model: &route.model,
            public_model: &model.id,
            profile: &model.profile,
            output_limit: model
                .profile
                .output_limit
                .unwrap_or_else(|| route.channel.spec().preset.output_limit()),
        };
        let mut dropped = Dropped::new(self.dialect);
        let body = convert::write_request(dialect, self.common()?, &target, &mut dropped)?;
        let body = vec![Bytes::from(body)];
        Ok(Encoded {
            call: UpstreamRequest::json(endpoint, Arc::clone(&route.model), body),
            dropped: dropped.header(),
        })
    }

    /// What turns the route's stream into the caller's.
    pub(crate) fn stream_translator(
        &self,
        spoken: Dialect,
        identity: &Identity,
        price: &PriceCard,
    ) -> Result<Translator, Failure> {
        if spoken == self.dialect {
            let rewriter = Rewriter::new(spoken, identity.clone(), self.head.include_usage);
            return Ok(Translator::Native(Box::new(rewriter)));
        }
        // A stream may last, and so would the conversation that it keeps.
        let repeated = Arc::new(self.common()?.without_conversation());
        let echo = self.echo(identity, repeated);
        let mut transcoder = Transcoder::new(spoken, self.dialect, echo);
        // What has no price need not be counted.
        if price.prices_tools() {
            transcoder = transcoder.watching_tools();
        }
        Ok(Translator::Convert(Box::new(transcoder)))
    }

    /// The caller's form of a whole answer.
    pub(crate) fn translate_answer(
        &self,
        spoken: Dialect,
        identity: &Identity,
        answer: Bytes,
    ) -> Result<Result<native::Answer, native::Broken>, Failure> {
        if spoken == self.dialect {
            return Ok(native::rewrite_answer(spoken, answer, identity));
        }
        let echo = self.echo(identity, Arc::clone(self.common()?));
        Ok(convert::convert_answer(
            spoken,
            self.dialect,
            &answer,
            &echo,
        ))
    }

    fn echo(&self, identity: &Identity, request: Arc<canon::Request>) -> Echo {
        Echo {
            id: identity.id.clone(),
            model: Arc::clone(&identity.model),
            created: clock::now().get() / 1000,
            input_tokens: self.head.input.tokens,
            request,
        }
    }

    fn common(&self) -> Result<&Arc<canon::Request>, Failure> {
        self.common.as_ref().ok_or_else(Failure::internal)
    }
}

/// Refuses built-in tools that the model has no price for; other dialects leave them out anyway.
pub(crate) fn priced_tools(model: &Model, offered: Tools) -> Result<(), Failure> {
    let unpriced = |tool: &Tool| !model.price.prices_tool(tool.as_str());
    match offered.iter().find(unpriced) {
        None => Ok(()),
        Some(tool) => Err(Failure::unsupported_parameter(
            "tools",
            format!(
                "The built-in tool `{}` of the model `{}` is not offered here.",
                tool.as_str(),
                model.id
            ),
        )),
    }
}

fn no_memory() -> Failure {
    Failure::unavailable("The service has no memory left for this request.").retry_after(1)
}

/// No route of the model can be spoken to.
pub(crate) fn unreachable_model(model: &Model) -> Failure {
    Failure::model_not_supported(format!(
        "The model `{}` cannot be reached through this endpoint.",
        model.id
    ))
}
