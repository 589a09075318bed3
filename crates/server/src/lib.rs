//! The binary `tollgate`: HTTP surface, operators' listener, configuration, command line.
//!
//! This is the top layer. It converts between bytes on sockets and calls of the engine, and decides nothing about
//! money, routes or protocols itself. Start reading at `gateway/running.rs`, which starts everything in order, and
//! `http/service.rs`, which every request passes through.

mod admin;
mod assets;
pub mod cli;
pub mod config;
mod file_stamp;
mod gateway;
mod http;
mod import;
mod known_models;
mod logging;
mod model_facts;
mod operations;
mod serve;
mod tls;

#[cfg(fuzzing)]
pub use http::any_requests;
