//! The simulated upstream: implements the vendors' protocols over real sockets.
//!
//! It is the upstream of `tollgate demo` and of the gateway's tests. It uses none of the gateway's
//! crates and shares no code with them, so that it checks the wire formats independently: an error
//! in shared code would go unnoticed on both sides.
//!
//! Where to start reading:
//! - [`Sim`] starts it; `serve/exchange.rs` handles one request;
//! - [`fault`] documents the scripts in model names, [`control`] the control endpoint `/_sim/`;
//! - `habit/` has habits of real upstreams, which scripts ask for like faults;
//! - [`model`] documents how prompts determine the answer, in every protocol;
//! - `chat/` is Chat Completions, `responses/` is Responses, and `openai/` has their shared code;
//! - `messages/` is the Messages protocol;
//! - `generate/` is Generate Content, `interactions/` is Interactions, and `google/` has their shared code;
//! - `embeddings/` and `embed/` are the two embedding protocols;
//! - `cloud/` has the clouds that host models, with their token endpoints;
//! - `images/` has the image protocols of three families;
//! - `voice/` has speech, transcripts and WebSocket sessions;
//! - `amazon/` has Amazon Bedrock, with its signatures and binary streams;
//! - `video_a/`, `content_task/`, `predict/` and `omni/` are the video protocols.
//!
//! The beginning of a model's name determines its behaviour. A name that is not in this table is a plain model:
//!
//! | name | model |
//! |---|---|
//! | `sim-reason` | reasons unless the caller turns it off, which only Chat and Responses allow; refuses sampling parameters, except in the Google protocols |
//! | `sim-open` | shows its reasoning in plain text (Responses) |
//! | `sim-fixed` | has only adaptive thinking, and fixed sampling (Messages) |
//! | `sim-budget` | has only thinking with a budget (Messages) |
//! | `sim-image` | answers with pictures (Generate Content, Interactions) |
//! | `sim-omni` | makes videos (Interactions) |
//! | `sim-paint-a` `sim-paint-content` | images as in the video-A and content families (`images/`) |
//! | `sim-embed-float` `sim-embed-base64` | supports only one encoding of vectors |
//! | `sim-misplaced` | is refused by Vertex AI as an invalid resource (`cloud/`) |
//! | `missing` | does not exist |
//!
//! To add a protocol, add a folder beside `chat/` that implements `protocol.rs`: it reads a request into a prompt and
//! writes the output in its own format. Then add a row in `serve/endpoint.rs` and an arm in `serve/exchange.rs`. Faults
//! of timing, connection and text then work without further code.

mod amazon;
mod bounded_map;
mod call_context;
mod call_log;
mod catalog;
mod chat;
mod cloud;
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
mod multipart;
mod omni;
mod openai;
mod percent;
mod picture;
mod predict;
mod protocol;
pub mod raster;
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
pub use cloud::service_account;
pub use content_task::TaskRecord;
pub use fault::ScriptError;
pub use habit::{context_overflow_vendors, no_such_model_vendors};
pub use serve::Sim;
pub use settings::{AccessKey, Settings};
pub use tokens::count_tokens;
pub use true_usage::{HostedTools, SessionUsage, TrueUsage};
