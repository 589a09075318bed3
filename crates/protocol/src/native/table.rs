//! The row of each dialect, and how it writes a whole answer as a stream.

use super::events::WriteEvents;
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

/// Writes a whole answer of a dialect as the events of a stream.
pub(super) fn write_events_of(dialect: Dialect) -> WriteEvents {
    match dialect {
        Dialect::Chat => chat::write_events,
        Dialect::Responses => responses::write_events,
        Dialect::Messages => messages::write_events,
        Dialect::Generate => generate::write_events,
        Dialect::Interactions => interactions::write_events,
    }
}
