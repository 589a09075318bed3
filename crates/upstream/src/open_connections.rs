//! Counts the open connections of a channel.

use std::sync::Arc;

/// How many connections are open. Only opening and closing one changes memory that threads share.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(Arc<()>);

/// Kept by a connection as long as it is open.
#[derive(Debug)]
pub(crate) struct OpenMark(#[expect(dead_code, reason = "its references are counted")] Arc<()>);

impl OpenConnections {
    /// Counts a connection until the mark is dropped.
    pub(crate) fn mark(&self) -> OpenMark {
        OpenMark(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> usize {
        // One reference is our own.
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}
