//! Serves transcript calls: speech to text.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use ledger::PriceKey;
use protocol::multipart::Form;
use protocol::native::{self, UnusableAnswer};
use protocol::voice::{self, Transcript};
use protocol::{Failure, Translator};
use store::KeyHead;
use upstream::{Endpoint, SpoolFile, SpooledPart, UpstreamRequest};

use super::model;
use super::synthesis::VoiceForm;
use crate::billing::estimate::Estimate;
use crate::call::answer::Answer;
use crate::call::arrival::Arrival;
use crate::call::failed_call::FailedCall;
use crate::call::kind::{CallKind, Encoded, Prepared, StreamPolicy};
use crate::call::record::Record;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::ids;
use crate::memory_budget::MemoryShare;

/// A transcript request of an authenticated caller, with its form.
#[derive(Debug)]
pub struct TranscriptCall {
    pub arrival: Arrival,
    pub form: VoiceForm,
    pub fields: Form,
    /// The size limit of the file.
    pub file_bytes_max: u64,
    /// The file, if it is too large for memory.
    pub upload: Option<Upload>,
    /// The node memory that is charged for the form.
    pub share: MemoryShare,
}

/// A file of a caller on the disk.
#[derive(Debug)]
pub struct Upload {
    pub file: SpoolFile,
    /// The disk space of the caller that is charged for the file.
    pub share: MemoryShare,
}

impl Engine {
    /// Serves a transcript call.
    pub async fn transcript(self: &Arc<Self>, call: TranscriptCall) -> Result<Answer, FailedCall> {
        let arrival = call.arrival.clone();
        self.run_call(arrival, move |engine, record| prepare(engine, call, record))
            .await
    }
}

fn prepare(
    engine: &Engine,
    call: TranscriptCall,
    record: &mut Record,
) -> Result<Box<Prepared<TranscriptRequest>>, Failure> {
    let bytes_max = call.file_bytes_max;
    let transcript = match call.form {
        VoiceForm::Own => voice::read_transcript(call.fields, bytes_max)?,
        VoiceForm::Renamed => voice::read_renamed_transcript(call.fields, bytes_max)?,
    };
    record.set_model(transcript.model.as_str(), false);
    let plan = model::find(
        engine,
        &transcript.model,
        &call.arrival.key,
        Some(PriceKey::SttSecond),
    )?;
    Ok(Box::new(Prepared {
        fallbacks: VecDeque::new(),
        of_named_model: None,
        estimate: Estimate::transcript(transcript.seconds_max, transcript.seconds_if_unreported),
        kind: TranscriptRequest {
            transcript,
            key: call.arrival.key.clone(),
            upload: call.upload,
            _share: call.share,
        },
        plan,
    }))
}

struct TranscriptRequest {
    transcript: Transcript,
    key: KeyHead,
    upload: Option<Upload>,
    _share: MemoryShare,
}

impl CallKind for TranscriptRequest {
    fn is_streamed(&self) -> bool {
        false
    }

    async fn encode_for(
        &mut self,
        engine: &Engine,
        _: &Model,
        route: &Route,
        funds: Funds,
    ) -> Result<Encoded, Failure> {
        if route.channel.spec().private_network {
            let links = self.transcript.fetchable_urls(engine.caller_urls_max());
            engine.check_caller_urls(&self.key, funds, links).await?;
        }
        let boundary: String = ids::fresh("form-");
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let form = self.transcript.form(&route.model);
        let (mut pieces, after) = form.write_around(&boundary);
        let spooled = self.upload.as_ref().map(|upload| SpooledPart {
            at: pieces.len(),
            spool: upload.file.clone(),
        });
        pieces.extend(after);
        Ok(Encoded {
            call: UpstreamRequest {
                spooled,
                content_type: HeaderValue::try_from(content_type)
                    .map_err(|_| Failure::internal())?,
                ..UpstreamRequest::json(Endpoint::Transcript, Arc::clone(&route.model), pieces)
            },
            dropped: self.transcript.dropped.clone(),
        })
    }

    fn translate_answer(
        &self,
        _: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer> {
        voice::read_transcription(&answer, &self.transcript.model)
    }

    /// Transcripts of files are not streamed.
    fn stream_translator(&self, _: &Model, _: Endpoint) -> Result<Translator, Failure> {
        Err(Failure::internal())
    }

    fn stream_policy(&self) -> StreamPolicy {
        StreamPolicy {
            keep_alive: b"",
            aborts_on_failure: false,
        }
    }
}
