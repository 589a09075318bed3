//! Voice over HTTP: speech, transcripts and voices.

use engine::{Caller, FailedCall, SpeechCall, TranscriptCall, VoiceForm, VoicesCall};
use http::Request;
use hyper::body::Incoming;
use protocol::Failure;

use crate::http::request::body;
use crate::http::request::query::Query;
use crate::http::response::reply::Visit;
use crate::http::service::{Served, Shared, bounds, payer, refuse_idempotency_key};

/// `POST /v1/tts` and its other name.
pub(crate) async fn speech(
    shared: &Shared,
    visit: &Visit,
    form: VoiceForm,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    body::check_json_headers(request.headers())?;
    let bounds = bounds(shared, shared.limits.body_tts_bytes);
    let payer = payer(shared, caller);
    let body = body::read(request.into_body(), bounds, payer).await?;
    let call = SpeechCall {
        arrival: visit.arrival(caller),
        form,
        body,
    };
    shared.engine.speech(call).await.map(Served::Answer)
}

/// `POST /v1/stt` and its other name. Beside the audio a form has room for its fields.
pub(crate) async fn transcript(
    shared: &Shared,
    visit: &Visit,
    form: VoiceForm,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Served, FailedCall> {
    const FIELDS_BYTES: usize = 1 << 20;
    refuse_idempotency_key(request.headers())?;
    if !body::is_form(request.headers()) {
        let message = "This endpoint takes `multipart/form-data`.";
        return Err(Failure::unsupported_media_type(message).into());
    }
    let reader = body::form_reader(request.headers())?;
    let file_bytes_max = shared.limits.body_stt_bytes;
    let bounds = bounds(shared, file_bytes_max.saturating_add(FIELDS_BYTES));
    let (payer, media) = (payer(shared, caller), shared.engine.media());
    let read = body::read_spooled_form(request.into_body(), reader, "file", bounds, payer, media);
    let (fields, spool, share) = read.await?;
    let call = TranscriptCall {
        arrival: visit.arrival(caller),
        form,
        fields,
        spool,
        file_bytes_max: u64::try_from(file_bytes_max).unwrap_or(u64::MAX),
        share,
    };
    shared.engine.transcript(call).await.map(Served::Answer)
}

/// `GET /v1/tts/voices`, and one of them.
pub(crate) async fn voices(
    shared: &Shared,
    visit: &Visit,
    voice: Option<String>,
    caller: &Caller,
    request: &Request<Incoming>,
) -> Result<Served, FailedCall> {
    refuse_idempotency_key(request.headers())?;
    let query = Query::read(request.uri())?;
    query.refuse_choices()?;
    let model = query.get("model")?;
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    let call = VoicesCall {
        arrival: visit.arrival(caller),
        model: model.into_owned(),
        voice,
    };
    let voices = shared.engine.voices(call).await?;
    Ok(Served::Document(voices.to_vec()))
}
