//! The row of each dialect.

use super::places::Places;
use crate::chat;
use crate::dialect::Dialect;
use crate::generate;
use crate::interactions;
use crate::messages;
use crate::responses;

/// The row of a dialect.
pub(super) fn places_of(dialect: Dialect) -> &'static Places {
    match dialect {
        Dialect::Chat => &chat::PLACES,
        Dialect::Responses => &responses::PLACES,
        Dialect::Messages => &messages::PLACES,
        Dialect::Generate => &generate::PLACES,
        Dialect::Interactions => &interactions::PLACES,
    }
}
