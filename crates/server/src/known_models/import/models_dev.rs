//! Reads models.dev's `api.json`: providers with their models, and prices per million tokens.

use std::collections::BTreeMap;

use ledger::PriceValue;
use protocol::{Kind, Profile};
use serde::Deserialize;
use serde_json::value::RawValue;
use upstream::Preset;

use super::decimal;
use super::proposal::{ForeignModel, Proposals, long_context};

/// Members of `cost` that are prices of token classes, and their keys in our price cards.
const TOKEN_PRICES: [(&str, &str); 6] = [
    ("input", "input"),
    ("output", "output"),
    ("cache_read", "cached_input"),
    ("cache_write", "cache_write"),
    ("input_audio", "audio_input"),
    ("output_audio", "audio_output"),
];
const LONG_CONTEXT: (&str, u64) = ("context_over_200k", 200_000);

#[derive(Deserialize)]
struct Provider<'a> {
    #[serde(borrow)]
    models: BTreeMap<String, Model<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow, default)]
    cost: BTreeMap<String, &'a RawValue>,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    modalities: Modalities,
    reasoning: Option<bool>,
    tool_call: Option<bool>,
    release_date: Option<String>,
}

#[derive(Deserialize, Default)]
struct Limit {
    context: Option<u64>,
    output: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Modalities {
    input: Vec<String>,
    output: Vec<String>,
}

pub(super) fn read(text: &str) -> Result<Proposals, String> {
    let providers: BTreeMap<String, Provider<'_>> =
        serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let mut proposals = Proposals::default();
    for (name, provider) in &providers {
        let known = |preset: &Preset| preset.models_dev_names().contains(name);
        let Some(preset) = Preset::all().find(known) else {
            let reason = format!(
                "no preset for this provider ({} models)",
                provider.models.len()
            );
            proposals.unmapped.push((name.clone(), reason));
            continue;
        };
        for (id, model) in &provider.models {
            let full_name = format!("{name}/{id}");
            match read_model(preset, id, model, &mut proposals.unmapped, &full_name) {
                Ok(foreign) => proposals.foreign.push(foreign),
                Err(reason) => proposals.unmapped.push((full_name, reason)),
            }
        }
    }
    Ok(proposals)
}

fn read_model(
    preset: Preset,
    id: &str,
    model: &Model<'_>,
    unmapped: &mut Vec<(String, String)>,
    full_name: &str,
) -> Result<ForeignModel, String> {
    if model.modalities.output != ["text"] {
        return Err("only models whose output is text are imported".to_owned());
    }
    let mut cost = BTreeMap::new();
    for (member, value) in &model.cost {
        if *member == LONG_CONTEXT.0 {
            let prices: BTreeMap<String, &RawValue> =
                serde_json::from_str(value.get()).map_err(|fault| fault.to_string())?;
            let mut step = BTreeMap::new();
            for (member, value) in prices {
                if let Some(key) = key_of(&member) {
                    step.insert(key.to_owned(), price(&member, value)?);
                }
            }
            cost.insert(
                "long_context".to_owned(),
                long_context(LONG_CONTEXT.1, step),
            );
        } else if let Some(key) = key_of(member) {
            cost.insert(key.to_owned(), price(member, value)?);
        } else {
            unmapped.push((
                full_name.to_owned(),
                format!("cost.{member} has no price key"),
            ));
        }
    }
    Ok(ForeignModel {
        preset,
        model: id.to_owned(),
        kind: Kind::Text,
        // Some dates have only a year and a month.
        created: model
            .release_date
            .as_deref()
            .and_then(|day| day.parse().ok()),
        cost,
        profile: Profile {
            context_tokens: model.limit.context,
            max_output_tokens: model.limit.output,
            vision: Some(model.modalities.input.iter().any(|it| it == "image")),
            tools: model.tool_call,
            reasoning: model.reasoning,
            ..Profile::default()
        },
        context_tokens: model.limit.context,
        max_output_tokens: model.limit.output,
    })
}

fn key_of(member: &str) -> Option<&'static str> {
    let found = TOKEN_PRICES.iter().find(|(name, _)| *name == member);
    found.map(|(_, key)| *key)
}

fn price(member: &str, value: &RawValue) -> Result<PriceValue, String> {
    let price =
        decimal::price(value.get(), 0).map_err(|fault| format!("cost.{member}: {fault}"))?;
    Ok(PriceValue::Text(price))
}
