//! Properties of answers for generated requests.

mod chat;
mod google;
mod named_events;
