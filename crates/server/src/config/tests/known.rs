//! The values that entries and channels take from the catalog of known models.

use std::path::Path;

use upstream::Preset;

use crate::config::catalog::plan::resolve_in;
use crate::config::load::parse_in;
use crate::config::*;
use crate::known_models::KnownModels;

fn environment(name: &str) -> Option<String> {
    name.ends_with("_KEY").then(|| "secret".to_owned())
}

fn parse(text: &str) -> Result<Config, Vec<String>> {
    let parsed = parse_in(text, Path::new("t.toml"), &environment);
    parsed.map_err(|problems| {
        let told = problems.iter();
        told.map(|it| format!("{}: {}", it.key, it.message))
            .collect()
    })
}

fn channel(name: &str, preset: &str, more: &str) -> String {
    format!(
        "[[channel]]\nname = '{name}'\npreset = '{preset}'\ncredential = {{ env = 'A_KEY' }}\n{more}\n"
    )
}

fn model<'c>(config: &'c Config, id: &str) -> &'c Model {
    let found = config.models.iter().find(|model| model.id == id);
    found.unwrap_or_else(|| panic!("no {id}"))
}

/// The sources in the order of `Sources::named`.
fn sources(model: &Model) -> String {
    model
        .sources
        .named()
        .map(|(_, source)| source.as_str())
        .join(" ")
}

fn price(model: &Model) -> String {
    serde_json::to_string(&model.price).unwrap()
}

/// Every model of the catalog can be called as the catalog describes it.
#[test]
fn every_known_model_is_callable_through_each_of_its_vendors() {
    let known = KnownModels::built_in();
    let mut served = std::collections::BTreeSet::new();
    for preset in Preset::all() {
        let of_preset: Vec<_> = known.of_preset(preset).map(|(model, _)| model).collect();
        if of_preset.is_empty() {
            continue;
        }
        let text = channel("main", preset.as_str(), "models = 'all'");
        let config = parse(&text).unwrap_or_else(|problems| panic!("{preset}: {problems:?}"));
        let plan = resolve_in(&config, &environment).unwrap();
        assert_eq!(plan.unlisted, [], "{preset}");
        assert_eq!(plan.models.len(), of_preset.len(), "{preset}");
        for (spec, known) in plan.models.iter().zip(of_preset) {
            let offer = known.offer(preset).unwrap();
            let base = known.profile.base;
            let [route] = &spec.routes[..] else {
                panic!("{}", spec.id)
            };
            let fitting = crate::config::protocols_for(known.kind, base);
            for protocol in &offer.protocols {
                assert!(fitting.contains(protocol), "{}: {protocol}", known.id);
                assert!(
                    preset.protocols().contains(protocol),
                    "{}: {preset} does not speak {protocol}",
                    known.id
                );
            }
            assert_eq!(route.cost.as_ref(), Some(known.cost(preset)));
            assert!(
                route
                    .dialect
                    .is_none_or(|it| offer.protocols.contains(&it.into())),
                "{}",
                known.id
            );
            served.insert(known.id.clone());
        }
    }
    assert_eq!(
        served.len(),
        known.iter().count(),
        "every model has a vendor"
    );
}

