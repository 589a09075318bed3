//! The Chat Completions dialect, seen from outside.

mod reading;
mod requests;
mod writing;
