//! A text request: reads it once, encodes it for each route that is tried, and translates the answer back.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use protocol::canon::{self, AnswerContext, Dropped, ImageSource, Target};
use protocol::convert::{self, Transcoder};
use protocol::generate;
use protocol::images::PriceGrade;
use protocol::messages::converse;
use protocol::native::{self, Head, Identity, Rewriter, UnusableAnswer};
use protocol::{ByteQueue, Dialect, Failure, Translator};
use store::KeyHead;
use upstream::{Endpoint, UpstreamRequest, hash_bytes};

use crate::call::arrival::Arrival;
use crate::call::kind::{CallKind, Encoded, StreamPolicy};
use crate::call::yield_to_ready::yield_to_ready;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;
use crate::ids;
use crate::memory_budget::MemoryShare;
use crate::settings::Settings;
use crate::text::capability_check::refuse_unpriced_tools;

/// How many bytes of the system prompt, and of the first messages, are hashed to choose the preferred route of a
/// conversation.
const PROMPT_KEY_BYTES: usize = 4 << 10;

/// The model of a call and whether it is streamed, if the path says so (Generate Content).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPath {
    pub model: String,
    pub stream: bool,
}

/// A text request of an authenticated caller, with its body.
#[derive(Debug)]
pub struct TextCall {
    pub arrival: Arrival,
    pub dialect: Dialect,
    /// The model and whether the call is streamed, if the path says so.
    pub named: Option<TextPath>,
    pub body: Bytes,
    /// Headers for an upstream that speaks the caller's own dialect.
    pub extra: HeaderMap,
}

impl TextCall {
    /// Reads the head of the request and refuses what its endpoint refuses.
    pub(super) fn read_head(&self) -> Result<Head, Failure> {
        match &self.named {
            Some(TextPath { model, stream }) => native::read_named_head(&self.body, model, *stream),
            None => native::read_head(self.dialect, &self.body),
        }
    }

    /// The grade of the requested pictures. Only Generate Content can request them.
    pub(super) fn picture_grade(&self) -> Result<PriceGrade, Failure> {
        match self.dialect {
            Dialect::Generate => generate::requested_grade(&self.body),
            _ => Ok(PriceGrade::default()),
        }
    }
}

/// A request that has been read and accepted, and the identity of its answer.
#[derive(Debug)]
pub(crate) struct TextRequest {
    dialect: Dialect,
    head: Head,
    body: Bytes,
    extra: HeaderMap,
    identity: Identity,
    key: KeyHead,
    refuses_unpriced_tools: bool,
    /// Whether the request is converted to the common form for the current route.
    is_converted: bool,
    /// The common form. It is built when the first route needs it.
    common: Option<Arc<canon::Request>>,
    /// The request with its pictures inside, for upstreams that speak the caller's dialect but fetch no URLs. It is
    /// built when the first route needs it.
    inlined: Option<(Bytes, Head)>,
    /// Whether the current route gets `inlined`.
    sends_inlined: bool,
    /// The key's memory for the rewriting of the request: for many small parts, and for fetched pictures.
    memory: Vec<MemoryShare>,
}

impl TextRequest {
    pub(super) fn new(call: &TextCall, head: Head, model: &Model, settings: &Settings) -> Self {
        Self {
            dialect: call.dialect,
            head,
            body: call.body.clone(),
            extra: call.extra.clone(),
            identity: Identity {
                id: ids::fresh(id_prefix(call.dialect)),
                model: Arc::clone(&model.id),
                created: clock::now().get() / 1000,
            },
            key: call.arrival.key.clone(),
            refuses_unpriced_tools: settings.refuse_unpriced_tools,
            is_converted: false,
            common: None,
            inlined: None,
            sends_inlined: false,
            memory: Vec::new(),
        }
    }

