//! Tests of route settings: limits, order, stickiness, fallbacks and disabled channels.

use std::path::Path;

use engine::{RouteLimits, RouteOrder};

use crate::config::catalog::live_plan::resolve_in;
use crate::config::load::parse_in;
use crate::config::*;

const HEAD: &str = r#"
[[channel]]
name = "main"
preset = "sim"
base_url = "http://sim/v1"
[[channel]]
name = "spare"
preset = "openai"
enabled = false
credential = { env = "SPARE_KEY" }
[[model]]
id = "a/words"
kind = "text"
routes = [{ channel = "main", model = "x" }, { channel = "spare", model = "x" }]
price = { input = "1", output = "2" }
profile = { max_output_tokens = 10 }
[[model]]
id = "a/vectors"
kind = "embedding"
routes = [{ channel = "main", model = "x" }]
price = { input = "1" }
"#;

fn environment(name: &str) -> Option<String> {
    (name == "SPARE_KEY").then(|| "secret".to_owned())
}

fn read(model: &str) -> Result<Config, Vec<String>> {
    let text = format!("{HEAD}{model}");
    let config = parse_in(&text, Path::new("t.toml"), &environment);
    config.map_err(|problems| {
        let reported = problems
            .iter()
            .map(|it| format!("{}: {}", it.key, it.message));
        reported.collect()
    })
}

/// A text model with these additional members.
fn model(more: &str) -> String {
    format!(
        "[[model]]\nid = 'a/more'\nkind = 'text'\nprice = {{ input = '1', output = '2' }}\nprofile = {{ max_output_tokens = 10 }}\n{more}\n"
    )
}

#[test]
fn routing_settings_are_read() {
    let text = model(
        "order = 'cost'\nsticky = true\nfallbacks = ['a/words']\nroutes = [{ channel = 'main', model = 'x', rpm = 5, tpm = 700 }]",
    );
    let config = read(&text).unwrap();
    let more = config.models.iter().find(|it| it.id == "a/more").unwrap();
    assert_eq!(more.routing.order, RouteOrder::Cost);
    assert!(more.routing.sticky);
    assert_eq!(more.routing.fallbacks, ["a/words"]);
    let limits = RouteLimits {
        rpm: Some(5),
        tpm: Some(700),
    };
    assert_eq!(more.routes[0].limits, limits);
    let words = &config.models[0];
    assert_eq!(words.routing, engine::Routing::default());
    assert!(!words.routes[0].limits.is_limited());
}

#[test]
fn wrong_routing_settings_are_told() {
    let vectors = "[[model]]\nid = 'a/other-vectors'\nkind = 'embedding'\n";
    for (text, expected) in [
        (
            model("order = 'fast'"),
            "model[2].order: must be `priority` or `latency` or `cost`",
        ),
        (
            model("order = 'latency'\nsticky = true"),
            "model[2].sticky: calls cannot stick to a route and prefer the fastest one; leave out `order` or `sticky`",
        ),
        (
            format!("{vectors}sticky = true"),
            "model[2].sticky: only text models have prompts that an upstream caches",
        ),
        (
            format!("{vectors}fallbacks = ['a/words']"),
            "model[2].fallbacks[0]: only text models fall back to others",
        ),
        (
            model("fallbacks = ['a/more']"),
            "model[2].fallbacks[0]: a model does not fall back to itself",
        ),
        (
            model("fallbacks = ['a/word']"),
            "model[2].fallbacks[0]: no model `a/word`; did you mean `a/words`?",
        ),
        (
            model("fallbacks = ['a/vectors']"),
            "model[2].fallbacks[0]: `a/vectors` is not a text model",
        ),
        (
            model("fallbacks = ['a/words', 'a/words']"),
            "model[2].fallbacks[1]: `a/words` is listed twice",
        ),
        (
            model("routes = [{ channel = 'main', model = 'x', rpm = 0 }]"),
            "model[2].routes[0].rpm: must be above 0",
        ),
        (
            model("routes = [{ channel = 'main', model = 'x', tpm = 'many' }]"),
            "model[2].routes[0].tpm: must be a whole number, found a string",
        ),
    ] {
        let problems = read(&text).unwrap_err();
        assert_eq!(problems, [expected], "{text}");
    }
}

/// A disabled channel gets no routes, but it exists for its open tasks.
#[test]
fn a_disabled_channel_is_known_and_idle() {
    let only_there = model("routes = [{ channel = 'spare', model = 'x' }]");
    let config = read(&only_there).unwrap();
    let plan = resolve_in(&config, &environment).unwrap();
    let channels: Vec<_> = plan.channels.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(channels, ["main", "spare"]);
    assert_eq!(plan.idle, [("spare".to_owned(), "disabled".to_owned())]);
    assert_eq!(plan.disabled_channels().collect::<Vec<_>>(), ["spare"]);
    let why = "no live channel (channel spare: disabled)".to_owned();
    assert_eq!(plan.unlisted, [("a/more".to_owned(), why)]);
    assert_eq!(plan.models[0].routes.len(), 1);
    // Without its credential, the channel cannot even poll its tasks.
    let plan = resolve_in(&config, &|_| None).unwrap();
    assert_eq!(plan.channels.len(), 1);
    assert_eq!(plan.idle, [("spare".to_owned(), "disabled".to_owned())]);
}
