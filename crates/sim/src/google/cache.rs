//! Reads references to contents that the vendor has cached for a caller.

use super::{Field, Refusal};
use crate::catalog;

/// Whether a request refers to cached contents. Every `cachedContents/ID` exists, unless the id begins with `missing`.
pub(crate) fn cached_content(body: &Field<'_>) -> Result<bool, Refusal> {
    let Some(name) = body.text("cached_content")? else {
        return Ok(false);
    };
    let kept = name.strip_prefix("cachedContents/");
    if kept.is_some_and(catalog::exists) {
        return Ok(true);
    }
    Err(Refusal::not_found(format!(
        "CachedContent not found (or permission denied): {name}"
    )))
}
