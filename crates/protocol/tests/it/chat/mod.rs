//! The Chat Completions dialect, tested through the public API.

mod reading;
mod reading_properties;
mod requests;
mod writing;
