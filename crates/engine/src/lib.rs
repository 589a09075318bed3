//! Use cases of the gateway: admit, route, relay, settle, journal.
//!
//! The engine knows wallets, models, channels and dialects. It must never know the HTTP server
//! in front of it or the database behind the store. Start reading at [`text`], the life of one
//! text call; [`Admission`] is the obligation every call carries until its money is settled.

pub mod catalog;

pub use catalog::{Catalog, ModelSpec, RouteSpec};
