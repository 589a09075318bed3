//! Tasks: asynchronous video, from the row before the upstream hears of it to the callback behind its end.
//!
//! `create` opens and `send` sends, once; `poll` claims what is due and polls it; `copy_media` makes what it
//! brings ours; `billing` says what an end costs; `callback` delivers; `lookup`, `list` and `delete` are its
//! owner's. `poll_answer` is an upstream's answer within the node's memory. `protocols` is the one file that knows
//! the protocols by name. Each step is a verb of the store, so that a node that dies leaves nothing but rows
//! from which any other goes on (T2).

mod backoff;
mod billing;
mod callback;
mod claimed;
mod copy_media;
mod create;
mod delete;
mod forget;
mod list;
mod lookup;
mod poll;
mod poll_answer;
mod protocols;
mod send;
mod settings;

pub use create::VideoCall;
pub use list::ListQuery;
pub use protocols::{VideoEndpoint, video_protocols};
pub use settings::TaskSettings;
