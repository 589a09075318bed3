//! The state of a stream that begins before its upstream has answered.

use http::HeaderValue;
use ledger::Rates;
use protocol::Translator;
use store::RequestId;

/// The head of a stream that begins early, and what is needed to end it with an error.
pub(crate) struct EarlyStream {
    pub(crate) content_type: HeaderValue,
    pub(crate) rates: Rates,
    /// The value of `x-dropped-params`.
    pub(crate) dropped: Option<String>,
    /// A keep-alive that clients of this protocol ignore.
    pub(crate) keep_alive: &'static [u8],
    /// Whether clients mistake a clean close for success.
    pub(crate) aborts_on_failure: bool,
    /// Writes the error event of the client's protocol. It never gets bytes of an upstream.
    pub(crate) translator: Translator,
    pub(crate) request_id: RequestId,
}

impl std::fmt::Debug for EarlyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EarlyStream")
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}
