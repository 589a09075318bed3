//! Tracks, for each component that a call needs, whether its last use or probe succeeded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The interval of probes. Lookup connections are always probed, lanes only while they are unused.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A component that does not answer within this time counts as failed.
pub(crate) const PROBE_MAX: Duration = Duration::from_secs(2);

/// A bit for each component, which is set while the component fails.
#[derive(Debug, Default)]
pub(crate) struct Health(AtomicU32);

/// A component that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// The lane with this number.
    Lane(usize),
    /// The connection with this number that looks up keys.
    Lookup(usize),
}

/// The bit of the first lookup connection. The lower bits belong to the lanes.
const FIRST_LOOKUP: usize = 24;

impl Component {
    fn bit(self) -> u32 {
        let number = match self {
            Self::Lane(number) => number.min(FIRST_LOOKUP - 1),
            Self::Lookup(number) => (FIRST_LOOKUP + number).min(31),
        };
        1 << number
    }
}

impl Health {
    /// Records whether a component works. Returns whether its state has changed.
    pub(crate) fn note(&self, part: Component, works: bool) -> bool {
        let bit = part.bit();
        let before = if works {
            self.0.fetch_and(!bit, Ordering::Relaxed)
        } else {
            self.0.fetch_or(bit, Ordering::Relaxed)
        };
        (before & bit == 0) != works
    }

    pub(crate) fn lanes_work(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ((1 << FIRST_LOOKUP) - 1) == 0
    }

    pub(crate) fn works(&self, part: Component) -> bool {
        self.0.load(Ordering::Relaxed) & part.bit() == 0
    }

    /// Whether every component works.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_that_works_does_not_hide_another_that_fails() {
        let health = Health::default();
        assert!(health.is_whole());
        assert!(health.note(Component::Lane(0), false), "news");
        assert!(!health.note(Component::Lane(0), false), "no news");
        assert!(!health.note(Component::Lane(1), true), "no news");
        assert!(health.note(Component::Lookup(1), false));
        assert!(!health.is_whole());
        assert!(health.note(Component::Lane(0), true));
        assert!(health.works(Component::Lane(0)) && !health.works(Component::Lookup(1)));
        assert!(health.lanes_work() && !health.is_whole());
        health.note(Component::Lookup(1), true);
        assert!(health.is_whole());
    }
}
