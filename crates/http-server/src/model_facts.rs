//! Describes a model to callers: its sizes, abilities, endpoints and prices.
//!
//! All facts follow from the configuration. Sizes, modalities and token prices that the configuration does not state
//! are left out and never guessed, because clients would take a 0 or an empty list for a fact. The list of abilities is
//! always present and contains the known abilities. The members have the names that other gateways use and clients
//! know.

use engine::{Model, video_protocols};
use ledger::{Price, PriceCard, PriceKey};
use protocol::Thinking;
use protocol::images::Family;
use protocol::{BuiltInProfile, Kind, Profile};
use serde::Serialize;
use upstream::Protocol;

/// The facts about one model, as members of its catalog entry.
#[derive(Debug, Serialize)]
pub(crate) struct ModelFacts<'a> {
    pub(crate) kind: &'static str,
    /// The context window in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Modalities::is_unknown")]
    pub(crate) architecture: Modalities,
    /// The abilities of the model according to its configuration: see [`abilities`].
    pub(crate) abilities: Vec<&'static str>,
    /// The endpoints that serve the model, without the version at the start of their paths. `{model}` stands for its
    /// id.
    pub(crate) supported_endpoints: Vec<&'static str>,
    /// Credits per token, for clients that expect prices in this form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pricing: Option<TokenPricing>,
    /// The price card: credits per unit of each key.
    pub(crate) price: &'a PriceCard,
}

impl<'a> ModelFacts<'a> {
    /// The facts about a model. `aliases` says whether paths that only SDKs use are served.
    pub(crate) fn of(model: &'a Model, aliases: bool) -> Self {
        Self {
            kind: model.kind.as_str(),
            context_length: model.profile.context_tokens,
            max_output_tokens: model.profile.max_output_tokens,
            architecture: modalities(model),
            abilities: abilities(&model.profile),
            supported_endpoints: endpoints(model, aliases)
                .into_iter()
                .map(without_version)
                .collect(),
            pricing: TokenPricing::of(&model.price),
            price: &model.price,
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Modalities {
    pub(crate) input_modalities: Vec<&'static str>,
    pub(crate) output_modalities: Vec<&'static str>,
}

impl Modalities {
    fn is_unknown(&self) -> bool {
        self.output_modalities.is_empty()
    }
}

/// The prices of the usual token classes, in credits per token.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TokenPricing {
    prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_cache_read: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_cache_write: Option<String>,
}

impl TokenPricing {
    fn of(card: &PriceCard) -> Option<Self> {
        let price = |key| card.unit_price(key).map(per_token);
        Some(Self {
            prompt: price(PriceKey::Input)?,
            completion: price(PriceKey::Output),
            input_cache_read: price(PriceKey::CachedInput),
            input_cache_write: price(PriceKey::CacheWrite),
        })
    }
}

/// Converts a price per million tokens to exact decimal credits per token.
fn per_token(price: Price) -> String {
    // Prices are multiples of 1e-12, so the price of one token is a multiple of 1e-18.
    const DIGITS: usize = 18;
    let digits = format!("{:0>width$}", price.pico(), width = DIGITS + 1);
    let (whole, fraction) = digits.split_at(digits.len() - DIGITS);
    let fraction = fraction.trim_end_matches('0');
    match fraction {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// The abilities of a model beyond its kind: `image_input`, `tools`, `reasoning`, `image_output`.
pub fn abilities(profile: &Profile) -> Vec<&'static str> {
    let thinks = profile
        .thinking
        .is_some_and(|thinking| thinking != Thinking::None);
    let known = [
        (profile.vision == Some(true), "image_input"),
        (profile.tools == Some(true), "tools"),
        (profile.reasoning == Some(true) || thinks, "reasoning"),
        (profile.image_output == Some(true), "image_output"),
    ];
    known
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name))
        .collect()
}

fn modalities(model: &Model) -> Modalities {
    let profile = &model.profile;
    let has_price = |keys: &[PriceKey]| {
        keys.iter()
            .any(|key| model.price.unit_price(*key).is_some())
    };
    let of = |pairs: &[(bool, &'static str)]| {
        let pairs = pairs.iter();
        pairs
            .filter_map(|(has, name)| has.then_some(*name))
            .collect()
    };
    let (input, output) = match model.kind {
        Kind::Text => (
            of(&[(true, "text"), (profile.vision == Some(true), "image")]),
            of(&[
                (true, "text"),
                (profile.image_output == Some(true), "image"),
            ]),
        ),
        Kind::Embedding => (of(&[(true, "text")]), of(&[(true, "embeddings")])),
        Kind::Image => (of(&[(true, "text")]), of(&[(true, "image")])),
        Kind::Video => (of(&[(true, "text")]), of(&[(true, "video")])),
        Kind::Audio => {
            use PriceKey::{
                RealtimeMinute, SttSecond, SttStreamSecond, TtsCharacters, TtsStreamCharacters,
            };
            // The prices of an audio model show what it can do.
            let speaks = has_price(&[TtsCharacters, TtsStreamCharacters]);
            let listens = has_price(&[SttSecond, SttStreamSecond]);
            let talks = has_price(&[RealtimeMinute]);
            (
                of(&[(speaks || talks, "text"), (listens || talks, "audio")]),
                of(&[(listens || talks, "text"), (speaks || talks, "audio")]),
            )
        }
    };
    Modalities {
        input_modalities: input,
        output_modalities: output,
    }
}

/// The paths that serve a model, in the order of the API documentation.
pub(crate) fn endpoints(model: &Model, aliases: bool) -> Vec<&'static str> {
    const GENERATE: [&str; 2] = [
        "/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:streamGenerateContent",
    ];
    let mut paths = Vec::new();
    match model.kind {
        Kind::Text if model.profile.image_output == Some(true) => paths.extend(GENERATE),
        Kind::Text => {
            paths.extend(["/v1/chat/completions", "/v1/responses", "/v1/messages"]);
            paths.extend(GENERATE);
            paths.push("/v1beta/interactions");
        }
        Kind::Embedding => {
            paths.push("/v1/embeddings");
            if aliases {
                paths.extend([
                    "/v1beta/models/{model}:embedContent",
                    "/v1beta/models/{model}:batchEmbedContents",
                ]);
            }
        }
        Kind::Image => {
            if Family::of(&model.profile).is_some() && speaks(model, Protocol::Images) {
                paths.extend(["/v1/images/generations", "/v1/images/edits"]);
            }
            if makes_pictures_natively(model) {
                paths.extend(GENERATE);
            }
        }
        Kind::Video => paths.extend(video_endpoints(model)),
        Kind::Audio => paths.extend(voice_endpoints(model, aliases)),
    }
    paths
}

/// The path without its version, because the tests for leaks treat `/v1/` in an answer as part of an upstream's URL
/// (`server/tests/it/secrecy/leaks.rs`).
fn without_version(path: &'static str) -> &'static str {
    let below = path
        .strip_prefix("/v1/")
        .or_else(|| path.strip_prefix("/v1beta/"));
    below.unwrap_or(path)
}

/// The actions of Generate Content that serve a model, in the form that its clients read.
pub(crate) fn generation_methods(model: &Model, aliases: bool) -> Vec<&'static str> {
    let paths = endpoints(model, aliases);
    let actions = paths.iter().filter_map(|path| path.split_once("{model}:"));
    let mut methods: Vec<_> = actions.map(|(_, action)| action).collect();
    if aliases && model.kind == Kind::Text {
        methods.push("countTokens");
    }
    methods
}

fn video_endpoints(model: &Model) -> Vec<&'static str> {
    let made_by = |protocol: &Protocol| speaks(model, *protocol);
    let protocols = video_protocols(model.profile.base).iter();
    let mut paths = Vec::new();
    for protocol in protocols.copied().filter(made_by) {
        match protocol {
            Protocol::VideoA => {
                paths.extend([
                    "/v1/videos/generations",
                    "/v1/videos/edits",
                    "/v1/videos/extensions",
                ]);
            }
            Protocol::Omni => paths.push("/v1beta/interactions"),
            Protocol::Predict => paths.push("/v1beta/models/{model}:predictLongRunning"),
            Protocol::ContentTask => paths.push("/v1/contents/generations/tasks"),
            _ => {}
        }
    }
    paths
}

