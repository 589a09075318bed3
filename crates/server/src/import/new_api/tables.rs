//! Reads the tables of `new-api` and `one-api`.

use store::{ForeignDatabase, ForeignError, ForeignTable};

const TABLES: [&str; 7] = [
    "users",
    "tokens",
    "channels",
    "abilities",
    "options",
    "user_subscriptions",
    "redemptions",
];

/// The project whose database is read. The two projects number some channel types differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Project {
    NewApi,
    OneApi,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Database(#[from] ForeignError),
    #[error(
        "there are no tables `users` and `tokens`: this is not a database of new-api or one-api"
    )]
    Other,
    #[error("the option QuotaPerUnit is {0}, which is not a whole number above 0")]
    QuotaPerUnit(String),
    #[error("there is no price group `{group}`; known are: {known}")]
    UnknownGroup { group: String, known: String },
}

pub(super) struct Tables {
    pub(super) users: ForeignTable,
    pub(super) tokens: ForeignTable,
    pub(super) channels: ForeignTable,
    pub(super) abilities: Option<ForeignTable>,
    pub(super) subscriptions: Option<ForeignTable>,
    pub(super) redemptions: Option<ForeignTable>,
}

/// Opens a database, which is given as a URL, a file or a dump.
pub(super) async fn open(place: &str) -> Result<ForeignDatabase, ReadError> {
    Ok(ForeignDatabase::open(place, &TABLES).await?)
}

/// Reads the tables, and the table of options if there is one.
pub(super) async fn tables(
    database: &ForeignDatabase,
) -> Result<(Tables, Option<ForeignTable>), ReadError> {
    const USERS: [&str; 9] = [
        "id",
        "username",
        "display_name",
        "email",
        "status",
        "quota",
        "group",
        "aff_quota",
        "deleted_at",
    ];
    const TOKENS: [&str; 16] = [
        "id",
        "user_id",
        "key",
        "status",
        "name",
        "expired_time",
        "remain_quota",
        "used_quota",
        "unlimited_quota",
        "model_limits_enabled",
        "model_limits",
        "models",
        "allow_ips",
        "subnet",
        "group",
        "deleted_at",
    ];
    const CHANNELS: [&str; 18] = [
        "id",
        "type",
        "key",
        "status",
        "name",
        "weight",
        "base_url",
        "other",
        "models",
        "group",
        "model_mapping",
        "priority",
        "param_override",
        "header_override",
        "setting",
        "settings",
        "channel_info",
        "config",
    ];
    let users = database.table("users", &USERS).await?;
    let tokens = database.table("tokens", &TOKENS).await?;
    let (Some(users), Some(tokens)) = (users, tokens) else {
        return Err(ReadError::Other);
    };
    let channels = database.table("channels", &CHANNELS).await?;
    let abilities = ["group", "model", "channel_id", "enabled"];
    let subscriptions = [
        "id",
        "user_id",
        "amount_total",
        "amount_used",
        "status",
        "end_time",
    ];
    let redemptions = ["id", "status", "quota", "deleted_at"];
    let options = database.table("options", &["key", "value"]).await?;
    let tables = Tables {
        users,
        tokens,
        channels: channels.unwrap_or_default(),
        abilities: database.table("abilities", &abilities).await?,
        subscriptions: database.table("user_subscriptions", &subscriptions).await?,
        redemptions: database.table("redemptions", &redemptions).await?,
    };
    Ok((tables, options))
}
