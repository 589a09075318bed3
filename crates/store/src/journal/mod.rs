//! The journal: one row per call, in a file of its own.
//!
//! It is for people, not for money. It never delays a call: a full queue drops rows and counts
//! them, and what a crash takes is the last fraction of a second.

mod row;

pub use row::{
    BODY_BYTES_MAX, JournalEntry, JournalPlace, JournalQuery, JournalRow, StatusRange, Timings,
};
