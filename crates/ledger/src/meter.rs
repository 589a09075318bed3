//! The usage of one call, in the classes that have prices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::price::PriceKey;

/// The quantities of one call, one member for each price key.
///
/// The classes are disjoint: a cached token counts in `cached_input` and not in `input`; reasoning counts in `output`.
/// A meter contains only billed quantities. If a call is billed by the upstream's cost, its images and seconds are left
/// out.
///
/// The meter is stored with each settled entry, so that pricing the entry again always gives the
/// same amount. Members that are zero are omitted, and unknown members are an error.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Meter {
    /// Fresh text input tokens, neither read from a cache nor written to one.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Input tokens read from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Input tokens written to a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Input tokens written to a cache that keeps them for an hour.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Text output tokens, reasoning included.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Image input tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub image_input: u64,
    /// Image output tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub image_output: u64,
    /// Audio input tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub audio_input: u64,
    /// Audio output tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub audio_output: u64,
    /// Images delivered.
    #[serde(skip_serializing_if = "is_zero")]
    pub images: u64,
    /// The quality, resolution or size tier of the images; the card's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_tier: Option<Box<str>>,
    /// Seconds of video, rounded up.
    #[serde(skip_serializing_if = "is_zero")]
    pub video_seconds: u64,
    /// Video tokens, as reported by the upstream at the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub video_tokens: u64,
    /// The resolution of the video, which selects the price of its seconds and tokens; the card's
    /// default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_tier: Option<Box<str>>,
    /// The cost that the upstream reports, in ticks of 1e-10 US dollar.
    #[serde(skip_serializing_if = "is_zero")]
    pub usd_ticks: u64,
    /// Characters of text to speech.
    #[serde(skip_serializing_if = "is_zero")]
    pub tts_characters: u64,
    /// Characters of streaming text to speech.
    #[serde(skip_serializing_if = "is_zero")]
    pub tts_stream_characters: u64,
    /// Seconds of speech to text, rounded up.
    #[serde(skip_serializing_if = "is_zero")]
    pub stt_seconds: u64,
    /// Seconds of streaming speech to text, rounded up.
    #[serde(skip_serializing_if = "is_zero")]
    pub stt_stream_seconds: u64,
    /// Seconds of a realtime session, rounded up; priced per minute.
    #[serde(skip_serializing_if = "is_zero")]
    pub realtime_seconds: u64,
    /// Text inputs of a realtime session.
    #[serde(skip_serializing_if = "is_zero")]
    pub text_inputs: u64,
    /// Calls of built-in tools, by the tool's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u64>,
}

impl Meter {
    /// Whether nothing was used.
    pub fn is_zero(&self) -> bool {
        PriceKey::ALL.iter().all(|key| self.quantity(*key) == 0)
            && self.tools.values().all(|calls| *calls == 0)
    }

    /// Input tokens of every class. `long_context` depends on this sum.
    pub fn input_total(&self) -> u64 {
        self.total(&PriceKey::INPUTS)
    }

    /// Output tokens of every class.
    pub fn output_total(&self) -> u64 {
        self.total(&PriceKey::OUTPUTS)
    }

    /// The quantity that `key` prices.
    pub const fn quantity(&self, key: PriceKey) -> u64 {
        match key {
            PriceKey::Input => self.input,
            PriceKey::CachedInput => self.cached_input,
            PriceKey::CacheWrite => self.cache_write,
            PriceKey::CacheWrite1h => self.cache_write_1h,
            PriceKey::Output => self.output,
            PriceKey::ImageInput => self.image_input,
            PriceKey::ImageOutput => self.image_output,
            PriceKey::AudioInput => self.audio_input,
            PriceKey::AudioOutput => self.audio_output,
            PriceKey::Image => self.images,
            PriceKey::VideoSecond => self.video_seconds,
            PriceKey::VideoTokens => self.video_tokens,
            PriceKey::Usd => self.usd_ticks,
            PriceKey::TtsCharacters => self.tts_characters,
            PriceKey::TtsStreamCharacters => self.tts_stream_characters,
            PriceKey::SttSecond => self.stt_seconds,
            PriceKey::SttStreamSecond => self.stt_stream_seconds,
            PriceKey::RealtimeMinute => self.realtime_seconds,
            PriceKey::RealtimeTextInput => self.text_inputs,
        }
    }

