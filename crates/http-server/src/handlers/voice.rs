//! Handles voice over HTTP: speech, transcripts and voices.

use engine::{Caller, FailedCall, SpeechCall, TranscriptCall, VoiceForm, VoicesCall};
use http::request::Parts;
use hyper::body::Incoming;
use protocol::Failure;

use super::output::Output;
use crate::context::RequestContext;
use crate::request::{Query, body, headers};

/// `POST /v1/tts` and its alias for SDKs.
pub(super) async fn speech(
    context: &RequestContext,
    caller: &Caller,
    form: VoiceForm,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::check_json_call(&head.headers)?;
    let limits = context.limits().body(context.limits().body_tts_bytes);
    let account = context.memory_account(caller);
    let body = body::read(body, limits, account).await?;
    let call = SpeechCall {
        arrival: context.arrival(caller),
        form,
        body,
    };
    context.engine().speech(call).await.map(Output::Answer)
}

/// `POST /v1/stt` and its alias for SDKs. The limit of the body is the limit of the audio, plus room for the other
/// fields of the form.
pub(super) async fn transcript(
    context: &RequestContext,
    caller: &Caller,
    form: VoiceForm,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    const FIELDS_BYTES: usize = 1 << 20;
    headers::refuse_idempotency_key(&head.headers)?;
    if !headers::is_form(&head.headers) {
        let message = "This endpoint takes `multipart/form-data`.";
        return Err(Failure::unsupported_media_type(message).into());
    }
    let reader = headers::form_reader(&head.headers)?;
    let file_bytes_max = context.limits().body_stt_bytes;
    let limits = context
        .limits()
        .body(file_bytes_max.saturating_add(FIELDS_BYTES));
    let (account, media) = (context.memory_account(caller), context.engine().media());
    let read = body::read_spooled_form(body, reader, "file", limits, account, media);
    let (fields, upload, share) = read.await?;
    let call = TranscriptCall {
        arrival: context.arrival(caller),
        form,
        fields,
        upload,
        file_bytes_max: u64::try_from(file_bytes_max).unwrap_or(u64::MAX),
        share,
    };
    context.engine().transcript(call).await.map(Output::Answer)
}

/// `GET /v1/tts/voices`, or one voice.
pub(super) async fn voices(
    context: &RequestContext,
    caller: &Caller,
    voice: Option<String>,
    head: &Parts,
) -> Result<Output, FailedCall> {
    headers::refuse_idempotency_key(&head.headers)?;
    let query = Query::read(&head.uri)?;
    query.refuse_choices()?;
    let model = query.get("model")?;
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    let arrival = context.arrival(caller);
    context.engine().take_free_request(&arrival, caller)?;
    let call = VoicesCall {
        arrival,
        model: model.into_owned(),
        voice,
    };
    let voices = context.engine().voices(call).await?;
    Ok(Output::Document(voices.to_vec()))
}
