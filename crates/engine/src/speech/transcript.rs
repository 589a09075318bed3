//! Calls for transcripts.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use ledger::PriceKey;
use protocol::multipart::Form;
use protocol::native::{self, Broken};
use protocol::voice::{self, Transcript};
use protocol::{Failure, Translator};
use upstream::{Endpoint, SpoolFile, SpooledPart, UpstreamRequest};

use super::model;
use super::synthesis::VoiceForm;
use crate::billing::estimate::Estimate;
use crate::call::answer::{Answer, Unanswered};
use crate::call::kind::{Arrival, Manner, Prepared, Worded, Work};
use crate::call::record::Record;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::ids;
use crate::memory_budget::Share;

/// A request for a transcript of a known caller, its form read.
#[derive(Debug)]
pub struct TranscriptCall {
    pub arrival: Arrival,
    pub form: VoiceForm,
    pub fields: Form,
    /// The largest file.
    pub file_bytes_max: u64,
    /// The file, where it is too large for the memory.
    pub spool: Option<SpoolFile>,
    /// What the form takes of the node's memory.
    pub share: Share,
}

impl Engine {
    /// Serves a call for a transcript.
    pub async fn transcript(self: &Arc<Self>, call: TranscriptCall) -> Result<Answer, Unanswered> {
        let arrival = call.arrival.clone();
        self.live(arrival, move |engine, record| prepare(engine, call, record))
            .await
    }
}

fn prepare(
    engine: &Engine,
    call: TranscriptCall,
    record: &mut Record,
) -> Result<Prepared<Heard>, Failure> {
    let bytes_max = call.file_bytes_max;
    let transcript = match call.form {
        VoiceForm::Own => voice::read_transcript(call.fields, bytes_max)?,
        VoiceForm::Renamed => voice::read_renamed_transcript(call.fields, bytes_max)?,
    };
    record.reads(transcript.model.as_str(), false);
    let tries = model::find(engine, &transcript.model, Some(PriceKey::SttSecond))?;
    Ok(Prepared {
        estimate: Estimate::transcript(transcript.seconds_max, transcript.seconds_told),
        work: Heard {
            transcript,
            spool: call.spool,
            _share: call.share,
        },
        tries,
    })
}

struct Heard {
    transcript: Transcript,
    spool: Option<SpoolFile>,
    _share: Share,
}

impl Work for Heard {
    fn is_streamed(&self) -> bool {
        false
    }

    /// An upstream inside a private network must not be sent to what callers cannot reach.
    async fn provide(&mut self, engine: &Engine, _: &Model, route: &Route) -> Result<(), Failure> {
        match &self.transcript.url {
            Some(url) if route.channel.spec().private_network => {
                engine.pictures.check(vec![url.clone()]).await
            }
            _ => Ok(()),
        }
    }

    fn word(&self, _: &Model, route: &Route) -> Result<Worded, Failure> {
        let boundary: String = ids::fresh("form-");
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let form = self.transcript.form(&route.model);
        let (mut pieces, after) = form.write_around(&boundary);
        let spooled = self.spool.clone().map(|spool| SpooledPart {
            at: pieces.len(),
            spool,
        });
        pieces.extend(after);
        Ok(Worded {
            call: UpstreamRequest {
                spooled,
                content_type: HeaderValue::try_from(content_type)
                    .map_err(|_| Failure::internal())?,
                ..UpstreamRequest::json(Endpoint::Transcript, Arc::clone(&route.model), pieces)
            },
            dropped: self.transcript.dropped.clone(),
        })
    }

    fn translate(
        &self,
        _: Endpoint,
        answer: Bytes,
    ) -> Result<Result<native::Answer, Broken>, Failure> {
        Ok(voice::read_transcription(&answer, &self.transcript.model))
    }

    /// Transcripts of files do not stream.
    fn translator(&self, _: &Model, _: Endpoint) -> Result<Translator, Failure> {
        Err(Failure::internal())
    }

    fn manner(&self) -> Manner {
        Manner {
            keep_alive: b"",
            aborts: false,
        }
    }
}
