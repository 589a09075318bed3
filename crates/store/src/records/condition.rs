//! The condition in which a database was found.

/// The condition in which a database was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreCondition {
    /// No program of ours has used it yet.
    Absent,
    /// A program of an earlier version has used it.
    Older { found: i32, known: i32 },
    /// It can be used as it is.
    Current {
        /// The version of the schema.
        version: i32,
        /// Whether it has any wallet.
        is_used: bool,
    },
}
