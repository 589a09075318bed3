//! Tests of whole configuration files.

mod config;
mod example;
