//! The `AnswerLayout` of each dialect, and the function that writes a whole answer as a stream.

use crate::answer_layout::{AnswerLayout, WriteEvents};
use crate::chat;
use crate::dialect::Dialect;
use crate::generate;
use crate::interactions;
use crate::messages;
use crate::responses;

pub(super) fn layout_of(dialect: Dialect) -> &'static AnswerLayout {
    match dialect {
        Dialect::Chat => &chat::ANSWER_LAYOUT,
        Dialect::Responses => &responses::ANSWER_LAYOUT,
        Dialect::Messages => &messages::ANSWER_LAYOUT,
        Dialect::Generate => &generate::ANSWER_LAYOUT,
        Dialect::Interactions => &interactions::ANSWER_LAYOUT,
    }
}

pub(super) fn write_events_of(dialect: Dialect) -> WriteEvents {
    match dialect {
        Dialect::Chat => chat::write_events,
        Dialect::Responses => responses::write_events,
        Dialect::Messages => messages::write_events,
        Dialect::Generate => generate::write_events,
        Dialect::Interactions => interactions::write_events,
    }
}
