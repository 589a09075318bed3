//! Answers with the model catalog, in the list formats of the chat dialect and of Generate Content.

use std::sync::LazyLock;

use engine::{Catalog, Model, clock};
use protocol::{Failure, Thinking};
use serde::Serialize;
use store::KeyHead;

use crate::endpoint::Endpoint;
use crate::model_facts::{ModelFacts, generation_methods};

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Entry<'a>>,
}

/// A catalog entry of our API, followed by members that clients of other gateways read.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    owned_by: &'a str,
    #[serde(flatten)]
    facts: ModelFacts<'a>,
}

#[derive(Serialize)]
struct GoogleList<'a> {
    models: Vec<GoogleEntry<'a>>,
}

/// A catalog entry of Generate Content.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoogleEntry<'a> {
    name: String,
    display_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_token_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_token_limit: Option<u64>,
    supported_generation_methods: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<bool>,
}

/// The models of a key, or one of them, in the format of the endpoint. `aliases` says whether paths that only SDKs use
/// are served.
pub(super) fn show(
    catalog: &Catalog,
    key: &KeyHead,
    endpoint: &Endpoint,
    aliases: bool,
) -> Result<Vec<u8>, Failure> {
    Ok(match endpoint {
        Endpoint::Models => to_json(&List {
            object: "list",
            data: catalog
                .list_for(key)
                .map(|model| entry(model, aliases))
                .collect(),
        }),
        Endpoint::Model(id) => to_json(&entry(catalog.find(id, key)?, aliases)),
        Endpoint::GoogleModels => {
            let models = catalog.list_for(key);
            let models = models.map(|model| google_entry(model, aliases)).collect();
            to_json(&GoogleList { models })
        }
        Endpoint::GoogleModel(id) => to_json(&google_entry(catalog.find(id, key)?, aliases)),
        _ => return Err(Failure::internal()),
    })
}

fn entry(model: &Model, aliases: bool) -> Entry<'_> {
    Entry {
        id: &model.id,
        object: "model",
        created: created(model),
        owned_by: model.maker(),
        facts: ModelFacts::of(model, aliases),
    }
}

/// The time in the configuration, or else the time at which this process first listed its models. Never 0, which
/// clients would show as 1970.
fn created(model: &Model) -> i64 {
    static FIRST_LISTED: LazyLock<i64> = LazyLock::new(|| clock::now().get() / 1000);
    match model.created {
        0 => *FIRST_LISTED,
        configured => configured,
    }
}

fn google_entry(model: &Model, aliases: bool) -> GoogleEntry<'_> {
    let profile = &model.profile;
    let thinks = profile.thinking.map(|thinking| thinking != Thinking::None);
    GoogleEntry {
        name: format!("models/{}", model.id),
        display_name: &model.id,
        input_token_limit: profile.context_tokens,
        output_token_limit: profile.max_output_tokens,
        supported_generation_methods: generation_methods(model, aliases),
        thinking: profile.reasoning.or(thinks),
    }
}

fn to_json(document: &impl Serialize) -> Vec<u8> {
    // Strings and numbers always serialize.
    serde_json::to_vec(document).unwrap_or_default()
}
