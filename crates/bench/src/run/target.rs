//! The targets of measurements: the upstream itself, or a proxy in front of it.

use std::fmt;

use serde::Serialize;

/// A target of measurements, in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Target {
    Direct,
    Bare,
    /// The gateway, where answers wait until their holds are durable.
    BeforeAnswer,
    /// The gateway, where answers do not wait for the disk.
    Behind,
    /// The gateway on `PostgreSQL`, where answers wait until their holds are durable.
    Postgres,
}

impl Target {
    /// The gateways on `SQLite`, in both commit modes.
    pub(super) const GATEWAYS: [Self; 2] = [Self::BeforeAnswer, Self::Behind];

    /// The value of `ledger.commit`.
    pub(super) fn commit(self) -> &'static str {
        match self {
            Self::Behind => "behind",
            Self::Direct | Self::Bare | Self::BeforeAnswer | Self::Postgres => "before-answer",
        }
    }

    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            _ => self.commit(),
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
            Self::Postgres => "gateway on PostgreSQL",
        })
    }
}
