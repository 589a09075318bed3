//! Whether a database is empty, outdated or ready for use.

/// The state of a database when it is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// Our program has not used the database yet.
    Absent,
    /// The database has the schema of an earlier version.
    Older { found: i32, known: i32 },
    /// The database is ready for use.
    Current {
        /// The version of the schema.
        version: i32,
        /// Whether the database has any wallet.
        is_used: bool,
    },
}
