//! Counts the open connections of a channel.

use std::sync::Arc;

/// Counts open connections. Threads write to this shared memory only when a connection opens or
/// closes, not in each call.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(Arc<()>);

/// A connection keeps a mark while it is open.
#[derive(Debug)]
pub(crate) struct OpenMark(#[expect(dead_code, reason = "its references are counted")] Arc<()>);

impl OpenConnections {
    /// Counts a connection until the mark is dropped.
    pub(crate) fn mark(&self) -> OpenMark {
        OpenMark(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> usize {
        // One of the references is this counter's own.
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}