    /// Converts the request to the common form for a route of another dialect, and fetches the pictures that the
    /// upstream cannot fetch. URLs that an upstream inside a private network will fetch are checked first.
    async fn prepare_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
        endpoint: Endpoint,
        funds: Funds,
    ) -> Result<(), Failure> {
        let dialect = endpoint.dialect();
        let is_converse = matches!(endpoint, Endpoint::Converse { .. });
        let is_private = route.channel.spec().private_network;
        // Converse has no member for picture URLs, so its pictures are fetched into the common form.
        self.is_converted = dialect != self.dialect
            || is_converse && !native::fetchable_urls(self.dialect, &self.body, 0)?.is_empty();
        if !self.is_converted {
            if is_converse && self.memory.is_empty() {
                self.charge_weight(engine)?;
            } else if !is_converse {
                self.inline_pictures(engine, model, route, funds).await?;
            }
            if is_private && !is_converse {
                let (body, _) = self.native_request();
                let links = native::fetchable_urls(self.dialect, body, engine.caller_urls_max())?;
                engine.check_caller_urls(&self.key, funds, links).await?;
            }
            return Ok(());
        }
        let mut common = match self.common.take() {
            Some(common) => common,
            None => Arc::new(self.read_common(engine)?),
        };
        let request = Arc::make_mut(&mut common);
        let takes_url = |url: &str| convert::takes_image_url(dialect, &model.profile, url);
        let must_be_inline = |url: &str| is_converse || !takes_url(url);
        let shares = engine
            .inline_pictures(&self.key, funds, request, must_be_inline)
            .await?;
        self.memory.extend(shares);
        if is_private {
            let linked = request
                .images_mut()
                .filter_map(|(_, image)| match &image.source {
                    ImageSource::Url(url) => Some(url.clone()),
                    ImageSource::Inline { .. } => None,
                });
            let links = linked.collect();
            engine.check_caller_urls(&self.key, funds, links).await?;
        }
        self.common = Some(common);
        Ok(())
    }

    /// Fetches the pictures of a request that is sent in the caller's dialect, if the model's upstream fetches none.
    /// URLs of the upstream's own files are not fetched, because only the upstream can read them.
    async fn inline_pictures(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
        funds: Funds,
    ) -> Result<(), Failure> {
        self.sends_inlined = false;
        if model.profile.image_urls != Some(false) {
            return Ok(());
        }
        if self.inlined.is_none() {
            let (dialect, body, head) = (self.dialect, &self.body, &self.head);
            let is_foreign = |url: &str| !route.channel.leads_to(url);
            let inlined = engine
                .inline_pictures_of_body(&self.key, funds, dialect, body, head, is_foreign)
                .await?;
            if let Some(inlined) = inlined {
                self.memory.extend(inlined.shares);
                self.inlined = Some((inlined.body, inlined.head));
            }
        }
        self.sends_inlined = self.inlined.is_some();
        Ok(())
    }

    /// The body for an upstream that speaks the caller's dialect, and its head.
    fn native_request(&self) -> (&Bytes, &Head) {
        match &self.inlined {
            Some((body, head)) if self.sends_inlined => (body, head),
            _ => (&self.body, &self.head),
        }
    }

    /// Reads the request into the common form. The memory for its many small parts is charged first.
    fn read_common(&mut self, engine: &Engine) -> Result<canon::Request, Failure> {
        self.charge_weight(engine)?;
        convert::read_request(self.dialect, &self.body, self.head.stream)
    }

    /// Charges the memory for the many small parts that exist while a request is rewritten.
    fn charge_weight(&mut self, engine: &Engine) -> Result<(), Failure> {
        let weight = convert::estimate_memory(&self.body)?;
        let share = engine
            .callers()
            .share_of(&self.key)
            .large_bodies()
            .take_for_parts(weight)?;
        self.memory.extend(share);
        Ok(())
    }

    fn encode_native(
        &self,
        model: &Model,
        route: &Route,
        endpoint: Endpoint,
    ) -> Result<Encoded, Failure> {
        if self.refuses_unpriced_tools {
            refuse_unpriced_tools(model, self.head.tools)?;
        }
        let mut out = ByteQueue::new();
        let mut dropped = Dropped::new(self.dialect);
        let model = &route.model;
        let (body, head) = self.native_request();
        if self.asks_for_usage(route) {
            native::write_request_to(body, head, model, &mut out);
        } else {
            let without = native::without_stream_options(body, head, &mut dropped);
            let (body, head) = without?;
            native::write_request_to(&body, &head, model, &mut out);
        }
        let (body, extra) = if let Endpoint::Converse { .. } = endpoint {
            let body = out.into_pieces().concat();
            let betas = upstream::betas(&self.extra);
            let body = converse::rewrite_request(&body, &betas, &mut dropped)?;
            (vec![Bytes::from(body)], HeaderMap::new())
        } else {
            (out.into_pieces(), self.extra.clone())
        };
        Ok(Encoded {
            call: UpstreamRequest {
                extra,
                ..UpstreamRequest::json(endpoint, Arc::clone(&route.model), body)
            },
            dropped: dropped.header(),
        })
    }

    /// Whether the upstream of a route can be asked for the usage of a stream.
    fn asks_for_usage(&self, route: &Route) -> bool {
        self.dialect != Dialect::Chat || route.channel.spec().preset.takes_stream_options()
    }

    fn encode_converted(
        &self,
        model: &Model,
        route: &Route,
        endpoint: Endpoint,
    ) -> Result<Encoded, Failure> {
        let target = Target {
            upstream_model: &route.model,
            public_model: &model.id,
            profile: &model.profile,
            output_limit: model
                .profile
                .output_limit
                .unwrap_or_else(|| route.channel.spec().preset.output_limit()),
            asks_for_usage: route.channel.spec().preset.takes_stream_options(),
        };
        let mut dropped = Dropped::new(self.dialect);
        let common = self.common()?;
        let body = match endpoint {
            Endpoint::Converse { .. } => converse::write_request(common, &target, &mut dropped)?,
            _ => convert::write_request(endpoint.dialect(), common, &target, &mut dropped)?,
        };
        let body = vec![Bytes::from(body)];
        Ok(Encoded {
            call: UpstreamRequest::json(endpoint, Arc::clone(&route.model), body),
            dropped: dropped.header(),
        })
    }

    fn answer_context(&self, request: Arc<canon::Request>) -> AnswerContext {
        AnswerContext {
            id: self.identity.id.clone(),
            model: Arc::clone(&self.identity.model),
            created: self.identity.created,
            input_tokens: self.head.input.tokens,
            request,
        }
    }

    fn common(&self) -> Result<&Arc<canon::Request>, Failure> {
        self.common.as_ref().ok_or_else(Failure::internal)
    }
}

