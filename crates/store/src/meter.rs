//! What a call used, as it is kept.

use std::sync::Arc;

use ledger::Meter;

/// A meter in JSON: written once by who measured it, and kept as it is by ledger and journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterText(Arc<str>);

impl MeterText {
    /// The JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing was used.
    pub(crate) fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }

    /// The meter that it tells of; stored ones may be of another program.
    pub fn read(&self) -> serde_json::Result<Meter> {
        serde_json::from_str(&self.0)
    }
}

impl From<&Meter> for MeterText {
    fn from(meter: &Meter) -> Self {
        // A struct of numbers and names always has a JSON form.
        let text = serde_json::to_string(meter).unwrap_or_default();
        Self(text.into())
    }
}

impl From<String> for MeterText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
