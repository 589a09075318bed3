//! `[journal]`: the record of calls.

use crate::config::document::Section;
use crate::config::document::setting::{count, flag, settings};

settings! {
    /// The journal, which has one row for each call.
    pub struct Journal in "journal" {
        /// Whether the journal also stores the bodies of requests and answers: at most 64 KiB of each, without media
        /// and vectors.
        pub bodies: bool = flag("bodies", false),
        /// How many days a row is kept; 0 keeps rows forever.
        pub retention_days: u32 = count("retention_days", 30),
    }
}