impl CallKind for TextRequest {
    fn is_streamed(&self) -> bool {
        self.head.stream
    }

    async fn encode_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
        funds: Funds,
    ) -> Result<Encoded, Failure> {
        let dialect = route.channel.text_dialect_for(self.dialect, route.dialect);
        let dialect = dialect.ok_or_else(|| model.unreachable())?;
        let endpoint = route.channel.text_endpoint(dialect, self.head.stream);
        self.prepare_for(engine, model, route, endpoint, funds)
            .await?;
        yield_to_ready().await;
        if self.is_converted {
            self.encode_converted(model, route, endpoint)
        } else {
            self.encode_native(model, route, endpoint)
        }
    }

    fn translate_answer(
        &self,
        endpoint: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer> {
        let dialect = endpoint.dialect();
        let answer = match endpoint {
            Endpoint::Converse { .. } => Bytes::from(converse::read_answer(&answer)?),
            _ => answer,
        };
        if !self.is_converted {
            return native::rewrite_answer(dialect, answer, &self.identity);
        }
        let common = self.common().map_err(UnusableAnswer::Failure)?;
        let context = self.answer_context(Arc::clone(common));
        convert::convert_answer(dialect, self.dialect, &answer, &context)
    }

    fn stream_translator(&self, model: &Model, endpoint: Endpoint) -> Result<Translator, Failure> {
        let dialect = endpoint.dialect();
        if !self.is_converted {
            let identity = self.identity.clone();
            let rewriter = Rewriter::new(dialect, identity, self.head.include_usage);
            let rewriter = rewriter.counting_usage(self.head.input.tokens);
            return Ok(Translator::from(rewriter));
        }
        // The stream may last long, so it keeps only the members that the answer repeats, not the conversation.
        let repeated = Arc::new(self.common()?.without_conversation());
        let mut transcoder = Transcoder::new(dialect, self.dialect, self.answer_context(repeated));
        // Calls of tools without a price need not be counted.
        if model.price.prices_tools() {
            transcoder = transcoder.watching_tools();
        }
        Ok(Translator::Convert(Box::new(transcoder)))
    }

    fn prompt_key(&self) -> Option<u64> {
        let start = native::prompt_start(self.dialect, &self.body)?;
        // Long prompts differ near their beginning or in length, so hashing a few kilobytes is enough.
        let hash = |seed: u64, bytes: &[u8]| {
            let seed = hash_bytes(seed, &bytes.len().to_le_bytes());
            hash_bytes(seed, bytes.get(..PROMPT_KEY_BYTES).unwrap_or(bytes))
        };
        let model = hash_bytes(0, self.identity.model.as_bytes());
        Some(hash(hash(model, start.system), start.opening))
    }

    fn stream_policy(&self) -> StreamPolicy {
        StreamPolicy {
            keep_alive: self.dialect.keep_alive(),
            aborts_on_failure: self.dialect == Dialect::Generate,
        }
    }
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
