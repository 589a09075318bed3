//! The Chat Completions dialect, tested through the public API.

mod reading;
mod reading_laws;
mod requests;
mod writing;