    /// The tier under which `key` is priced.
    pub(crate) fn tier(&self, key: PriceKey) -> Option<&str> {
        match key {
            PriceKey::Image => self.image_tier.as_deref(),
            PriceKey::VideoSecond | PriceKey::VideoTokens => self.video_tier.as_deref(),
            _ => None,
        }
    }

    // Saturating: the sum selects prices and is compared with limits. No amount is computed from it.
    fn total(&self, keys: &[PriceKey]) -> u64 {
        keys.iter()
            .fold(0, |sum: u64, key| sum.saturating_add(self.quantity(*key)))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde calls")]
fn is_zero(quantity: &u64) -> bool {
    *quantity == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_members_are_left_out() {
        let json = |meter: &Meter| serde_json::to_string(meter).unwrap();
        assert_eq!(json(&Meter::default()), "{}");
        let text = Meter {
            input: 12,
            output: 3,
            ..Meter::default()
        };
        assert_eq!(json(&text), r#"{"input":12,"output":3}"#);
        let image = Meter {
            images: 2,
            image_tier: Some("high".into()),
            tools: BTreeMap::from([("web_search".to_owned(), 1)]),
            ..Meter::default()
        };
        assert_eq!(
            json(&image),
            r#"{"images":2,"image_tier":"high","tools":{"web_search":1}}"#
        );
    }

    #[test]
    fn a_stored_meter_is_read_back() {
        // Every member has a different value, so that swapped members are detected.
        let members: Vec<String> = METERED
            .iter()
            .zip(1..)
            .map(|(name, quantity)| format!(r#""{name}":{quantity}"#))
            .collect();
        let meter: Meter = serde_json::from_str(&format!("{{{}}}", members.join(","))).unwrap();
        for (key, quantity) in PriceKey::ALL.into_iter().zip(1..) {
            assert_eq!(meter.quantity(key), quantity, "{key}");
        }
        let again = serde_json::to_string(&meter).unwrap();
        assert_eq!(serde_json::from_str::<Meter>(&again).unwrap(), meter);
    }

    #[test]
    fn a_member_nobody_knows_is_refused() {
        assert!(serde_json::from_str::<Meter>(r#"{"inputs":1}"#).is_err());
        assert!(serde_json::from_str::<Meter>(r#"{"input":-1}"#).is_err());
        assert!(serde_json::from_str::<Meter>(r#"{"input":1.5}"#).is_err());
    }

    #[test]
    fn totals_are_over_every_class() {
        let meter = Meter {
            input: 1,
            cached_input: 20,
            cache_write: 300,
            image_input: 4_000,
            audio_input: 50_000,
            output: 2,
            image_output: 30,
            audio_output: 400,
            video_tokens: 999,
            ..Meter::default()
        };
        assert_eq!((meter.input_total(), meter.output_total()), (54_321, 432));
        assert!(!meter.is_zero());
        assert!(Meter::default().is_zero());
        let tool = Meter {
            tools: BTreeMap::from([("web_search".to_owned(), 1)]),
            ..Meter::default()
        };
        assert!(!tool.is_zero());
    }

    /// The members as they are stored, in the order of [`PriceKey::ALL`].
    const METERED: [&str; 19] = [
        "input",
        "cached_input",
        "cache_write",
        "cache_write_1h",
        "output",
        "image_input",
        "image_output",
        "audio_input",
        "audio_output",
        "images",
        "video_seconds",
        "video_tokens",
        "usd_ticks",
        "tts_characters",
        "tts_stream_characters",
        "stt_seconds",
        "stt_stream_seconds",
        "realtime_seconds",
        "text_inputs",
    ];
}
