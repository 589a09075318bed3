//! A stream for the client, native or converted.

use bytes::Bytes;

use super::transcoder::Transcoder;
use super::unstreamed::is_whole_answer;
use super::whole_answer::WholeAnswer;
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::images;
use crate::native::{Broken, Rewriter, Seen};
use crate::voice::AudioRelay;

/// Turns an upstream's stream into the client's.
#[derive(Debug)]
pub enum Translator {
    /// Client and upstream use the same dialect. Until the first byte shows that the upstream streams,
    /// its answer may be a whole one.
    Native(Box<Rewriter>, Option<WholeAnswer>),
    /// Client and upstream use different dialects.
    Convert(Box<Transcoder>),
    /// Pictures.
    Images(Box<images::Rewriter>),
    /// Audio, which is passed on unchanged.
    Audio(Box<AudioRelay>),
}

impl Translator {
    /// Takes the bytes of one read and writes what the client receives. What was written before a
    /// failure is valid.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), Broken> {
        match self {
            Self::Native(rewriter, whole) => {
                if let Some(answer) = whole
                    && let Some(first) = chunk.trim_ascii_start().first()
                {
                    if is_whole_answer(rewriter.dialect(), *first) {
                        let mut transcoder = Box::new(answer.transcoder(rewriter));
                        let result = transcoder.push(chunk, out);
                        *self = Self::Convert(transcoder);
                        return result;
                    }
                    *whole = None;
                }
                rewriter.push(chunk, out)
            }
            Self::Convert(transcoder) => transcoder.push(chunk, out),
            Self::Images(rewriter) => rewriter.push(chunk, out),
            Self::Audio(passing) => passing.push(chunk, out),
        }
    }

    /// The upstream has closed the stream. That is an error unless the stream is complete.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), Broken> {
        match self {
            Self::Native(rewriter, _) => rewriter.end(out),
            Self::Convert(transcoder) => transcoder.end(out),
            Self::Images(rewriter) => rewriter.end(out),
            Self::Audio(passing) => passing.end(),
        }
    }

    /// Ends the stream with the error event of the client's dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        match self {
            Self::Native(rewriter, _) => rewriter.fail(failure, request_id, out),
            Self::Convert(transcoder) => transcoder.fail(failure, request_id, out),
            Self::Images(rewriter) => rewriter.fail(failure, request_id, out),
            // Audio has no error event, so the answer is cut off.
            Self::Audio(_) => {}
        }
    }

    /// Bytes that are held until their event is complete.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Native(rewriter, _) => rewriter.held_bytes(),
            Self::Convert(transcoder) => transcoder.held_bytes(),
            Self::Images(rewriter) => rewriter.held_bytes(),
            Self::Audio(_) => 0,
        }
    }

    /// What the stream has contained so far.
    pub fn seen(&self) -> &Seen {
        match self {
            Self::Native(rewriter, _) => rewriter.seen(),
            Self::Convert(transcoder) => transcoder.seen(),
            Self::Images(rewriter) => rewriter.seen(),
            Self::Audio(passing) => passing.seen(),
        }
    }
}

impl From<Rewriter> for Translator {
    fn from(rewriter: Rewriter) -> Self {
        Self::Native(Box::new(rewriter), None)
    }
}

impl From<Transcoder> for Translator {
    fn from(transcoder: Transcoder) -> Self {
        Self::Convert(Box::new(transcoder))
    }
}
