//! Passes the framing errors that the reader finds to the service that answers requests.

use std::sync::atomic::{AtomicU64, Ordering};

use super::reader::{FramingError, FramingReader};

/// Stands for "none refused". No request number and reason are encoded as this value.
const NONE_REFUSED: u64 = u64::MAX;

/// The framing reader sees bytes, and the service sees requests. Both count the requests of their connection, so that
/// the service knows which one the reader refused. Only HTTP/1 requests are refused, and HTTP/1 serves one request at a
/// time.
#[derive(Debug)]
pub(crate) struct RefusedRequests {
    /// The number of requests that have reached the service.
    served: AtomicU64,
    /// The number of the first refused request and, in the lowest byte, the reason.
    refused: AtomicU64,
}

impl Default for RefusedRequests {
    fn default() -> Self {
        Self {
            served: AtomicU64::new(0),
            refused: AtomicU64::new(NONE_REFUSED),
        }
    }
}

impl RefusedRequests {
    /// Why the request that begins now is refused. `None` if it is accepted.
    pub(crate) fn next(&self) -> Option<FramingError> {
        let request = self.served.fetch_add(1, Ordering::Relaxed);
        let refused = self.refused.load(Ordering::Relaxed);
        let [why, ..] = refused.to_le_bytes();
        let is_refused = refused != NONE_REFUSED && refused >> 8 <= request;
        is_refused.then(|| FramingError::of_number(why)).flatten()
    }

    /// Records the refusal that the reader has found so far, if any.
    pub(crate) fn note(&self, framing: &FramingReader) {
        if let Some((request, why)) = framing.refused() {
            let refused = request << 8 | u64::from(why as u8);
            self.refused.store(refused, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_request_is_refused_when_its_turn_comes() {
        let refused = RefusedRequests::default();
        let mut framing = FramingReader::default();
        framing.read(b"GET / HTTP/1.1\r\nHost: g\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        refused.note(&framing);
        assert_eq!(refused.next(), None);
        assert_eq!(refused.next(), Some(FramingError::Host));
        assert_eq!(refused.next(), Some(FramingError::Host));
    }
}
