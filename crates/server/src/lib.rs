//! The binary `tollgate`: operators' listener, configuration, command line.
//!
//! This is the top layer. It builds the engine and the public listener (`http_server`) from the configuration, and
//! decides nothing about money, routes or protocols itself. Start reading at `gateway/running.rs`, which starts
//! everything in order.

mod admin;
pub mod cli;
pub mod config;
mod gateway;
mod import;
mod known_models;
mod logging;
mod operations;
mod serve;
