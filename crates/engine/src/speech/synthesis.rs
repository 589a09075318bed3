//! Serves speech calls: text to speech.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use ledger::{Meter, PriceKey};
use protocol::native::{self, UnusableAnswer};
use protocol::voice::{self, AudioRelay, Speech};
use protocol::{Failure, Translator};
use store::KeyHead;
use upstream::{Endpoint, UpstreamRequest};

use super::model;
use crate::billing::estimate::Estimate;
use crate::billing::metering::Metering;
use crate::call::answer::Answer;
use crate::call::arrival::Arrival;
use crate::call::failed_call::FailedCall;
use crate::call::kind::{CallKind, Encoded, Prepared, StreamPolicy};
use crate::call::record::Record;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::settings::Settings;

/// The maximum number of bytes of audio in one answer.
const AUDIO_BYTES_MAX: usize = 256 << 20;

/// The naming scheme of the request's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoiceForm {
    /// The names of our own endpoint.
    Own,
    /// The names that common SDKs use.
    Renamed,
}

/// A speech request of an authenticated caller, with its body.
#[derive(Debug)]
pub struct SpeechCall {
    pub arrival: Arrival,
    pub form: VoiceForm,
    pub body: Bytes,
}

impl Engine {
    /// Serves a speech call.
    pub async fn speech(self: &Arc<Self>, call: SpeechCall) -> Result<Answer, FailedCall> {
        let arrival = call.arrival.clone();
        self.run_call(arrival, move |engine, record| {
            prepare(engine, &call, record)
        })
        .await
    }
}

fn prepare(
    engine: &Engine,
    call: &SpeechCall,
    record: &mut Record,
) -> Result<Box<Prepared<SpeechRequest>>, Failure> {
    let speech = match call.form {
        VoiceForm::Own => voice::read_speech(&call.body)?,
        VoiceForm::Renamed => voice::read_renamed_speech(&call.body)?,
    };
    record.set_model(speech.model.as_str(), !speech.with_timestamps);
    if engine.settings.journal_bodies {
        record.keep_request(&call.body);
    }
    let plan = model::find(
        engine,
        &speech.model,
        &call.arrival.key,
        Some(PriceKey::TtsCharacters),
    )?;
    let meter = Meter {
        tts_characters: speech.characters,
        ..Meter::default()
    };
    Ok(Box::new(Prepared {
        fallbacks: VecDeque::new(),
        of_named_model: None,
        estimate: Estimate::voice(meter, Metering::Speech),
        kind: SpeechRequest {
            speech,
            key: call.arrival.key.clone(),
        },
        plan,
    }))
}

struct SpeechRequest {
    speech: Speech,
    key: KeyHead,
}

impl CallKind for SpeechRequest {
    fn is_streamed(&self) -> bool {
        !self.speech.with_timestamps
    }

    async fn encode_for(
        &mut self,
        engine: &Engine,
        _: &Model,
        route: &Route,
        funds: Funds,
    ) -> Result<Encoded, Failure> {
        if route.channel.spec().private_network {
            let links = native::fetchable_media_urls(&self.speech.body, engine.caller_urls_max())?;
            engine.check_caller_urls(&self.key, funds, links).await?;
        }
        let body = vec![self.speech.body.clone()];
        Ok(Encoded {
            call: UpstreamRequest::json(Endpoint::Speech, Arc::clone(&route.model), body),
            dropped: self.speech.dropped.clone(),
        })
    }

    fn translate_answer(
        &self,
        _: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer> {
        voice::read_timed_speech(&answer, &self.speech.model)
    }

    fn stream_translator(&self, _: &Model, _: Endpoint) -> Result<Translator, Failure> {
        Ok(Translator::Audio(Box::new(AudioRelay::new(
            AUDIO_BYTES_MAX,
        ))))
    }

    /// Refuses content types that are not audio, such as a proxy's error page.
    fn accepts(&self, content_type: Option<&HeaderValue>) -> bool {
        content_type.is_none_or(|it| {
            let it = it.as_bytes().to_ascii_lowercase();
            let kinds: [&[u8]; 3] = [b"audio/", b"application/octet-stream", b"application/ogg"];
            kinds.iter().any(|kind| it.starts_with(kind))
        })
    }

    fn content_type(&self, upstream: Option<&HeaderValue>) -> HeaderValue {
        let unknown = HeaderValue::from_static("application/octet-stream");
        upstream.cloned().unwrap_or(unknown)
    }

    /// Audio has no keep-alive, and clients mistake a clean end for a complete file.
    fn stream_policy(&self) -> StreamPolicy {
        StreamPolicy {
            keep_alive: b"",
            aborts_on_failure: true,
        }
    }

    fn answer_bytes_max(&self, settings: &Settings) -> usize {
        settings.media_bytes_max
    }
}
