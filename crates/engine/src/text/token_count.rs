//! Counts the tokens of a text request, free of charge: an upstream counts if it can, otherwise the gateway does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use protocol::native::{self, CountRequest, TokenCount};
use protocol::{Dialect, Failure};
use upstream::{BreakerState, Endpoint, UpstreamRequest};

use crate::call::arrival::Arrival;
use crate::call::attempt::AttemptLog as _;
use crate::call::open_record::OpenRecord;
use crate::call::progress::Progress;
use crate::call::record::Record;
use crate::call::route_plan::RoutePlan;
use crate::caller_urls::Funds;
use crate::callers::limits::Caller;
use crate::catalog::Route;
use crate::clock;
use crate::engine::Engine;
use crate::text::capability_check;

/// The time limit of the upstream. It is short, because our own count is available at once.
const COUNTED_WITHIN: Duration = Duration::from_secs(10);
/// The maximum size of a counting endpoint's answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A request for the token count of a text request.
#[derive(Debug)]
pub struct TokenCountCall {
    pub arrival: Arrival,
    pub dialect: Dialect,
    /// The model, if the path names one.
    pub named: Option<String>,
    pub body: Bytes,
    /// Headers for an upstream that speaks the caller's own dialect.
    pub extra: HeaderMap,
}

impl Engine {
    /// Takes one of the free requests that a key may make per minute, or refuses it.
    pub fn take_free_request(&self, arrival: &Arrival, caller: &Caller) -> Result<(), Failure> {
        let taken = self.callers().take_free_request(caller, clock::now());
        taken.inspect_err(|failure| self.journal(Record::begin(arrival).refused(failure)))
    }

    /// Counts the tokens of a request. Nothing is held or charged, so the wallet does not matter.
    pub async fn count_tokens(self: &Arc<Self>, call: TokenCountCall) -> Result<Vec<u8>, Failure> {
        let mut record = OpenRecord::begin(Arc::new(Progress::new(self)), &call.arrival);
        let counted = count(self, &call, &mut record).await;
        record.end_free(&counted);
        counted
    }
}

async fn count(
    engine: &Engine,
    call: &TokenCountCall,
    record: &mut OpenRecord,
) -> Result<Vec<u8>, Failure> {
    if engine.settings.journal_bodies {
        record.update_record(|record| record.keep_request(&call.body));
    }
    let counted = native::read_count_request(call.dialect, &call.body, call.named.as_deref())?;
    let name = counted.head.model.as_str();
    record.update_record(|record| record.set_model(name, false));
    let catalog = engine.catalog();
    let model = catalog.find(name, &call.arrival.key)?;
    capability_check::check(model, call.dialect, &counted.head)?;
    let upstream_dialect =
        |route: &Route| route.channel.text_dialect_for(call.dialect, route.dialect);
    // A request that no route can serve, or that is refused for lack of a price, gets no count either.
    let plan = RoutePlan::new(model, |route| upstream_dialect(route).is_some())?;
    capability_check::refuse_unpriced_long_cache(model, &counted.head, upstream_dialect)?;
    // A route of another dialect would not get the tools.
    let passes_tools = |route: &Arc<Route>| upstream_dialect(route) == Some(call.dialect);
    if engine.settings.refuse_unpriced_tools && plan.first().is_some_and(passes_tools) {
        capability_check::refuse_unpriced_tools(model, counted.head.tools)?;
    }
    let counts = |route: &Route| {
        upstream_dialect(route) == Some(call.dialect)
            && route.channel.counts_tokens(call.dialect)
            && route.channel.state(Instant::now) == BreakerState::Closed
    };
    let plan = RoutePlan::new(model, counts).ok();
    if let Some(route) = plan.as_ref().and_then(RoutePlan::first) {
        if route.channel.spec().private_network {
            let links =
                native::fetchable_urls(call.dialect, &counted.body, engine.caller_urls_max())?;
            engine
                .check_caller_urls(&call.arrival.key, Funds::Unknown, links)
                .await?;
        }
        record.start_attempt(route, None);
        match ask(call, &counted, route).await {
            Ok(count) => {
                record.update_record(Record::upstream_answered);
                return Ok(count.write(call.dialect));
            }
            Err(failure) => record.attempt_failed(&failure),
        }
    }
    let own = TokenCount::new(counted.head.input.tokens);
    Ok(own.write(call.dialect))
}

/// Asks the upstream. The outcome is not reported to the breaker, because counting says nothing about how the upstream
/// generates. Failures go to the journal and not to the log, which callers could otherwise flood.
async fn ask(
    call: &TokenCountCall,
    counted: &CountRequest,
    route: &Route,
) -> Result<TokenCount, Failure> {
    let body = native::write_count_request(call.dialect, counted, &route.model)?;
    let endpoint = Endpoint::TokenCount(call.dialect);
    let outgoing = UpstreamRequest {
        extra: call.extra.clone(),
        ..UpstreamRequest::json(endpoint, Arc::clone(&route.model), vec![body])
    };
    let exchange = async {
        let incoming = route.channel.send_unreported(&outgoing).await?;
        let status = incoming.status;
        let body = incoming.body.collect(ANSWER_BYTES_MAX).await?;
        Ok::<_, upstream::CallError>((status, body))
    };
    match tokio::time::timeout(COUNTED_WITHIN, exchange).await {
        Ok(Ok((200, body))) => TokenCount::read(call.dialect, &body)
            .ok_or_else(|| Failure::upstream_error().because("the count could not be read")),
        Ok(Ok((status, _))) => Err(Failure::upstream_error().because(format!("status {status}"))),
        Ok(Err(error)) => Err(Failure::upstream_error().because(error.to_string())),
        Err(_) => Err(Failure::upstream_timeout()),
    }
}
