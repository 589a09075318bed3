//! The usage of a call, in its stored form.

use std::sync::Arc;

use arrayvec::{ArrayString, ArrayVec};
use ledger::Meter;

/// The maximum size of a text that is stored inline. Most meters have few quantities and fit.
const SHORT_BYTES: usize = 52;

/// A meter in JSON. The code that measures the usage writes it once, and ledger and journal store it unchanged.
#[derive(Debug, Clone)]
pub struct MeterText {
    text: Text,
    /// Known only for a meter that was measured in this process, not for one that was read back.
    tokens: TokenCounts,
}

/// Meters are compared by their texts.
impl PartialEq for MeterText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for MeterText {}

/// Tokens by their class, for metrics and reports. Tokens of pictures and audio count as `input` and `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    pub input: u64,
    pub cached_input: u64,
    pub cache_write: u64,
    pub cache_write_1h: u64,
    pub output: u64,
}

impl TokenCounts {
    pub(crate) fn add(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached_input = self.cached_input.saturating_add(more.cached_input);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
        self.cache_write_1h = self.cache_write_1h.saturating_add(more.cache_write_1h);
        self.output = self.output.saturating_add(more.output);
    }
}

impl From<&Meter> for TokenCounts {
    fn from(meter: &Meter) -> Self {
        let sum = |classes: [u64; 3]| classes.into_iter().fold(0, u64::saturating_add);
        Self {
            input: sum([meter.input, meter.image_input, meter.audio_input]),
            cached_input: meter.cached_input,
            cache_write: meter.cache_write,
            cache_write_1h: meter.cache_write_1h,
            output: sum([meter.output, meter.image_output, meter.audio_output]),
        }
    }
}

#[derive(Debug, Clone)]
enum Text {
    /// Stored inline, so that the two threads that receive it have nothing to free.
    Short(ArrayString<SHORT_BYTES>),
    Long(Arc<str>),
}

impl MeterText {
    /// The JSON.
    pub fn as_str(&self) -> &str {
        match &self.text {
            Text::Short(text) => text,
            Text::Long(text) => text,
        }
    }

    /// Whether nothing was used.
    pub(crate) fn is_empty(&self) -> bool {
        self.as_str() == "{}"
    }

    /// The tokens of a meter that was measured in this process; zero for others.
    pub(crate) fn tokens(&self) -> TokenCounts {
        self.tokens
    }

    /// Parses the JSON. That may fail, because stored texts may come from other versions.
    pub fn read(&self) -> serde_json::Result<Meter> {
        serde_json::from_str(self.as_str())
    }
}

impl From<&Meter> for MeterText {
    fn from(meter: &Meter) -> Self {
        let tokens = TokenCounts::from(meter);
        let mut short = ArrayVec::<u8, SHORT_BYTES>::new();
        let text = if serde_json::to_writer(&mut short, meter).is_ok()
            && let Ok(text) = str::from_utf8(&short)
        {
            Text::from(text)
        } else {
            // A meter consists of numbers and names, so it always has a JSON form.
            Text::from(&*serde_json::to_string(meter).unwrap_or_default())
        };
        Self { text, tokens }
    }
}

impl From<&str> for MeterText {
    fn from(text: &str) -> Self {
        Self {
            text: text.into(),
            tokens: TokenCounts::default(),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        match ArrayString::from(text) {
            Ok(text) => Self::Short(text),
            Err(_) => Self::Long(text.into()),
        }
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

    #[test]
    fn tokens_of_pictures_and_audio_are_counted() {
        let meter = Meter {
            input: 1,
            image_input: 20,
            audio_input: 300,
            cached_input: 4_000,
            output: 2,
            image_output: 30,
            audio_output: u64::MAX,
            ..Meter::default()
        };
        let tokens = TokenCounts::from(&meter);
        assert_eq!(
            (tokens.input, tokens.cached_input, tokens.output),
            (321, 4_000, u64::MAX)
        );
    }
}
