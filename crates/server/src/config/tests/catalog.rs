//! Tests that all problems of channels, models and routes are reported, each at its position.

use super::config::{CHANNEL, parse, plan, problems};

#[test]
fn every_problem_of_the_channels_is_told_with_its_place() {
    for (text, expected) in [
        (
            "[[channel]]",
            &[
                "1:1 channel[0].name: is missing",
                "1:1 channel[0].preset: is missing",
            ][..],
        ),
        (
            "[[channel]]\nname = 'a b'\npreset = 'opena'",
            &[
                "2:8 channel[0].name: must be at most 64 letters, digits and any of `-_.`",
                "3:10 channel[0].preset: is no preset; did you mean `openai`?",
            ],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'openai-compatible'",
            &[
                "1:1 channel[0].base_url: is missing: preset `openai-compatible` has no address of its own",
            ],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'openai'\nbase_url = 'api.openai.com'\nprotocols = ['chat', 'chatt']",
            &[
                "4:12 channel[0].base_url: must be an http:// or https:// address",
                "5:22 channel[0].protocols[1]: \"chatt\" is none of: chat responses messages generate interactions embeddings images video-a omni predict content-task voice converse",
            ],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'azure'\naccount = { resourc = 'x' }\n[[channel]]\nname = 'b'\npreset = 'vertex'\nbase_url = 'http://h'",
            &[
                "1:1 channel[0].account.resource: is missing: preset `azure` needs it",
                "4:13 channel[0].account.resourc: unknown setting; did you mean `resource`?",
                "5:1 channel[1].account.project: is missing: preset `vertex` needs it",
            ],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'openai'\naccount = { project = 'p' }",
            &["1:1 channel[0].account: preset `openai` has no account settings"],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'openai'\nprotocols = []",
            &[
                "1:1 channel[0].protocols: must name at least one protocol, or be left out for the preset's own",
            ],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'openai'\n[[channel]]\nname = 'a'\npreset = 'xai'",
            &["5:8 channel[1].name: a channel `a` stands above already"],
        ),
        (
            "[[channel]]\nname = 'a'\npreset = 'openai'\ncredential = { env = 'TWO_LINES' }",
            &[
                "4:14 channel[0].credential: environment variable TWO_LINES holds more than one line of plain text",
            ],
        ),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn every_problem_of_the_models_is_told_with_its_place() {
    for (text, expected) in [
        (
            "[[model]]",
            &[
                "5:1 model[0].id: is missing",
                "5:1 model[0].kind: is missing",
            ][..],
        ),
        (
            "[[model]]\nid = 'gpt'\nkind = 'txt'",
            &[
                "6:6 model[0].id: must have the form <maker>/<model>",
                "7:8 model[0].kind: must be `text` or `embedding` or `image` or `video` or `audio`",
            ],
        ),
        (
            "[[model]]\nid = 'a//b'\nkind = 'text'",
            &["6:6 model[0].id: must have the form <maker>/<model>"],
        ),
        (
            "[[model]]\nid = 'a/../b'\nkind = 'text'",
            &["6:6 model[0].id: must have the form <maker>/<model>"],
        ),
        (
            "[[model]]\nid = 'a/b?c'\nkind = 'text'",
            &["6:6 model[0].id: must be letters, digits and any of `-_.:@+~/`"],
        ),
        (
            "[[model]]\nid = 'a/b'\nkind = 'text'\n[[model]]\nid = 'a/b'\nkind = 'text'",
            &["9:6 model[1].id: a model `a/b` stands above already"],
        ),
        (
            "[[model]]\nid = 'a/b'\nkind = 'text'\ncreated = 07:30:00",
            &["8:11 model[0].created: must be Unix seconds or a date"],
        ),
        (
            "[[model]]\nid = 'a/b'\nkind = 'text'\nroutes = [{ channel = 'mian', model = 'x' }, { channel = 'main', weight = 0 }]",
            &[
                "8:23 model[0].routes[0].channel: no channel `mian`; did you mean `main`?",
                "8:46 model[0].routes[1].model: is missing",
                "8:75 model[0].routes[1].weight: must be above 0",
            ],
        ),
        (
            "[[model]]\nid = 'a/b'\nkind = 'text'\nprice = { inptu = '1', output = 'ten', input = 1.25 }",
            &[
                "8:19 model[0].price.inptu: is not a price key; did you mean `input`?",
                "8:33 model[0].price.output: is not a decimal number such as \"1.25\"",
                "8:48 model[0].price.input: must be a decimal string such as \"1.25\", not a number with a fraction",
            ],
        ),
        (
            "[[model]]\nid = 'a/b'\nkind = 'text'\nprofile = { visoin = true, context_tokens = 'x', base = 'video-a' }",
            &[
                "8:22 model[0].profile.visoin: unknown capability; did you mean `vision`?",
                "8:45 model[0].profile.context_tokens: invalid type: string \"x\", expected u64",
                "8:57 model[0].profile.base: describes video models; this one is of kind text",
            ],
        ),
    ] {
        let text = format!("{CHANNEL}{text}");
        assert_eq!(problems(&text), expected, "{text}");
    }
}

#[test]
fn a_route_needs_a_channel_that_speaks_for_the_kind() {
    let file = |kind: &str, protocols: &str, rest: &str| {
        format!(
            "[[channel]]\nname = 'main'\npreset = 'sim'\nbase_url = 'http://sim/v1'\nprotocols = {protocols}\n\
             [[model]]\nid = 'a/b'\nkind = '{kind}'\nroutes = [{{ channel = 'main', model = 'x' {rest} }}]\n"
        )
    };
    for (kind, protocols, rest) in [
        ("text", "['messages']", ""),
        ("text", "['chat', 'responses']", ", dialect = 'responses'"),
        ("embedding", "['embeddings']", ""),
        ("image", "['generate']", ""),
        ("video", "['predict']", ""),
        ("audio", "['voice']", ""),
    ] {
        assert_eq!(
            problems(&file(kind, protocols, rest)),
            [""; 0],
            "{kind} {protocols}"
        );
    }
    for (kind, protocols, rest, expected) in [
        (
            "text",
            "['images']",
            "",
            "9:23 model[0].routes[0].channel: channel `main` speaks images; this text model needs chat or responses or messages or generate or interactions or converse",
        ),
        (
            "text",
            "['chat']",
            ", dialect = 'messages'",
            "9:55 model[0].routes[0].dialect: channel `main` speaks chat",
        ),
        (
            "embedding",
            "['embeddings']",
            ", dialect = 'chat'",
            "9:55 model[0].routes[0].dialect: a route is pinned to a dialect for text models only",
        ),
        (
            "video",
            "['voice']",
            "",
            "9:23 model[0].routes[0].channel: channel `main` speaks voice; this video model needs video-a or omni or predict or content-task",
        ),
    ] {
        let text = file(kind, protocols, rest);
        assert_eq!(problems(&text)[0], expected, "{text}");
    }
}

#[test]
fn a_faulty_channel_is_told_once_and_not_again_by_its_routes() {
    let text = "[[channel]]\nname = 'main'\n[[model]]\nid = 'a/b'\nkind = 'text'\nroutes = [{ channel = 'main', model = 'x' }]";
    assert_eq!(problems(text), ["1:1 channel[0].preset: is missing"]);
}

#[test]
fn the_base_of_a_profile_decides_the_protocol() {
    let file = |kind: &str, base: &str, protocols: &str| {
        format!(
            "[[channel]]\nname = 'main'\npreset = 'sim'\nbase_url = 'http://sim/v1'\nprotocols = {protocols}\n\
             [[model]]\nid = 'a/b'\nkind = '{kind}'\nprofile = {{ base = '{base}' }}\n\
             routes = [{{ channel = 'main', model = 'x' }}]\n"
        )
    };
    for (kind, base, protocol, other) in [
        ("image", "gpt-image", "images", "generate"),
        ("image", "native-image", "generate", "images"),
        ("video", "video-a", "video-a", "omni"),
        ("video", "omni-1.1", "omni", "predict"),
        ("video", "predict-3.1-fast", "predict", "content-task"),
        ("video", "content-1.5-pro", "content-task", "video-a"),
    ] {
        assert_eq!(
            problems(&file(kind, base, &format!("['{protocol}']"))),
            [""; 0],
            "{base}"
        );
        let reported = problems(&file(kind, base, &format!("['{other}']")));
        assert_eq!(reported.len(), 1, "{base} {reported:?}");
        assert!(
            reported[0].ends_with(&format!("needs {protocol}")),
            "{reported:?}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_model_that_cannot_be_called_is_set_aside_with_the_reason() {
    let text = r#"
[[channel]]
name = "live"
preset = "openai"
credential = { env = "SET" }
[[channel]]
name = "bare"
preset = "openai"
[[channel]]
name = "unset"
preset = "anthropic"
credential = { env = "UNSET" }
[[channel]]
name = "empty"
preset = "openai-compatible"
base_url = "http://localhost:1"
credential = { env = "EMPTY" }

[[model]]
id = "a/good"
kind = "text"
routes = [{ channel = "bare", model = "x" }, { channel = "live", model = "y", priority = 1 }]
price = { input = "1", output = "2" }
profile = { max_output_tokens = 10 }
[[model]]
id = "a/disabled"
kind = "text"
enabled = false
[[model]]
id = "a/no-price"
kind = "text"
[[model]]
id = "a/half-price"
kind = "text"
price = { input = "1" }
[[model]]
id = "a/no-bound"
kind = "text"
price = { input = "1", output = "2" }
[[model]]
id = "a/no-image-bound"
kind = "image"
price = { input = "1", output = "2", image_output = "3" }
[[model]]
id = "a/no-video-bound"
kind = "video"
price = { video_second = "0.5" }
[[model]]
id = "a/no-tokens"
kind = "video"
price = { video_second = "0.5" }
profile = { base = "content-2.0" }
[[model]]
id = "a/no-seconds"
kind = "video"
price = { video_tokens = "5" }
profile = { base = "predict-3.1" }
[[model]]
id = "a/no-words"
kind = "image"
price = { image = "0.5" }
profile = { base = "native-image" }
[[model]]
id = "a/endless-words"
kind = "image"
price = { input = "1", output = "2", image_output = "3" }
profile = { base = "native-image", image_tokens_max = 5 }
[[model]]
id = "a/no-route"
kind = "embedding"
price = { input = "1" }
[[model]]
id = "a/no-live-channel"
kind = "text"
routes = [{ channel = "unset", model = "x" }, { channel = "empty", model = "x" }]
price = { input = "1", output = "2" }
profile = { context_tokens = 10 }
"#;
    let plan = plan(text);
    let listed: Vec<_> = plan.models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(listed, ["a/good"]);
    let routes: Vec<_> = plan.models[0]
        .routes
        .iter()
        .map(|route| route.channel.as_str())
        .collect();
    assert_eq!(routes, ["live"]);
    let channels: Vec<_> = plan
        .channels
        .iter()
        .map(|channel| channel.name.as_str())
        .collect();
    assert_eq!(channels, ["live"]);
    let reported: Vec<_> = plan
        .unlisted
        .iter()
        .map(|(id, why)| format!("{id}: {why}"))
        .collect();
    assert_eq!(
        reported,
        [
            "a/disabled: disabled",
            "a/no-price: no price",
            "a/half-price: a text model needs `output`",
            "a/no-bound: no upper bound: the profile has no max_output_tokens",
            "a/no-image-bound: no upper bound: the profile has no image_tokens_max",
            "a/no-video-bound: no upper bound: the profile has neither base nor durations",
            "a/no-tokens: a video model of this base needs `video_tokens`",
            "a/no-seconds: a video model of this base needs `video_second`",
            "a/no-words: a model of the base native-image needs `input` and `output`",
            "a/endless-words: no upper bound: the profile has no max_output_tokens",
            "a/no-route: no route",
            "a/no-live-channel: no live channel (channel unset: environment variable UNSET is not set; channel empty: environment variable EMPTY is empty)",
        ]
    );
}

#[test]
fn dates_of_models_are_unix_seconds() {
    for (created, expected) in [
        ("1700000000", 1_700_000_000),
        ("1970-01-02", 86_400),
        ("1970-01-02T00:00:01", 86_401),
        ("1970-01-02T01:00:01+01:00", 86_401),
    ] {
        let text = format!("[[model]]\nid = 'a/b'\nkind = 'text'\ncreated = {created}");
        assert_eq!(
            parse(&text).unwrap().models[0].created,
            expected,
            "{created}"
        );
    }
}

#[test]
fn a_cost_card_has_the_units_of_the_price() {
    let model = |cost: &str| {
        format!(
            "{CHANNEL}[[model]]\nid = 'a/b'\nkind = 'text'\nprice = {{ input = '1', output = '2', image_output = '3' }}\n\
             routes = [{{ channel = 'main', model = 'm', cost = {cost} }}]"
        )
    };
    let config = parse(&model(
        "{ input = '0.5', output = '1', image_output = '1' }",
    ))
    .unwrap();
    assert!(config.models[0].routes[0].cost.is_some());
    // Output classes without a price use the price of `output`.
    assert_eq!(problems(&model("{ input = '0.5', output = '1' }")), [""; 0]);
    assert_eq!(
        problems(&model("{ input = '0.5' }")),
        ["9:11 model[0].routes[0].cost: lacks `output`, which the price of the model has"]
    );
    assert_eq!(
        problems(&model("{ inptu = '1', output = '1' }")),
        ["9:61 model[0].routes[0].cost.inptu: is not a price key; did you mean `input`?"]
    );
}
