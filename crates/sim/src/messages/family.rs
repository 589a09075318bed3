//! Distinguishes models by their names.
//!
//! | name begins with | like | difference |
//! |---|---|---|
//! | `sim-budget` | models up to 4.5 | only thinking with a budget, no effort |
//! | `sim-fixed` | 4.7 and later | adaptive thinking, fixed sampling, no prefill, `system` inside `messages` |
//! | `sim-reason` | the families that always think | like `sim-fixed`, and thinking cannot be turned off |
//! | any other | 4.6 | both kinds of thinking, free sampling |

use crate::catalog;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Budget,
    Both,
    Fixed,
    AlwaysOn,
}

impl Family {
    pub(super) fn of(name: &str) -> Self {
        if catalog::reasons(name) {
            Self::AlwaysOn
        } else if name.starts_with("sim-fixed") {
            Self::Fixed
        } else if name.starts_with("sim-budget") {
            Self::Budget
        } else {
            Self::Both
        }
    }

    /// Whether temperature and similar parameters are refused if they differ from their defaults.
    pub(super) fn has_fixed_sampling(self) -> bool {
        self.is_new()
    }

    /// Whether the conversation may end with the beginning of the answer (prefill).
    pub(super) fn takes_prefill(self) -> bool {
        !self.is_new()
    }

    pub(super) fn takes_system_in_messages(self) -> bool {
        self.is_new()
    }

    pub(super) fn takes_budget(self) -> bool {
        !self.is_new()
    }

    pub(super) fn takes_adaptive(self) -> bool {
        self != Self::Budget
    }

    pub(super) fn takes_effort(self) -> bool {
        self != Self::Budget
    }

    pub(super) fn always_thinks(self) -> bool {
        self == Self::AlwaysOn
    }

    fn is_new(self) -> bool {
        matches!(self, Self::Fixed | Self::AlwaysOn)
    }
}
