//! Handles embeddings: `/v1/embeddings`, and those of Generate Content, whose path names the model.

use engine::{Caller, EmbeddingsCall, EmbeddingsPath, FailedCall};
use http::request::Parts;
use hyper::body::Incoming;

use super::output::Output;
use crate::context::RequestContext;
use crate::request::{body, headers};

pub(super) async fn embeddings(
    context: &RequestContext,
    caller: &Caller,
    named: Option<EmbeddingsPath>,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::check_json_call(&head.headers)?;
    let limits = context
        .limits()
        .body(context.limits().body_embeddings_bytes);
    let account = context.memory_account(caller);
    let body = body::read(body, limits, account).await?;
    let call = EmbeddingsCall {
        arrival: context.arrival(caller),
        named,
        body,
    };
    context.engine().embeddings(call).await.map(Output::Answer)
}
