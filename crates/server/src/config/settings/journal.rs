//! The record of calls.

use crate::config::document::{Section, value};

/// `[journal]`: one row for each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// Whether bodies are kept, redacted.
    pub bodies: bool,
    /// How long a row is kept; 0 keeps it for ever.
    pub retention_days: u32,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            bodies: false,
            retention_days: 30,
        }
    }
}

impl Journal {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self::default();
        section.flag("bodies", &mut out.bodies);
        section.set("retention_days", &mut out.retention_days, value::count);
        section.end();
        out
    }
}
