//! The view of an audit row.

use serde::Serialize;
use serde_json::Value;
use store::AuditRow;
use utoipa::ToSchema;

/// An administrative change and its actor.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Audit)]
pub(crate) struct AuditView {
    /// The number of the row. Later rows have larger numbers.
    pub(crate) id: i64,
    /// When the change was made, in Unix milliseconds.
    pub(crate) at: i64,
    /// A token's id, `config`, `cli` or `link`.
    pub(crate) actor: String,
    pub(crate) actor_name: String,
    #[schema(value_type = String, example = "operator")]
    pub(crate) actor_role: &'static str,
    /// The action, such as `wallet.create`.
    #[schema(example = "wallet.create")]
    pub(crate) action: String,
    /// The id of the changed object.
    pub(crate) target: String,
    /// The changed members with their old values, or null for a new object.
    #[schema(required, value_type = Option<Object>)]
    pub(crate) before: Option<Value>,
    /// The changed members with their new values, or null for a removed object.
    #[schema(required, value_type = Option<Object>)]
    pub(crate) after: Option<Value>,
    /// The id of the request that made the change, or null for the command line.
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
