//! Tasks: asynchronous video, from the row before the upstream hears of it to the callback behind its end.
//!
//! `create` opens and sends, once; `follow` claims what is due and polls it; `bill` says what an end costs;
//! `callback` delivers. Each step is a verb of the store, so that a node that dies leaves nothing but rows
//! from which any other goes on (reliability, section 2).

mod bill;
mod callback;
mod create;
mod follow;
mod look;
mod pace;
mod settings;

pub use create::VideoCall;
pub use settings::TaskSettings;
