//! Counts the open connections of a channel.

use std::sync::Arc;

/// The number of open connections. Only opening and closing a connection changes memory that
/// threads share.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(Arc<()>);

/// Held by a connection as long as it is open.
#[derive(Debug)]
pub(crate) struct OpenMark(#[expect(dead_code, reason = "its references are counted")] Arc<()>);

impl OpenConnections {
    /// Counts a connection until the mark is dropped.
    pub(crate) fn mark(&self) -> OpenMark {
        OpenMark(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> usize {
        // One of the references is our own.
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}
