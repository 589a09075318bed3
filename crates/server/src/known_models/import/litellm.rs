//! Reads `LiteLLM`'s `model_prices_and_context_window.json`: a table of models with prices per token.

use std::collections::BTreeMap;

use ledger::PriceValue;
use protocol::{Kind, Profile};
use serde_json::value::RawValue;
use upstream::Preset;

use super::decimal;
use super::proposal::{ForeignModel, Proposals, long_context};

/// The entry that documents the members and is not a model.
const SAMPLE: &str = "sample_spec";
/// The power of 10 that converts a price per token to a price per million tokens.
const PER_MILLION: i32 = 6;

/// Members that are prices of token classes, and their keys in our price cards.
const TOKEN_PRICES: [(&str, &str); 8] = [
    ("input_cost_per_token", "input"),
    ("output_cost_per_token", "output"),
    ("cache_read_input_token_cost", "cached_input"),
    ("cache_creation_input_token_cost", "cache_write"),
    (
        "cache_creation_input_token_cost_above_1hr",
        "cache_write_1h",
    ),
    ("input_cost_per_audio_token", "audio_input"),
    ("output_cost_per_audio_token", "audio_output"),
    ("output_cost_per_image_token", "image_output"),
];

/// Suffixes of prices of other service tiers, which do not apply to standard calls.
const OTHER_TIERS: [&str; 4] = ["_batches", "_batch", "_flex", "_priority"];

type Members<'a> = BTreeMap<String, &'a RawValue>;

pub(super) fn read(text: &str) -> Result<Proposals, String> {
    let models: BTreeMap<String, Members<'_>> =
        serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let mut proposals = Proposals::default();
    for (name, members) in &models {
        if name == SAMPLE {
            continue;
        }
        match read_model(name, members, &mut proposals.unmapped) {
            Ok(foreign) => proposals.foreign.push(foreign),
            Err(reason) => proposals.unmapped.push((name.clone(), reason)),
        }
    }
    Ok(proposals)
}

fn read_model(
    name: &str,
    members: &Members<'_>,
    unmapped: &mut Vec<(String, String)>,
) -> Result<ForeignModel, String> {
    let provider = text(members, "litellm_provider").ok_or("has no litellm_provider")?;
    let known = |preset: &Preset| preset.litellm_names().contains(&provider);
    let preset = Preset::all()
        .find(known)
        .ok_or_else(|| format!("no preset for provider {provider}"))?;
    let kind = match text(members, "mode").as_deref() {
        Some("chat" | "responses") => Kind::Text,
        Some("embedding") => Kind::Embedding,
        Some(mode) => return Err(format!("models of mode {mode} are not imported")),
        None => return Err("has no mode".to_owned()),
    };
    let mut cost = BTreeMap::new();
    let mut steps: BTreeMap<u64, BTreeMap<String, PriceValue>> = BTreeMap::new();
    for (member, value) in members {
        let Some((place, key)) = price_member(member) else {
            let is_price =
                member.contains("cost") && !OTHER_TIERS.iter().any(|it| member.ends_with(it));
            if is_price && value.get() != "null" {
                unmapped.push((name.to_owned(), format!("member {member} has no price key")));
            }
            continue;
        };
        let price = match decimal::price(value.get(), PER_MILLION) {
            Ok(price) => PriceValue::Text(price),
            Err(_) if value.get() == "null" => continue,
            Err(fault) => return Err(format!("{member}: {fault}")),
        };
        match place {
            None => cost.insert(key.to_owned(), price),
            Some(above) => steps
                .entry(above)
                .or_default()
                .insert(key.to_owned(), price),
        };
    }
    if !steps.is_empty() {
        let steps = steps
            .into_iter()
            .map(|(above, prices)| long_context(above, prices));
        cost.insert("long_context".to_owned(), PriceValue::List(steps.collect()));
    }
    let (context, output) = (
        number(members, "max_input_tokens"),
        number(members, "max_output_tokens"),
    );
    Ok(ForeignModel {
        preset,
        model: vendor_name(name, &provider).to_owned(),
        kind,
        created: None,
        cost,
        profile: Profile {
            context_tokens: context,
            max_output_tokens: output,
            vision: flag(members, "supports_vision"),
            tools: flag(members, "supports_function_calling"),
            reasoning: flag(members, "supports_reasoning"),
            ..Profile::default()
        },
        // The file states the maximum input, which is not the context window.
        context_tokens: None,
        max_output_tokens: output.filter(|_| kind == Kind::Text),
    })
}

/// The price key of a member, and the number of input tokens beyond which it applies.
fn price_member(member: &str) -> Option<(Option<u64>, &'static str)> {
    let key_of = |name: &str| {
        let found = TOKEN_PRICES.iter().find(|(member, _)| *member == name);
        found.map(|(_, key)| *key)
    };
    if let Some(key) = key_of(member) {
        return Some((None, key));
    }
    let (name, bound) = member.strip_suffix("k_tokens")?.rsplit_once("_above_")?;
    let thousands: u64 = bound.parse().ok()?;
    Some((Some(thousands.checked_mul(1000)?), key_of(name)?))
}

/// The vendor's name for a model, without the prefix of the provider.
fn vendor_name<'n>(name: &'n str, provider: &str) -> &'n str {
    let behind = name
        .strip_prefix(provider)
        .and_then(|it| it.strip_prefix('/'));
    behind.unwrap_or(name)
}

fn text(members: &Members<'_>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// Parses a number, which may be a JSON string.
fn number(members: &Members<'_>, name: &str) -> Option<u64> {
    let value = members.get(name)?.get();
    value.trim_matches('"').parse().ok()
}

fn flag(members: &Members<'_>, name: &str) -> Option<bool> {
    serde_json::from_str(members.get(name)?.get()).ok()
}
