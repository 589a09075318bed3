//! Turns an upstream's stream into the client's stream, for every kind of call.

use bytes::Bytes;

use super::transcoder::Transcoder;
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::images;
use crate::native::{AnswerSummary, Rewriter, UnusableAnswer};
use crate::voice::AudioRelay;

/// The rewriter of one stream, by the kind of call.
#[derive(Debug)]
pub enum Translator {
    /// Client and upstream use the same dialect.
    Native(Box<Rewriter>),
    /// Client and upstream use different dialects.
    Convert(Box<Transcoder>),
    /// A stream of images.
    Images(Box<images::Rewriter>),
    /// A stream of audio, which is passed on unchanged.
    Audio(Box<AudioRelay>),
}

impl Translator {
    /// Takes the bytes of one read and writes the client's bytes. Bytes written before a failure
    /// are valid.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        match self {
            Self::Native(rewriter) => rewriter.push(chunk, out),
            Self::Convert(transcoder) => transcoder.push(chunk, out),
            Self::Images(rewriter) => rewriter.push(chunk, out),
            Self::Audio(passing) => passing.push(chunk, out),
        }
    }

    /// Handles the end of the upstream's stream. Returns an error unless the stream is complete.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        match self {
            Self::Native(rewriter) => rewriter.end(out),
            Self::Convert(transcoder) => transcoder.end(out),
            Self::Images(rewriter) => rewriter.end(out),
            Self::Audio(passing) => passing.end(),
        }
    }

    /// Ends the stream with the error event of the client's dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        match self {
            Self::Native(rewriter) => rewriter.fail(failure, request_id, out),
            Self::Convert(transcoder) => transcoder.fail(failure, request_id, out),
            Self::Images(rewriter) => rewriter.fail(failure, request_id, out),
            // Audio has no error event, so the answer is cut off.
            Self::Audio(_) => {}
        }
    }

    /// The number of bytes that wait until their event is complete.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Native(rewriter) => rewriter.held_bytes(),
            Self::Convert(transcoder) => transcoder.held_bytes(),
            Self::Images(rewriter) => rewriter.held_bytes(),
            Self::Audio(_) => 0,
        }
    }

    /// The summary of the stream so far.
    pub fn summary(&self) -> &AnswerSummary {
        match self {
            Self::Native(rewriter) => rewriter.summary(),
            Self::Convert(transcoder) => transcoder.summary(),
            Self::Images(rewriter) => rewriter.summary(),
            Self::Audio(passing) => passing.summary(),
        }
    }
}

impl From<Rewriter> for Translator {
    fn from(rewriter: Rewriter) -> Self {
        Self::Native(Box::new(rewriter))
    }
}

impl From<Transcoder> for Translator {
    fn from(transcoder: Transcoder) -> Self {
        Self::Convert(Box::new(transcoder))
    }
}
