//! Compares small catalogs in other formats with known models.

use ledger::{PriceCard, PriceKey};
use serde_json::json;

use super::diff::Direction;
use super::{Form, Merged, changes, merge, read};
use crate::known_models::{KnownModels, Origin};

/// Two known models, each with one vendor.
const KNOWN: &str = r#"
version = "1"
date = "2026-11-15"
[[model]]
id = "openai/a"
kind = "text"
price = { input = "1", cached_input = "0.1", output = "8" }
profile = { context_tokens = 400000, max_output_tokens = 100000, vision = true }
vendors = [{ preset = "openai", model = "a-2026", protocols = ["responses", "chat"] }]
source = "a page"
[[model]]
id = "meta/b"
kind = "text"
price = { input = "0.2", output = "0.6" }
profile = { context_tokens = 128000, max_output_tokens = 8192 }
vendors = [{ preset = "groq", model = "b", protocols = ["chat"] }]
source = "a page"
"#;

fn known() -> KnownModels {
    KnownModels::parse(KNOWN, Origin::BuiltIn).unwrap()
}

fn merged(text: &str, all: bool) -> (Form, Merged) {
    let (form, proposals) = read(text, None).unwrap();
    (form, merge(&known(), proposals, all, "test"))
}

/// The changes as `id what before after direction`.
fn change_lines(merged: &Merged) -> Vec<String> {
    let changes = merged.changes.iter().map(|it| {
        let text = |value: Option<&String>| value.map_or("-", String::as_str).to_owned();
        let (before, after) = (text(it.before.as_ref()), text(it.after.as_ref()));
        let direction = it.direction.as_str();
        format!("{} {} {before} {after} {direction}", it.id, it.what)
            .trim_end()
            .to_owned()
    });
    changes.collect()
}

#[test]
fn prices_of_litellm_are_taken_exactly_and_the_rest_is_told() {
    let text = json!({
        "sample_spec": { "litellm_provider": "one of the providers", "mode": "chat" },
        "a-2026": {
            "litellm_provider": "openai", "mode": "responses",
            "input_cost_per_token": 1.25e-06, "output_cost_per_token": 7.5e-06,
            "cache_read_input_token_cost": 1.25e-07, "input_cost_per_token_batches": 5e-07,
            "input_cost_per_token_above_272k_tokens": 2.5e-06,
            "output_cost_per_token_above_272k_tokens": 1.5e-05,
            "search_context_cost_per_query": { "search_context_size_low": 0.01 },
            "max_input_tokens": 272_000, "max_output_tokens": 128_000, "supports_vision": true
        },
        "groq/b": {
            "litellm_provider": "groq", "mode": "chat",
            "input_cost_per_token": 2e-07, "output_cost_per_token": 6e-07, "max_output_tokens": "8192"
        },
        "groq/c": {
            "litellm_provider": "groq", "mode": "chat",
            "input_cost_per_token": 3e-07, "output_cost_per_token": 9e-07,
            "max_input_tokens": 32_768, "max_output_tokens": 4096, "supports_function_calling": true
        },
        "whisper": { "litellm_provider": "openai", "mode": "audio_transcription" },
        "x": { "litellm_provider": "nobody", "mode": "chat" },
    })
    .to_string();
    let (form, some) = merged(&text, false);
    assert_eq!(form, Form::Litellm);
    assert_eq!(
        change_lines(&some),
        [
            "openai/a price.cached_input 0.1 0.125 dearer",
            "openai/a price.input 1 1.25 dearer",
            "openai/a price.long_context[0].above_tokens - 272000",
            "openai/a price.long_context[0].input - 2.5 price",
            "openai/a price.long_context[0].output - 15 price",
            "openai/a price.output 8 7.5 cheaper",
            "openai/a profile.max_output_tokens 100000 128000",
        ]
    );
    assert_eq!((some.unchanged, some.unknown), (1, 1));
    let unmapped: Vec<_> = some
        .unmapped
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    assert_eq!(
        unmapped,
        [
            "a-2026: member search_context_cost_per_query has no price key",
            "whisper: models of mode audio_transcription are not imported",
            "x: no preset for provider nobody",
        ]
    );
    // The maximum input does not replace the context window of a known model.
    assert_eq!(some.entries[0].profile.context_tokens, Some(400_000));
    assert_eq!(some.entries[0].source, "test");

    let (_, all) = merged(&text, true);
    let new = all.entries.iter().find(|it| it.id == "groq/c").unwrap();
    assert_eq!(new.profile.tools, Some(true));
    assert!(new.unsure.is_some());
    assert!(
        all.changes
            .iter()
            .any(|it| it.direction == Direction::New && it.what == "price.input")
    );
}

#[test]
fn prices_of_models_dev_are_taken_with_windows_and_dates() {
    let text = json!({
        "openai": { "id": "openai", "env": ["OPENAI_API_KEY"], "models": {
            "a-2026": {
                "id": "a-2026", "name": "A", "reasoning": true, "tool_call": true, "release_date": "2026-09-22",
                "modalities": { "input": ["text", "image"], "output": ["text"] },
                "cost": { "input": 1, "output": 8, "cache_read": 0.05, "context_over_200k": { "input": 2, "output": 12 }, "reasoning": 8 },
                "limit": { "context": 400_000, "output": 100_000 }
            },
            "pictures": { "modalities": { "input": ["text"], "output": ["image"] } },
        } },
        "nobody": { "id": "nobody", "models": { "x": {} } },
    })
    .to_string();
    let (form, merged) = merged(&text, false);
    assert_eq!(form, Form::ModelsDev);
    assert_eq!(
        change_lines(&merged),
        [
            "openai/a created - 2026-09-22",
            "openai/a price.cached_input 0.1 0.05 cheaper",
            "openai/a price.long_context[0].above_tokens - 200000",
            "openai/a price.long_context[0].input - 2 price",
            "openai/a price.long_context[0].output - 12 price",
        ]
    );
    let unmapped: Vec<_> = merged
        .unmapped
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    assert_eq!(
        unmapped,
        [
            "nobody: no preset for this provider (1 models)",
            "openai/a-2026: cost.reasoning has no price key",
            "openai/pictures: only models whose output is text are imported",
        ]
    );
}

