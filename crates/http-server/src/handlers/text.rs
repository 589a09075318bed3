//! Handles text calls of the five dialects, and token counts of their requests.

use engine::{Caller, FailedCall, TextCall, TextPath, TokenCountCall, VideoCall, VideoEndpoint};
use http::request::Parts;
use hyper::body::Incoming;
use protocol::{Dialect, Failure};

use super::output::Output;
use crate::context::RequestContext;
use crate::request::{body, headers};

/// Runs a text call. `named` is the model and whether the call is streamed, for a dialect whose path says so.
pub(super) async fn text(
    context: &RequestContext,
    caller: &Caller,
    dialect: Dialect,
    named: Option<TextPath>,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::check_json_call(&head.headers)?;
    let extra = headers::forwarded(dialect, &head.headers);
    let limits = context.limits().body(context.limits().body_text_bytes);
    let account = context.memory_account(caller);
    let body = body::read(body, limits, account).await?;
    let call = TextCall {
        arrival: context.arrival(caller),
        dialect,
        named,
        body,
        extra,
    };
    context.engine().text(call).await.map(Output::Answer)
}

pub(super) async fn token_count(
    context: &RequestContext,
    caller: &Caller,
    dialect: Dialect,
    named: Option<String>,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::check_json_call(&head.headers)?;
    let extra = headers::forwarded(dialect, &head.headers);
    let limits = context.limits().body(context.limits().body_text_bytes);
    // Checked before the body is read, because a key above its limit must not keep the node busy with large bodies.
    let arrival = context.arrival(caller);
    context.engine().take_free_request(&arrival, caller)?;
    let account = context.memory_account(caller);
    let body = body::read(body, limits, account).await?;
    let call = TokenCountCall {
        arrival,
        dialect,
        named,
        body,
        extra,
    };
    let counted = context.engine().count_tokens(call).await?;
    Ok(Output::Document(counted))
}

/// Runs an interaction, which is either a text call or the creation of a video task. Only the body shows which.
pub(super) async fn interactions(
    context: &RequestContext,
    caller: &Caller,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::check_json_call(&head.headers)?;
    let extra = headers::forwarded(Dialect::Interactions, &head.headers);
    let (engine, limits) = (context.engine(), context.limits());
    let bytes_max = limits.body_text_bytes.max(limits.body_video_bytes);
    let account = context.memory_account(caller);
    let body = body::read(body, limits.body(bytes_max), account).await?;
    let is_video = engine.is_video_interaction(&body);
    let bytes_max = if is_video {
        limits.body_video_bytes
    } else {
        limits.body_text_bytes
    };
    if body.len() > bytes_max {
        let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        return Err(Failure::request_too_large(bytes_max).into());
    }
    let arrival = context.arrival(caller);
    let answer = if is_video {
        let ask = VideoEndpoint::Omni;
        let call = VideoCall { arrival, ask, body };
        engine.create_video(call).await
    } else {
        let call = TextCall {
            arrival,
            dialect: Dialect::Interactions,
            named: None,
            body,
            extra,
        };
        engine.text(call).await
    };
    answer.map(Output::Answer)
}
