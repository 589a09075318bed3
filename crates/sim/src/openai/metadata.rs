//! Checks the `metadata` of a request.

use super::member::Member;
use super::refusal::Refusal;

const METADATA_MAX: usize = 16;

/// Refuses metadata with more entries than the vendor stores.
pub(crate) fn check_metadata(body: &Member<'_>) -> Result<(), Refusal> {
    match body.child("metadata")? {
        Some(metadata) if metadata.names().count() > METADATA_MAX => {
            Err(Refusal::invalid(format!(
                "Invalid 'metadata': too many properties. Expected an object with at most \
             {METADATA_MAX} properties."
            ))
            .param("metadata")
            .code("object_above_max_properties"))
        }
        _ => Ok(()),
    }
}
