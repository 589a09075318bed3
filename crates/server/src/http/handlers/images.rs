//! Images: generations and edits. An edit comes as a form or as JSON.

use engine::{Caller, FailedCall, ImagesBody, ImagesCall};
use http::Request;
use hyper::body::Incoming;
use protocol::images::Asked as ImageOperation;

use super::output::Output;
use crate::http::context::RequestContext;
use crate::http::request::{body, headers};

pub(super) async fn images(
    context: &RequestContext,
    caller: &Caller,
    operation: ImageOperation,
    request: Request<Incoming>,
) -> Result<Output, FailedCall> {
    headers::refuse_idempotency_key(request.headers())?;
    let limits = context.limits().body(context.limits().body_image_bytes);
    let account = context.memory_account(caller);
    let is_form = operation == ImageOperation::Edit && headers::is_form(request.headers());
    let body = if is_form {
        let reader = headers::form_reader(request.headers())?;
        let (form, share) = body::read_form(request.into_body(), reader, limits, account).await?;
        ImagesBody::Form(form, share)
    } else {
        headers::check_json_headers(request.headers())?;
        ImagesBody::Json(body::read(request.into_body(), limits, account).await?)
    };
    let call = ImagesCall {
        arrival: context.arrival(caller),
        asked: operation,
        body,
    };
    context.engine().images(call).await.map(Output::Answer)
}
