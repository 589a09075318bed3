//! Checks that a price card has the prices that a kind of model needs.

use super::{PriceCard, PriceKey};

const VOICE: [PriceKey; 6] = [
    PriceKey::TtsCharacters,
    PriceKey::TtsStreamCharacters,
    PriceKey::SttSecond,
    PriceKey::SttStreamSecond,
    PriceKey::RealtimeMinute,
    PriceKey::RealtimeTextInput,
];

impl PriceCard {
    /// Checks that the card has the prices that models of this kind need for holds and bills. The
    /// error lists everything that is missing.
    pub fn billable_as(&self, kind: &str) -> Result<(), Vec<String>> {
        let has = |key| self.unit_price(key).is_some();
        let missing: Vec<String> = match kind {
            "text" => [PriceKey::Input, PriceKey::Output]
                .into_iter()
                .filter(|key| !has(*key))
                .map(|key| format!("a text model needs `{key}`"))
                .collect(),
            "embedding" if !has(PriceKey::Input) => {
                vec!["an embedding model needs `input`".to_owned()]
            }
            "image" if !has(PriceKey::Image) && !has(PriceKey::ImageOutput) => {
                vec!["an image model needs `image`, or `image_output` and `input`".to_owned()]
            }
            "image" if !has(PriceKey::Image) && !has(PriceKey::Input) => {
                vec!["an image model billed by tokens needs `input`".to_owned()]
            }
            // The upstream's cost is known only at the end. It can settle a call, but it cannot be
            // used to estimate a hold.
            "video" if !has(PriceKey::VideoSecond) && !has(PriceKey::VideoTokens) => {
                vec!["a video model needs `video_second` or `video_tokens`".to_owned()]
            }
            "audio" if !VOICE.into_iter().any(has) => {
                let keys: Vec<_> = VOICE.iter().map(|key| format!("`{key}`")).collect();
                vec![format!("an audio model needs one of {}", keys.join(", "))]
            }
            "embedding" | "image" | "video" | "audio" => Vec::new(),
            _ => vec![format!("`{kind}` is not a kind of model")],
        };
        if missing.is_empty() {
            Ok(())
        } else {
            Err(missing)
        }
    }
}
