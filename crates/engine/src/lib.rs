//! Use cases of the gateway: admit, route, relay, settle, journal.
//!
//! The engine knows wallets, models, channels and dialects. It must never know the HTTP server
//! in front of it or the database behind the store. Start reading at `text.rs`, the life of one
//! text call; `admission.rs` is the obligation every call carries until its money is settled.

mod admission;
mod answer;
mod asked;
mod catalog;
pub mod clock;
mod ending;
mod engine;
mod fit;
pub mod ids;
mod keyring;
mod metrics;
mod progress;
mod record;
mod retries;
mod stream;
mod text;
mod tries;

pub use answer::{Aborted, Answer, AnswerBody, Unanswered};
pub use catalog::{Catalog, CatalogError, Model, ModelSpec, Route, RouteSpec};
pub use engine::{Commit, Engine, Place, Settings};
pub use metrics::Metrics;
pub use stream::Relay;
pub use text::{Named, TextCall};