/// The maker sets the list price and the limits of a model.
#[test]
fn figures_of_another_vendor_change_the_cost_at_that_vendor_alone() {
    let known = KNOWN.replace(
        "protocols = [\"responses\", \"chat\"] }]",
        "protocols = [\"responses\"] }, { preset = \"azure\", model = \"a-2026\", protocols = [\"responses\"] }]",
    );
    let known = KnownModels::parse(&known, Origin::BuiltIn).unwrap();
    let azure = |input: f64| {
        let text = json!({ "a-2026": {
            "litellm_provider": "azure", "mode": "chat", "max_output_tokens": 5,
            "input_cost_per_token": input, "output_cost_per_token": 8e-06,
        } });
        let (_, proposals) = read(&text.to_string(), None).unwrap();
        merge(&known, proposals, false, "test")
    };
    assert_eq!(azure(1e-06).entries, []);
    let dearer = azure(2e-06);
    let entry = &dearer.entries[0];
    assert_eq!(entry.profile.max_output_tokens, Some(100_000));
    assert_eq!(
        change_lines(&dearer),
        [
            "openai/a vendors[1].cost.cached_input - 0.1 price",
            "openai/a vendors[1].cost.input - 2 price",
            "openai/a vendors[1].cost.output - 8 price",
        ]
    );
}

/// In this source the second vendor comes first, with a cost that equals the old list price.
#[test]
fn another_vendor_keeps_its_figures_when_the_list_price_changes_in_the_same_source() {
    let known = KNOWN.replace(
        "protocols = [\"responses\", \"chat\"] }]",
        "protocols = [\"responses\"] }, { preset = \"azure\", model = \"a-2026\", protocols = [\"responses\"] }]",
    );
    let known = KnownModels::parse(&known, Origin::BuiltIn).unwrap();
    let text = json!({
        "azure/a-2026": {
            "litellm_provider": "azure", "mode": "chat",
            "input_cost_per_token": 1e-06, "output_cost_per_token": 8e-06,
        },
        "openai/a-2026": {
            "litellm_provider": "openai", "mode": "chat",
            "input_cost_per_token": 5e-07, "output_cost_per_token": 4e-06,
        },
    });
    let (_, proposals) = read(&text.to_string(), None).unwrap();
    let changed = merge(&known, proposals, false, "test");
    let entry = &changed.entries[0];
    let input = |card: &PriceCard| card.unit_price(PriceKey::Input).map(|it| it.to_string());
    assert_eq!(input(&entry.price).as_deref(), Some("0.5"));
    let azure = &entry.vendors[1];
    assert_eq!(input(azure.cost.as_ref().unwrap()).as_deref(), Some("1"));
    assert_eq!(azure.source.as_deref(), Some("test"));
}

#[test]
fn a_catalog_of_our_own_form_is_compared_entry_by_entry() {
    let (form, same) = merged(KNOWN, true);
    assert_eq!(
        (form, same.unchanged, same.entries.len()),
        (Form::Tollgate, 2, 0)
    );
    let text = KNOWN.replace("0.6", "0.5").replace("meta/b", "meta/new");
    let (_, known_only) = merged(&text, false);
    assert_eq!((known_only.unknown, known_only.entries.len()), (1, 0));
    let (_, all) = merged(&text, true);
    assert_eq!(all.entries.len(), 1);
}

#[test]
fn figures_that_do_not_belong_together_are_refused() {
    let text = json!({
        "a-2026": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 5e-08 },
        "n": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 5e-08, "output_cost_per_token": 1e-07 },
        "o": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 5e-08, "max_output_tokens": 10 },
        "p": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": -1 },
        "spaced name": {
            "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0, "max_output_tokens": 10
        },
    })
    .to_string();
    let (_, merged) = merged(&text, true);
    assert!(merged.entries.is_empty());
    let unmapped: Vec<_> = merged
        .unmapped
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    assert_eq!(
        unmapped,
        [
            "p: input_cost_per_token: -1 is no decimal number",
            "openai: a-2026: cached input would cost 0.1, more than input with 0.05",
            "openai: n: no upper bound: neither an output limit nor a window is stated",
            "openai: o: a text model needs `output`",
            "openai: spaced name: \"openai/spaced name\" cannot be a model id",
        ]
    );
}

#[test]
fn a_text_of_no_known_form_is_refused() {
    for text in ["", "[]", "{}", "{\"a\": 1}", "x = 1"] {
        assert!(read(text, None).is_err(), "{text}");
    }
    assert!(read("{\"a\": {\"models\": {}}}", Some(Form::Tollgate)).is_err());
}

#[test]
fn a_model_does_not_differ_from_itself() {
    for (model, _) in KnownModels::built_in().iter() {
        assert_eq!(changes(Some(model), model), []);
    }
}
