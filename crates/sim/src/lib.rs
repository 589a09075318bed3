//! The simulated upstream: speaks the vendors' protocols over real sockets.
//!
//! It is the embedded default upstream of the demo and the partner of the gateway's tests. It uses
//! none of the gateway's crates and shares no code with them, so that it is an independent witness
//! of the wire formats: what both get wrong in the same way would otherwise go unseen.
//!
//! Where to start reading:
//! - [`Sim`] and [`serve()`] start it; `serve/exchange.rs` is the life of one call;
//! - [`fault`] has the grammar of scripts behind a model's name, [`control`] the control endpoint
//!   under `/_sim/`;
//! - `habit/` has the habits of real upstreams, which scripts ask for like faults;
//! - [`mind`] says how prompts steer the simulated model, whatever the protocol;
//! - `chat/` is the chat completions protocol, `openai/` what its family shares;
//! - `responses/` is the Responses protocol, `messages/` the Messages protocol;
//! - `embeddings/` and `embed/` give vectors, in the form of lists and in that of contents;
//! - `images/` paints, in the habits of three families;
//! - `voice/` speaks and listens, in tones;
//! - `video_a/`, `content_task/`, `predict/` and `omni/` make films (`film.rs`), each in its own way;
//! - `generate/` is Generate Content, `interactions/` Interactions, `google/` what they share.
//!
//! Models differ by the beginning of their names; every other name is a plain model:
//!
//! | name | |
//! |---|---|
//! | `sim-reason` | reasons by itself and takes no sampling parameters; on Messages it cannot be stopped from thinking |
//! | `sim-open` | shows its reasoning as it is (Responses) |
//! | `sim-fixed` | adaptive thinking alone, and fixed sampling (Messages) |
//! | `sim-budget` | thinking by budget alone (Messages) |
//! | `sim-image` | answers with pictures (Generate Content, Interactions) |
//! | `sim-omni` | makes films (Interactions) |
//! | `sim-paint-a` `sim-paint-content` | paint in the habits of the video-A and content families (`images/`) |
//! | `sim-embed-float` `sim-embed-base64` | know one encoding of vectors only |
//! | `missing` | does not exist |
//!
//! A further protocol is a folder beside `chat/` that reads its request into a prompt and writes
//! the output in its own shapes (`protocol.rs` says what it owes), a row in `serve/surface.rs`, and
//! an arm in `serve/exchange.rs`; faults of time, connection and text work for it as they are.

mod bounded_map;
mod call_context;
mod call_log;
mod catalog;
mod chat;
mod content_task;
pub mod control;
mod date;
mod embed;
mod embeddings;
pub mod fault;
mod generate;
mod google;
mod habit;
mod images;
mod interactions;
mod logprob;
mod media;
mod messages;
pub mod model;
mod omni;
mod openai;
mod percent;
mod picture;
mod predict;
mod protocol;
mod reply;
mod responses;
mod seal;
mod seed;
mod serve;
mod settings;
mod tokens;
mod true_usage;
mod usage_number;
mod vector;
mod video_a;
mod video_file;
mod voice;

pub use call_log::{Call, CallEnd, Counts};
pub use content_task::TaskRecord;
pub use fault::ScriptError;
pub use habit::{context_overflow_vendors, no_such_model_vendors};
pub use serve::{Sim, serve};
pub use settings::Settings;
pub use tokens::count_tokens;
pub use true_usage::{HostedTools, SessionUsage, TrueUsage};
