//! Reads the tables of `LiteLLM`'s database.

use serde_json::{Map, Value};
use store::{ForeignDatabase, ForeignError, ForeignTable};

use super::config::Config;

const KEYS: [&str; 24] = [
    "token",
    "key_name",
    "key_alias",
    "user_id",
    "team_id",
    "spend",
    "max_budget",
    "budget_duration",
    "budget_reset_at",
    "budget_limits",
    "budget_id",
    "rpm_limit",
    "tpm_limit",
    "tpd_limit",
    "max_parallel_requests",
    "models",
    "aliases",
    "model_max_budget",
    "expires",
    "blocked",
    "organization_id",
    "allowed_routes",
    "permissions",
    "project_id",
];
const BUDGETS: [&str; 8] = [
    "budget_id",
    "max_budget",
    "max_parallel_requests",
    "tpm_limit",
    "rpm_limit",
    "budget_duration",
    "budget_reset_at",
    "allowed_models",
];
const USERS: [&str; 11] = [
    "user_id",
    "user_alias",
    "user_email",
    "max_budget",
    "spend",
    "budget_duration",
    "budget_reset_at",
    "models",
    "rpm_limit",
    "tpm_limit",
    "max_parallel_requests",
];
const TEAMS: [&str; 13] = [
    "team_id",
    "team_alias",
    "organization_id",
    "max_budget",
    "spend",
    "budget_duration",
    "budget_reset_at",
    "models",
    "blocked",
    "budget_limits",
    "rpm_limit",
    "tpm_limit",
    "max_parallel_requests",
];
const DEPRECATED: [&str; 3] = ["token", "active_token_id", "revoke_at"];
const LEVELS: [&str; 5] = [
    "organization_id",
    "spend",
    "budget_id",
    "organization_alias",
    "user_id",
];
const MODELS: [&str; 4] = ["model_id", "model_name", "litellm_params", "model_info"];
const CREDENTIALS: [&str; 2] = ["credential_name", "credential_values"];

/// The tables that an import needs. Tables that a version does not have are empty.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) keys: ForeignTable,
    pub(super) budgets: ForeignTable,
    pub(super) users: ForeignTable,
    pub(super) teams: ForeignTable,
    pub(super) organizations: ForeignTable,
    pub(super) end_users: ForeignTable,
    pub(super) deprecated: ForeignTable,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    #[error("there is no table LiteLLM_VerificationToken: this is not a database of LiteLLM")]
    Other,
}

/// Reads the tables, and adds stored models and sections to the configuration.
pub(super) async fn read(place: &str, config: &mut Config) -> Result<Tables, DatabaseError> {
    let database = ForeignDatabase::open(place, &["LiteLLM_VerificationToken"]).await?;
    let keys = database.table("LiteLLM_VerificationToken", &KEYS).await?;
    let keys = keys.ok_or(DatabaseError::Other)?;
    let tables = Tables {
        keys,
        budgets: table(&database, "LiteLLM_BudgetTable", &BUDGETS).await?,
        users: table(&database, "LiteLLM_UserTable", &USERS).await?,
        teams: table(&database, "LiteLLM_TeamTable", &TEAMS).await?,
        organizations: table(&database, "LiteLLM_OrganizationTable", &LEVELS).await?,
        end_users: table(&database, "LiteLLM_EndUserTable", &LEVELS).await?,
        deprecated: table(
            &database,
            "LiteLLM_DeprecatedVerificationToken",
            &DEPRECATED,
        )
        .await?,
    };
    let sections = table(&database, "LiteLLM_Config", &["param_name", "param_value"]).await?;
    for row in sections.rows() {
        let value = row.text("param_value");
        let value = value.and_then(|text| serde_json::from_str(text).ok());
        if let (Some(name), Some(value)) = (row.text("param_name"), value) {
            let section = Map::from_iter([(name.to_owned(), value)]);
            config.merge(&Value::Object(section));
        }
    }
    let models = table(&database, "LiteLLM_ProxyModelTable", &MODELS).await?;
    for row in models.rows() {
        let json = |column: &str| {
            let value = row.text(column);
            value.and_then(|text| serde_json::from_str::<Value>(text).ok())
        };
        let id = row.text("model_id").unwrap_or_default();
        config.model_list.push(serde_json::json!({
            "model_name": row.text("model_name"),
            "litellm_params": json("litellm_params"),
            "model_info": json("model_info"),
            // Marks the entries of the database. `LiteLLM` encrypts their values, but not those of the file.
            "stored_as": id,
        }));
    }
    let credentials = table(&database, "LiteLLM_CredentialsTable", &CREDENTIALS).await?;
    for row in credentials.rows() {
        let values = row.text("credential_values");
        let values = values.and_then(|text| serde_json::from_str::<Value>(text).ok());
        config.credential_list.push(serde_json::json!({
            "credential_name": row.text("credential_name"),
            "credential_values": values,
            "is_sealed": true,
        }));
    }
    Ok(tables)
}

async fn table(
    database: &ForeignDatabase,
    name: &'static str,
    columns: &[&str],
) -> Result<ForeignTable, ForeignError> {
    Ok(database.table(name, columns).await?.unwrap_or_default())
}
