//! A row of the audit.

use serde::Serialize;
use serde_json::Value;
use store::AuditRow;
use utoipa::ToSchema;

/// An administrative change: who made it, and what it did.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Audit)]
pub(crate) struct AuditView {
    /// The number of the row. Later rows have larger numbers.
    pub(crate) id: i64,
    /// When, in Unix milliseconds.
    pub(crate) at: i64,
    /// A token's id, `config`, `cli` or `link`.
    pub(crate) actor: String,
    pub(crate) actor_name: String,
    #[schema(value_type = String, example = "operator")]
    pub(crate) actor_role: &'static str,
    /// What was done, such as `wallet.create`.
    #[schema(example = "wallet.create")]
    pub(crate) action: String,
    /// The id of what was changed.
    pub(crate) target: String,
    /// The members that the change replaced, or null for something new.
    #[schema(required, value_type = Option<Object>)]
    pub(crate) before: Option<Value>,
    /// Their new values, or null for something that is gone.
    #[schema(required, value_type = Option<Object>)]
    pub(crate) after: Option<Value>,
    /// The request that asked for the change, or null for the command line.
    #[schema(required)]
    pub(crate) request_id: Option<String>,
}

impl From<AuditRow> for AuditView {
    fn from(row: AuditRow) -> Self {
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        Self {
            id: row.cursor.0,
            at: row.at.get(),
            actor: row.actor.id,
            actor_name: row.actor.name,
            actor_role: row.actor.role.as_str(),
            action: row.action,
            target: row.target,
            before: json(row.before),
            after: json(row.after),
            request_id: row.actor.request_id,
        }
    }
}
