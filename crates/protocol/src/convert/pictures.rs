//! Pictures on their way to a caller whose dialect has no place for them: a line of text names each.

use crate::dialect::Dialect;

/// Whether answers of this dialect can hold pictures.
pub(super) fn carries(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Generate | Dialect::Interactions)
}

/// What the caller gets in the place of a picture of this type.
pub(super) fn note(mime: &str) -> String {
    format!("[The model made a picture ({mime}), which this API cannot carry.]")
}
