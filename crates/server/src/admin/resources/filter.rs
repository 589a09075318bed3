//! Filters that several lists share.

use store::{KeyId, Store, WalletId};

use crate::admin::api::error::ApiError;
use crate::admin::api::state::AdminState;

const TEXT_CHARS_MAX: usize = 200;

/// Treats an empty filter as absent.
pub(super) fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Finds a wallet by its id or its name.
pub(super) async fn wallet(
    store: &Store,
    name_or_id: Option<String>,
) -> Result<Option<WalletId>, ApiError> {
    let Some(name_or_id) = non_empty(name_or_id) else {
        return Ok(None);
    };
    if let Ok(id) = WalletId::parse(&name_or_id) {
        return Ok(Some(id));
    }
    let found = store.find_wallet(&name_or_id).await?;
    let unknown = || ApiError::invalid("wallet", "There is no wallet with this id or name.");
    Ok(Some(found.ok_or_else(unknown)?.id))
}

pub(super) fn key(id: Option<String>) -> Result<Option<KeyId>, ApiError> {
    let key = non_empty(id).map(|id| KeyId::parse(&id)).transpose();
    key.map_err(|error| ApiError::invalid("key", format!("This is not the id of a key: {error}.")))
}

/// Checks the length of a search text.
pub(super) fn text(text: Option<String>) -> Result<Option<String>, ApiError> {
    match non_empty(text) {
        Some(text) if text.chars().count() > TEXT_CHARS_MAX => {
            let message = format!("A text to search for has at most {TEXT_CHARS_MAX} characters.");
            Err(ApiError::invalid("q", message))
        }
        text => Ok(text),
    }
}

pub(super) fn models(state: &AdminState) -> Vec<String> {
    let catalog = state.engine.catalog();
    catalog.list().map(|model| model.id.to_string()).collect()
}
