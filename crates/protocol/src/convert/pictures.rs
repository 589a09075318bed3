//! The text that replaces an image in an answer if the client's dialect cannot contain images.

use crate::dialect::Dialect;

pub(super) fn can_contain_images(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Generate | Dialect::Interactions)
}

/// The text that replaces an image of this type.
pub(super) fn note(mime: &str) -> String {
    format!("[The model made a picture ({mime}), which this API cannot carry.]")
}