/// The endpoints of an audio model, which follow from its prices.
fn voice_endpoints(model: &Model, aliases: bool) -> Vec<&'static str> {
    let table: [(PriceKey, &'static str, bool); 5] = [
        (PriceKey::TtsCharacters, "/v1/tts", false),
        (PriceKey::TtsCharacters, "/v1/audio/speech", true),
        (PriceKey::SttSecond, "/v1/stt", false),
        (PriceKey::SttSecond, "/v1/audio/transcriptions", true),
        (PriceKey::RealtimeMinute, "/v1/realtime", false),
    ];
    let offered = table.into_iter().filter(|(key, _, is_alias)| {
        model.price.unit_price(*key).is_some() && (aliases || !is_alias)
    });
    offered.map(|(_, path, _)| path).collect()
}

fn makes_pictures_natively(model: &Model) -> bool {
    let is_native = matches!(model.profile.base, None | Some(BuiltInProfile::NativeImage));
    is_native && speaks(model, Protocol::Generate)
}

fn speaks(model: &Model, protocol: Protocol) -> bool {
    model
        .routes
        .iter()
        .any(|route| route.channel.speaks(protocol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_per_token_is_exact() {
        for (per_million, shown) in [
            ("0", "0"),
            ("1.25", "0.00000125"),
            ("10", "0.00001"),
            ("1000000", "1"),
            ("2500000.5", "2.5000005"),
            ("0.000000000001", "0.000000000000000001"),
        ] {
            assert_eq!(
                per_token(per_million.parse().unwrap()),
                shown,
                "{per_million}"
            );
        }
    }
}
