//! Serves a request: finds its endpoint, runs the handler, and writes the answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use engine::ids;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use protocol::Failure;

use super::connection::Connection;
use super::context::RequestContext;
use super::endpoint::Target;
use super::handlers::{Output, dispatch};
use super::panics::catch_panic;
use super::response::{self, Grant, ResponseBody};

/// Answers one request. A refused request and a panic are answered with an error envelope.
///
/// hyper copies this future for every request, so it is kept small. It is not an `async fn`, which would store its
/// arguments twice, and the handlers borrow the head of the request instead of owning it.
pub(crate) fn serve(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> {
    let (mut head, body) = request.into_parts();
    let listener = &connection.listener;
    let is_head = head.method == Method::HEAD;
    let grant = listener.cors.as_ref();
    let grant = grant.map(|cors| cors.grant(&head.method, &head.headers));
    let is_preflight = grant.as_ref().is_some_and(Grant::is_preflight);
    let target = Target::find(&head.method, head.uri.path(), listener.limits.sdk_aliases);
    async move {
        let context = match begin(connection, &target, &head.headers, is_preflight) {
            Ok(context) => context,
            Err(refusal) => return Ok(response::finish(refusal, grant, is_head)),
        };
        // The block ends the borrow of the context before it is moved into the answer.
        let handled = {
            let handler = pin!(dispatch(&context, target, &mut head, body));
            catch_panic(handler).await
        };
        let response = match handled {
            Ok(Ok(output)) => answer(context, output),
            Ok(Err(failed)) => response::failed_call(context, &failed),
            Err(_) => {
                context.report_panic("a request");
                response::failure(context, &Failure::internal())
            }
        };
        Ok(response::finish(response, grant, is_head))
    }
}

/// Registers a request. Returns an answer at once if the request is refused for its framing or because the node is
/// full, or if it is a CORS preflight.
#[expect(clippy::result_large_err, reason = "moved once, into the answer")]
fn begin(
    connection: Arc<Connection>,
    target: &Target,
    headers: &HeaderMap,
    is_preflight: bool,
) -> Result<Box<RequestContext>, Response<ResponseBody>> {
    // Only calls need a slot, so that a full node still shows balances and models.
    let call_slot = target
        .endpoint
        .is_call()
        .then(|| connection.listener.engine.enter())
        .transpose();
    connection.tally.arrived();
    let (call_slot, node_is_full) = match call_slot {
        Ok(slot) => (slot, None),
        Err(failure) => (None, Some(failure)),
    };
    let context = Box::new(RequestContext {
        request_id: ids::fresh_at("req_", engine::clock::now()),
        family: target.family,
        endpoint: target.endpoint.template(),
        arrived: Instant::now(),
        traceparent: connection.traceparent(headers),
        trace: OnceLock::new(),
        caller: OnceLock::new(),
        call_slot,
        _serving: connection.timers.begin_request(),
        connection,
    });
    if let Some(refused) = context.connection.refused.next() {
        let failure = Failure::invalid(refused.message());
        return Err(response::failure_and_close(context, &failure));
    }
    if let Some(failure) = node_is_full {
        return Err(response::failure(context, &failure));
    }
    if is_preflight {
        return Err(response::no_content(context));
    }
    Ok(context)
}

fn answer(context: Box<RequestContext>, output: Output) -> Response<ResponseBody> {
    match output {
        Output::Document(document) => response::json(context, document),
        Output::Answer(answer) => response::answer(context, answer),
        Output::Media(reply) => response::media(context, reply),
        Output::File(file) => response::file(context, file),
        Output::WebSocket(upgrade) => {
            let response = response::switching_protocols(&context, &upgrade);
            let connection = Arc::clone(&context.connection);
            connection.listener.sessions.spawn(upgrade.run(context));
            response
        }
    }
}
