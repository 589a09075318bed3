//! Passes audio through without inspecting it.

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::native::{AnswerSummary, UnusableAnswer};

/// Passes audio on as it arrives, up to a limit.
#[derive(Debug)]
pub struct AudioRelay {
    left: usize,
    bytes_max: usize,
    summary: AnswerSummary,
}

impl AudioRelay {
    /// Passes on at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            left: bytes_max,
            bytes_max,
            summary: AnswerSummary::default(),
        }
    }

    /// Passes a piece on.
    pub fn push(&mut self, chunk: Bytes, out: &mut ByteQueue) -> Result<(), UnusableAnswer> {
        self.left = self
            .left
            .checked_sub(chunk.len())
            .ok_or(UnusableAnswer::TooLarge(self.bytes_max))?;
        self.summary.content |= !chunk.is_empty();
        out.push(chunk);
        Ok(())
    }

    /// Handles the end of the upstream's answer. Returns an error if the answer is empty.
    pub fn end(&mut self) -> Result<(), UnusableAnswer> {
        if !self.summary.content {
            return Err(UnusableAnswer::malformed("no audio came"));
        }
        self.summary.ended = true;
        Ok(())
    }

    /// The summary of the stream so far.
    pub fn summary(&self) -> &AnswerSummary {
        &self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_passes_up_to_its_limit() {
        let mut passing = AudioRelay::new(5);
        let mut out = ByteQueue::new();
        assert!(passing.end().is_err());
        passing.push(Bytes::from_static(b"abc"), &mut out).unwrap();
        assert!(passing.summary().content && !passing.summary().ended);
        passing.end().unwrap();
        assert!(passing.summary().ended);
        let more = passing.push(Bytes::from_static(b"def"), &mut out);
        assert_eq!(more, Err(UnusableAnswer::TooLarge(5)));
        assert_eq!(out.into_bytes(), "abc");
    }
}
