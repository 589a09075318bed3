//! What every protocol is told about a call, besides the request itself.

use std::cell::Cell;

use crate::fault::Script;
use crate::seed::Seed;
use crate::true_usage::TrueUsage;

#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    /// The model's name without its script.
    pub(crate) name: &'a str,
    pub(crate) script: &'a Script,
    /// For ids: differs with every call, also of equal bodies.
    pub(crate) seed: Seed,
    /// Unix time in seconds.
    pub(crate) created: u64,
    /// Where the answer leaves its true figures, for the log.
    pub(crate) true_usage: &'a Cell<Option<TrueUsage>>,
}

impl CallContext<'_> {
    /// The name under which the upstream reports the model: dated, as vendors do, so that a
    /// gateway which lets it through is seen.
    pub(crate) fn reported_model(&self) -> String {
        format!("{}-2026-01-01", self.name)
    }
}
