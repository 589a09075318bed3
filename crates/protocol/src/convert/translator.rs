//! A stream on its way to the caller, native or converted.

use bytes::Bytes;

use super::transcoder::Transcoder;
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::images;
use crate::native::{Broken, Rewriter, Seen};
use crate::voice::Passing;

/// Turns what an upstream streams into what its caller reads.
#[derive(Debug)]
pub enum Translator {
    /// Both speak the same dialect.
    Native(Box<Rewriter>),
    /// They speak two.
    Convert(Box<Transcoder>),
    /// Pictures.
    Images(Box<images::Rewriter>),
    /// Audio, which nobody speaks.
    Audio(Box<Passing>),
}

impl Translator {
    /// Takes what one read brought and puts out what the caller reads. When it fails, what was
    /// put out before is still good.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), Broken> {
        match self {
            Self::Native(rewriter) => rewriter.push(chunk, out),
            Self::Convert(transcoder) => transcoder.push(chunk, out),
            Self::Images(rewriter) => rewriter.push(chunk, out),
            Self::Audio(passing) => passing.push(chunk, out),
        }
    }

    /// The upstream has closed the stream: an error, unless the stream was at its end.
    pub fn end(&mut self, out: &mut ByteQueue) -> Result<(), Broken> {
        match self {
            Self::Native(rewriter) => rewriter.end(out),
            Self::Convert(transcoder) => transcoder.end(out),
            Self::Images(rewriter) => rewriter.end(out),
            Self::Audio(passing) => passing.end(),
        }
    }

    /// Ends the stream with the error event of the caller's dialect. Nothing follows it.
    pub fn fail(&mut self, failure: &Failure, request_id: &str, out: &mut ByteQueue) {
        match self {
            Self::Native(rewriter) => rewriter.fail(failure, request_id, out),
            Self::Convert(transcoder) => transcoder.fail(failure, request_id, out),
            Self::Images(rewriter) => rewriter.fail(failure, request_id, out),
            // There is no word for it in audio: the answer is cut off.
            Self::Audio(_) => {}
        }
    }

    /// Bytes that wait for the end of their event.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Native(rewriter) => rewriter.held_bytes(),
            Self::Convert(transcoder) => transcoder.held_bytes(),
            Self::Images(rewriter) => rewriter.held_bytes(),
            Self::Audio(_) => 0,
        }
    }

    /// What has gone by.
    pub fn seen(&self) -> &Seen {
        match self {
            Self::Native(rewriter) => rewriter.seen(),
            Self::Convert(transcoder) => transcoder.seen(),
            Self::Images(rewriter) => rewriter.seen(),
            Self::Audio(passing) => passing.seen(),
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
