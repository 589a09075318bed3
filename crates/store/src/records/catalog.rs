//! Channels and models that operators have set, as documents with a version.

use ledger::UnixMs;

/// A stored catalog. What its document means is for the caller to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogDocument {
    /// From 1, without gaps. The highest one is in force.
    pub version: i64,
    pub document: Box<str>,
    /// The name of who made it.
    pub made_by: Box<str>,
    pub made_at: UnixMs,
}

/// Something that an operator did, for the audit. `before` and `after` are JSON without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// What was done, such as `config.replace`.
    pub action: &'static str,
    /// The id of what it was done to.
    pub target: String,
    pub before: Option<String>,
    pub after: Option<String>,
}
