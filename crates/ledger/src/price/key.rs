//! Price keys: the names of prices and the units that they are quoted in.

use std::fmt;

/// A quantity for which a price card can have a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriceKey {
    /// Fresh input tokens.
    Input,
    /// Input tokens read from a cache.
    CachedInput,
    /// Input tokens written to a cache.
    CacheWrite,
    /// Input tokens written to a cache that keeps them for an hour.
    CacheWrite1h,
    /// Output tokens.
    Output,
    /// Image input tokens.
    ImageInput,
    /// Image output tokens.
    ImageOutput,
    /// Audio input tokens.
    AudioInput,
    /// Audio output tokens.
    AudioOutput,
    /// Images, by tier.
    Image,
    /// Seconds of video, by tier.
    VideoSecond,
    /// Video tokens, by tier.
    VideoTokens,
    /// The cost in US dollars that the upstream reports.
    Usd,
    /// Characters of text to speech.
    TtsCharacters,
    /// Characters of streaming text to speech.
    TtsStreamCharacters,
    /// Seconds of speech to text.
    SttSecond,
    /// Seconds of streaming speech to text.
    SttStreamSecond,
    /// Minutes of a realtime session.
    RealtimeMinute,
    /// Text inputs of a realtime session.
    RealtimeTextInput,
}

impl PriceKey {
    /// Every key, in the order in which cards are written. The token classes come first.
    pub const ALL: [Self; 19] = [
        Self::Input,
        Self::CachedInput,
        Self::CacheWrite,
        Self::CacheWrite1h,
        Self::Output,
        Self::ImageInput,
        Self::ImageOutput,
        Self::AudioInput,
        Self::AudioOutput,
        Self::Image,
        Self::VideoSecond,
        Self::VideoTokens,
        Self::Usd,
        Self::TtsCharacters,
        Self::TtsStreamCharacters,
        Self::SttSecond,
        Self::SttStreamSecond,
        Self::RealtimeMinute,
        Self::RealtimeTextInput,
    ];

    /// The token classes of input.
    pub const INPUTS: [Self; 6] = [
        Self::Input,
        Self::CachedInput,
        Self::CacheWrite,
        Self::CacheWrite1h,
        Self::ImageInput,
        Self::AudioInput,
    ];

    /// The token classes of output.
    pub const OUTPUTS: [Self; 3] = [Self::Output, Self::ImageOutput, Self::AudioOutput];

    /// The name of the key in a card.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::CachedInput => "cached_input",
            Self::CacheWrite => "cache_write",
            Self::CacheWrite1h => "cache_write_1h",
            Self::Output => "output",
            Self::ImageInput => "image_input",
            Self::ImageOutput => "image_output",
            Self::AudioInput => "audio_input",
            Self::AudioOutput => "audio_output",
            Self::Image => "image",
            Self::VideoSecond => "video_second",
            Self::VideoTokens => "video_tokens",
            Self::Usd => "usd",
            Self::TtsCharacters => "tts_characters",
            Self::TtsStreamCharacters => "tts_stream_characters",
            Self::SttSecond => "stt_second",
            Self::SttStreamSecond => "stt_stream_second",
            Self::RealtimeMinute => "realtime_minute",
            Self::RealtimeTextInput => "realtime_text_input",
        }
    }

    /// Looks up a key by its name in a card.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.as_str() == name)
    }

    /// The number of metered units in one unit of the price: a million tokens or characters, the 60
    /// seconds of a minute, the 1e10 ticks of a dollar.
    pub const fn per(self) -> u64 {
        match self {
            Self::Input
            | Self::CachedInput
            | Self::CacheWrite
            | Self::CacheWrite1h
            | Self::Output
            | Self::ImageInput
            | Self::ImageOutput
            | Self::AudioInput
            | Self::AudioOutput
            | Self::VideoTokens
            | Self::TtsCharacters
            | Self::TtsStreamCharacters => 1_000_000,
            Self::Image
            | Self::VideoSecond
            | Self::SttSecond
            | Self::SttStreamSecond
            | Self::RealtimeTextInput => 1,
            Self::RealtimeMinute => 60,
            Self::Usd => 10_000_000_000,
        }
    }

    /// The class whose price applies if a special token class has no price of its own.
    pub const fn fallback(self) -> Option<Self> {
        match self {
            Self::CachedInput | Self::CacheWrite | Self::ImageInput | Self::AudioInput => {
                Some(Self::Input)
            }
            Self::CacheWrite1h => Some(Self::CacheWrite),
            Self::ImageOutput | Self::AudioOutput => Some(Self::Output),
            _ => None,
        }
    }

    /// Whether the key may have tiers. A meter records a tier for these keys only.
    pub(crate) const fn has_tiers(self) -> bool {
        matches!(self, Self::Image | Self::VideoSecond | Self::VideoTokens)
    }

    /// Whether this is one of the nine token classes.
    pub(crate) const fn is_token_class(self) -> bool {
        self.fallback().is_some() || matches!(self, Self::Input | Self::Output)
    }
}

impl fmt::Display for PriceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_at_its_own_index() {
        for (place, key) in PriceKey::ALL.into_iter().enumerate() {
            assert_eq!(key as usize, place);
            assert_eq!(PriceKey::from_name(key.as_str()), Some(key));
        }
        assert_eq!(PriceKey::from_name("inputs"), None);
    }

    #[test]
    fn inputs_and_outputs_are_the_token_classes() {
        for key in PriceKey::ALL {
            let named = PriceKey::INPUTS.contains(&key) || PriceKey::OUTPUTS.contains(&key);
            assert_eq!(key.is_token_class(), named, "{key}");
        }
    }
}
