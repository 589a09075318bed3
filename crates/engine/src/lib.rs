//! Use cases of the gateway: admit, route, relay, settle, journal.
//!
//! The engine knows wallets, models, channels and dialects. It must never know the HTTP server
//! in front of it or the database behind the store. Start reading at `life.rs`, the life of
//! every call, and `text.rs`, what is particular to text; `admission.rs` is the obligation every call carries until its money is settled.

mod admission;
mod answer;
mod asked;
mod budget;
mod callers;
mod catalog;
pub mod clock;
mod connections;
mod drain;
mod embeddings;
mod ending;
mod engine;
mod estimate;
mod fit;
mod gather;
mod gauge;
pub mod ids;
mod images;
mod keyring;
mod life;
mod media;
mod metrics;
mod picture_tier;
mod pictures;
mod plausible;
mod progress;
mod record;
mod retries;
mod shares;
mod stream;
mod task;
mod text;
mod token_count;
mod traffic;
mod trial;
mod tries;
mod voice;
mod way;
mod work;

pub use answer::{Aborted, Answer, AnswerBody, Unanswered};
pub use budget::{Budget, Ceiling, Share};
pub use callers::{Caller, CallerLimits};
pub use catalog::{Catalog, CatalogError, Model, ModelSpec, Route, RouteSpec};
pub use embeddings::{EmbeddingsCall, NamedContents};
pub use engine::{Commit, Engine, Place, Settings};
pub use images::{ImagesBody, ImagesCall};
pub use keyring::LastKey;
pub use media::{MediaBounds, MediaRead, MediaStream, StorageState};
pub use metrics::Metrics;
pub use pictures::PictureBounds;
pub use stream::Relay;
pub use task::{ListQuery, TaskAsk, TaskSettings, VideoCall, video_protocols};
pub use text::{Named, TextCall};
pub use token_count::TokenCountCall;
pub use traffic::Tally;
pub use voice::{
    OpenSocket, SocketBounds, SocketCall, SocketKind, SpeechCall, TranscriptCall, VoiceForm,
    VoicesCall,
};
pub use work::Arrival;
