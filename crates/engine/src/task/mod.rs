//! Tasks: asynchronous video generation, from the row that is written before the upstream is called to the callback
//! after the end.
//!
//! `create` writes the row and `send` sends the creation, once. `poll` claims due tasks and polls them, and `claimed`
//! writes the result. `copy_media` copies results, `billing` computes the charge, and `callback` reports the end.
//! `lookup`, `list` and `delete` serve the owner. `poll_answer` charges an upstream's answer to the node's memory.
//! `protocols` is the only file that names all protocols. Each step is one operation of the store, so if a node dies,
//! any other node continues from the rows (T2).

pub(crate) mod backoff;
mod billing;
mod callback;
mod claimed;
mod copy_media;
mod create;
mod delete;
mod delivery_slots;
mod forget;
mod list;
mod list_turns;
mod lookup;
mod poll;
mod poll_answer;
mod protocols;
mod send;
mod settings;

pub use create::VideoCall;
pub use list::ListQuery;
pub(crate) use list_turns::ListTurns;
pub use protocols::{VideoEndpoint, video_protocols};
pub use settings::TaskSettings;