#[test]
fn an_entry_can_be_as_short_as_its_id_and_routes() {
    let text = channel("main", "openai", "markup = '1.5'")
        + "[[model]]\nid = 'openai/gpt-6-luna'\nroutes = [{ channel = 'main' }]\n";
    let config = parse(&text).unwrap();
    let luna = model(&config, "openai/gpt-6-luna");
    let (known, _) = KnownModels::built_in().find(&luna.id).unwrap();
    assert_eq!(luna.kind, known.kind);
    assert_eq!(luna.profile, known.profile);
    assert_eq!(luna.routes[0].model, "gpt-6-luna");
    assert_eq!(luna.routes[0].cost.as_ref(), Some(&known.price));
    let expected = known.price.marked_up("1.5".parse().unwrap()).unwrap();
    assert_eq!(luna.price.as_ref(), Some(&expected));
    assert!(
        price(luna).starts_with(r#"{"input":"0.15","cached_input":"0.015","#),
        "{}",
        price(luna)
    );
    assert_eq!(sources(luna), "catalog default file catalog catalog");
    assert_eq!(luna.sources.markup, Some("1.5".parse().unwrap()));
}

#[test]
fn what_the_file_says_wins() {
    let text = channel(
        "main",
        "openai",
        "markup = '2'\nmodels = ['openai/gpt-6-luna']",
    ) + "[[model]]\nid = 'openai/gpt-6-luna'\nkind = 'text'\ncreated = 2026-01-01\n\
           price = { input = '7', output = '8' }\nprofile = { max_output_tokens = 5 }\n";
    let config = parse(&text).unwrap();
    let luna = model(&config, "openai/gpt-6-luna");
    assert_eq!(price(luna), r#"{"input":"7","output":"8"}"#);
    assert_eq!(luna.profile.max_output_tokens, Some(5));
    assert_eq!(luna.profile.vision, None);
    assert_eq!(sources(luna), "file file channel file file");
    assert_eq!(config.models.len(), 1);
    // A route that the entry names is the only one.
    let text = channel("main", "openai", "models = 'all'")
        + &channel("other", "openai", "")
        + "[[model]]\nid = 'openai/gpt-6-luna'\nroutes = [{ channel = 'other', model = 'x' }]\n";
    let config = parse(&text).unwrap();
    let luna = model(&config, "openai/gpt-6-luna");
    assert_eq!(luna.routes.len(), 1);
    assert_eq!(
        (luna.routes[0].model.as_str(), &luna.routes[0].cost),
        ("x", &None)
    );
    assert_eq!(sources(luna), "catalog default file catalog catalog");
}

#[test]
fn single_capabilities_of_a_known_model_can_be_overridden() {
    let text = channel("main", "openai", "")
        + "[[model]]\nid = 'openai/gpt-6-luna'\nroutes = [{ channel = 'main' }]\n\
           profile = { max_output_tokens = 5, base = 'catalog' }\n";
    let config = parse(&text).unwrap();
    let luna = model(&config, "openai/gpt-6-luna");
    let (known, _) = KnownModels::built_in().find(&luna.id).unwrap();
    let expected = protocol::Profile {
        max_output_tokens: Some(5),
        ..known.profile.clone()
    };
    assert_eq!(luna.profile, expected);
}

#[test]
fn two_channels_of_one_model_share_it_and_the_first_prices_it() {
    let text = channel("a", "openai", "models = ['openai/*']\nmarkup = '1.2'")
        + &channel("b", "openai", "models = 'all'\nmarkup = '3'");
    let config = parse(&text).unwrap();
    let luna = model(&config, "openai/gpt-6-luna");
    let names: Vec<_> = luna.routes.iter().map(|it| it.channel.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(
        price(luna).starts_with(r#"{"input":"0.12","#),
        "{}",
        price(luna)
    );
    assert_eq!(
        luna.notes,
        ["has the price of channel `a`; channel `b` has another cost or markup"]
    );
}

#[test]
fn a_vendor_who_serves_fewer_dialects_pins_the_route() {
    let known = KnownModels::built_in();
    let openai: Preset = "openai".parse().unwrap();
    let responses_only = known
        .of_preset(openai)
        .map(|(model, _)| model)
        .find(|model| {
            let offer = model.offer(openai).unwrap();
            offer.protocols == [upstream::Protocol::Responses]
        });
    let id = &responses_only.unwrap().id;
    let config = parse(&channel("main", "openai", "models = 'all'")).unwrap();
    assert_eq!(
        model(&config, id).routes[0].dialect,
        Some(protocol::Dialect::Responses)
    );
    assert_eq!(model(&config, "openai/gpt-6-luna").routes[0].dialect, None);
    // A channel that leaves out protocols serves what is left.
    let config = parse(&channel(
        "main",
        "openai",
        "models = 'all'\nprotocols = ['chat']",
    ))
    .unwrap();
    assert!(config.models.iter().all(|model| model.id != *id));
    assert!(
        config
            .models
            .iter()
            .all(|model| model.kind == protocol::Kind::Text)
    );
}

#[test]
fn what_the_catalog_cannot_provide_is_a_problem() {
    for (text, expected) in [
        (
            channel("main", "openai", "models = 'some'"),
            &["channel[0].models: must be \"all\" or a list of model ids, found a string"][..],
        ),
        (
            channel("main", "openai", "models = []"),
            &["channel[0].models: must be \"all\" or a list of model ids"],
        ),
        (
            channel("main", "openai", "models = [1]"),
            &["channel[0].models: must be \"all\" or a list of model ids, found a whole number"],
        ),
        (
            channel(
                "main",
                "openai",
                "models = ['openai/gpt-6-lunar', 'x/*']\nmarkup = 'a'",
            ),
            &[
                "channel[0].models: the catalog has no model `openai/gpt-6-lunar` of preset `openai`; \
                 did you mean `openai/gpt-6-luna`?",
                "channel[0].models: the catalog has no model `x/*` of preset `openai`",
                "channel[0].markup: must be a decimal text above 0, such as \"1.2\"",
            ],
        ),
        (
            channel(
                "main",
                "openai",
                "models = ['openai/gpt-6-luna']\nprotocols = ['images']",
            ),
            &[
                "channel[0].models: the channel speaks no protocol of `openai/gpt-6-luna`; its `protocols` leave them out",
            ],
        ),
        (
            channel(
                "main",
                "openai-compatible",
                "models = 'all'\nbase_url = 'http://h/v1'\nmarkup = 1.2",
            ),
            &[
                "channel[0].models: the catalog has no models of preset `openai-compatible`; list them as [[model]] entries",
                "channel[0].markup: must be a decimal text such as \"1.2\", found a number with a fraction",
            ],
        ),
        (
            channel("main", "openai", "")
                + "[[model]]\nid = 'a/b'\nprofile = { base = 'catalog' }\nroutes = [{ channel = 'main' }]\n",
            &[
                "model[0].kind: is missing",
                "model[0].routes[0].model: is missing",
                "model[0].profile.base: the catalog does not know this model",
            ],
        ),
        (
            "[catalog]\nfile = 'none.toml'\n".to_owned(),
            &["catalog.file: none.toml cannot be read: No such file or directory (os error 2)"],
        ),
    ] {
        let mut told = parse(&text).unwrap_err();
        let mut expected: Vec<_> = expected.iter().map(|it| (*it).to_owned()).collect();
        told.sort();
        expected.sort();
        assert_eq!(told, expected, "{text}");
    }
}

#[test]
fn a_file_of_known_models_replaces_single_entries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    let text = "version = '1'\ndate = '2026-11-17'\n[[model]]\nid = 'openai/gpt-6-luna'\nkind = 'text'\n\
        created = '2026-09-22'\nprice = { input = '5', output = '6' }\nprofile = { max_output_tokens = 7 }\n\
        vendors = [{ preset = 'openai', model = 'gpt-6-luna', protocols = ['chat'], cost = { input = '4', output = '5' } }]\n\
        source = 'us'\nunsure = 'the price'\n";
    std::fs::write(&file, text).unwrap();
    let text = format!("[catalog]\nfile = '{}'\n", file.display())
        + &channel("main", "openai", "models = 'all'\nmarkup = '2'");
    let config = parse(&text).unwrap();
    let luna = model(&config, "openai/gpt-6-luna");
    assert_eq!(price(luna), r#"{"input":"8","output":"10"}"#);
    assert_eq!(
        sources(luna),
        "catalog-file catalog-file channel catalog-file catalog-file"
    );
    assert_eq!(luna.created, 1_790_035_200);
    assert_eq!(luna.notes, ["its figures are not certain: the price"]);
    assert!(config.models.len() > 10);
}
