//! The condition in which a database was found.

/// The condition in which a database was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreCondition {
    /// Our program has not used the database yet.
    Absent,
    /// The database has the schema of an earlier version.
    Older { found: i32, known: i32 },
    /// The database can be used as it is.
    Current {
        /// The version of the schema.
        version: i32,
        /// Whether the database has any wallet.
        is_used: bool,
    },
}
