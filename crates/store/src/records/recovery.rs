//! What a start found of earlier starts.

use ledger::Micro;

use super::ids::Epoch;

/// What a start found of earlier starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// The epoch of this start.
    pub epoch: Epoch,
    /// Holds of earlier starts, closed as abandoned.
    pub abandoned: u64,
    /// What they held.
    pub held: Micro,
}
