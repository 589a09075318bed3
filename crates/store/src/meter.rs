//! What a call used, as it is kept.

use std::sync::Arc;

use arrayvec::{ArrayString, ArrayVec};
use ledger::Meter;

/// Bytes of a text that takes no memory of its own: most calls have few quantities.
const SHORT_BYTES: usize = 52;

/// A meter in JSON: written once by who measured it, and kept as it is by ledger and journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterText(Text);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// It goes to two other threads, and neither has anything to free.
    Short(ArrayString<SHORT_BYTES>),
    Long(Arc<str>),
}

impl MeterText {
    /// The JSON.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Short(text) => text,
            Text::Long(text) => text,
        }
    }

    /// Whether nothing was used.
    pub(crate) fn is_empty(&self) -> bool {
        self.as_str() == "{}"
    }

    /// The meter that it tells of; stored ones may be of another program.
    pub fn read(&self) -> serde_json::Result<Meter> {
        serde_json::from_str(self.as_str())
    }
}

impl From<&Meter> for MeterText {
    fn from(meter: &Meter) -> Self {
        let mut short = ArrayVec::<u8, SHORT_BYTES>::new();
        if serde_json::to_writer(&mut short, meter).is_ok()
            && let Ok(text) = str::from_utf8(&short)
        {
            return Self::from(text);
        }
        // A struct of numbers and names always has a JSON form.
        let text = serde_json::to_string(meter).unwrap_or_default();
        Self::from(&*text)
    }
}

impl From<&str> for MeterText {
    fn from(text: &str) -> Self {
        Self(match ArrayString::from(text) {
            Ok(text) => Text::Short(text),
            Err(_) => Text::Long(text.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_meter_is_kept_whole() {
        for (input, tools) in [(0, 0), (7, 0), (u64::MAX, 0), (7, 1), (7, 40)] {
            let meter = Meter {
                input,
                output: input,
                tools: (0..tools).map(|n| (format!("tool_{n}"), n)).collect(),
                ..Meter::default()
            };
            let text = MeterText::from(&meter);
            assert_eq!(text.as_str(), serde_json::to_string(&meter).unwrap());
            assert_eq!(text.read().unwrap(), meter);
            assert_eq!(text, MeterText::from(text.as_str()));
        }
    }
}
