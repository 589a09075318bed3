//! What an answer gave, beside tokens.

use super::grade::Grade;

/// Pictures that went by, and what was told of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pictures {
    /// How many were delivered.
    pub delivered: u64,
    /// What they cost the upstream, in ticks of 1e-10 US dollar.
    pub usd_ticks: Option<u64>,
    /// The grade they have, as far as the answer tells it.
    pub told: Grade,
}

impl Pictures {
    /// Pictures of which nothing is told, if there are any.
    pub(crate) fn some(delivered: u64) -> Option<Box<Self>> {
        (delivered > 0).then(|| {
            Box::new(Self {
                delivered,
                ..Self::default()
            })
        })
    }
}
