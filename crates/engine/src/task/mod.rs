//! Tasks: asynchronous video, from the row before the upstream hears of it to the callback behind its end.
//!
//! `create` opens and `send` sends, once; `follow` claims what is due and polls it; `rehost` makes what it
//! brings ours; `bill` says what an end costs; `callback` delivers; `look`, `list` and `delete` are its
//! owner's. `heard` is an upstream's answer within the node's memory. `protocols` is the one file that knows
//! the protocols by name. Each step is a verb of the store, so that a node that dies leaves nothing but rows
//! from which any other goes on (T2).

mod bill;
mod callback;
mod create;
mod delete;
mod follow;
mod forget;
mod heard;
mod list;
mod look;
mod pace;
mod protocols;
mod rehost;
mod send;
mod settings;

pub use create::VideoCall;
pub use list::ListQuery;
pub use protocols::{TaskAsk, video_protocols};
pub use settings::TaskSettings;
