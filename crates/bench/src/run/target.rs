//! Who is asked: the upstream itself, or something before it.

use std::fmt;

use serde::Serialize;

/// Everything that takes turns, in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Target {
    Direct,
    Bare,
    /// The gateway; an answer waits until its hold is durable.
    BeforeAnswer,
    /// The gateway; holds become durable behind the answer.
    Behind,
}

impl Target {
    /// The modes of the gateway by their names in the configuration.
    pub(super) const GATEWAYS: [Self; 2] = [Self::BeforeAnswer, Self::Behind];

    /// The value of `ledger.commit`.
    pub(super) fn commit(self) -> &'static str {
        match self {
            Self::Behind => "behind",
            Self::Direct | Self::Bare | Self::BeforeAnswer => "before-answer",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Direct => "direct",
            Self::Bare => "bare proxy",
            Self::BeforeAnswer => "gateway before-answer",
            Self::Behind => "gateway behind",
        })
    }
}
