//! Passes commands and journal rows to the threads that write them, and lets callers wait until they are durable.

pub(crate) mod command;
pub(crate) mod command_queue;
pub(crate) mod durable;
pub(crate) mod journal_queue;
mod waiters;
