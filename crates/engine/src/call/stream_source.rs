//! The source of a stream: the upstream's body and the translator of its bytes.

use std::future::Future;
use std::pin::Pin;

use protocol::{ByteQueue, Translator};
use store::AdmitError;
use upstream::{Body, Channel};

use crate::memory_budget::{FREE_BYTES, MemoryBudget, MemoryShare};

/// A pending request to the ledger to extend the hold of a stream.
pub(crate) type Growth = Pin<Box<dyn Future<Output = Result<(), AdmitError>> + Send>>;

pub(crate) struct StreamSource {
    pub(crate) upstream: Body,
    pub(crate) channel: Channel,
    pub(crate) translator: Translator,
    budget: MemoryBudget,
    /// The node memory that is charged for large events.
    pub(super) share: Option<MemoryShare>,
}

impl StreamSource {
    pub(crate) fn new(
        upstream: Body,
        channel: Channel,
        translator: Translator,
        budget: MemoryBudget,
    ) -> Self {
        Self {
            upstream,
            channel,
            translator,
            budget,
            share: None,
        }
    }

    /// Charges the bytes that wait for the end of their event or for a slow reader, if they exceed the free size (S5).
    /// Returns `false` if the node does not have enough memory for them.
    pub(crate) fn charge(&mut self, out: &ByteQueue) -> bool {
        let held = self.translator.held_bytes().saturating_add(out.len());
        let held = held.saturating_add(self.upstream.held_bytes());
        if held <= FREE_BYTES {
            self.share = None;
            return true;
        }
        match &mut self.share {
            Some(share) => share.resize(held),
            share @ None => {
                *share = self.budget.take(held);
                share.is_some()
            }
        }
    }
}
