//! The context that every protocol gets besides the request.

use std::cell::Cell;

use crate::fault::Script;
use crate::seed::Seed;
use crate::true_usage::TrueUsage;

#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    /// The model's name without its script.
    pub(crate) name: &'a str,
    pub(crate) script: &'a Script,
    /// The source of ids. It differs for every call, even if two calls have the same body.
    pub(crate) seed: Seed,
    /// Unix time in seconds.
    pub(crate) created: u64,
    /// The protocol stores the true usage of its answer here, for the log.
    pub(crate) true_usage: &'a Cell<Option<TrueUsage>>,
}

impl CallContext<'_> {
    /// The model name that answers report. It has a date, as vendors' names do, so that a test
    /// notices a gateway that does not replace it.
    pub(crate) fn reported_model(&self) -> String {
        format!("{}-2026-01-01", self.name)
    }
}
