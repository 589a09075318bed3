//! Counts the holds of earlier starts that this start has closed.

use ledger::Micro;

use super::ids::Epoch;

/// Counts the holds of earlier starts that this start has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// The epoch of this start.
    pub epoch: Epoch,
    /// Holds of earlier starts, closed as abandoned.
    pub abandoned: u64,
    /// The sum of these holds.
    pub held: Micro,
}
