//! Handles image generations and edits. An edit is a form or JSON.

use engine::{Caller, FailedCall, ImagesBody, ImagesCall};
use http::request::Parts;
use hyper::body::Incoming;
use protocol::images::Operation as ImageOperation;

use super::output::Output;
use crate::context::RequestContext;
use crate::request::{body, headers};

pub(super) async fn images(
    context: &RequestContext,
    caller: &Caller,
    operation: ImageOperation,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::refuse_idempotency_key(&head.headers)?;
    let limits = context.limits().body(context.limits().body_image_bytes);
    let account = context.memory_account(caller);
    let is_form = operation == ImageOperation::Edit && headers::is_form(&head.headers);
    let body = if is_form {
        let reader = headers::form_reader(&head.headers)?;
        let (form, share) = body::read_form(body, reader, limits, account).await?;
        ImagesBody::Form(form, share)
    } else {
        headers::check_json_headers(&head.headers)?;
        ImagesBody::Json(body::read(body, limits, account).await?)
    };
    let call = ImagesCall {
        arrival: context.arrival(caller),
        operation,
        body,
    };
    context.engine().images(call).await.map(Output::Answer)
}
