//! Catalogs that operators have stored: documents of channels and models, with versions.

use ledger::UnixMs;

/// A stored catalog. The store does not interpret the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogDocument {
    /// Versions are numbered from 1 without gaps. The highest one is in force.
    pub version: i64,
    pub document: Box<str>,
    /// The name of the operator who stored it.
    pub made_by: Box<str>,
    pub made_at: UnixMs,
}

/// An action of an operator, for the audit. `before` and `after` are JSON without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAction {
    /// The name of the action, such as `config.replace`.
    pub action: &'static str,
    /// The id of the changed object.
    pub target: String,
    pub before: Option<String>,
    pub after: Option<String>,
}
