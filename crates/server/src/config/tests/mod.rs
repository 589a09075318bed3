//! Tests of whole configuration files.

mod catalog;
mod config;
mod example;
mod known;
mod routing;
