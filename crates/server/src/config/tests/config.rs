//! What is wrong with a file is told completely and in the right place.

use std::path::Path;

use crate::config::catalog::plan::resolve_in;
use crate::config::load::parse_in;
use crate::config::*;

const FILE: &str = "folder/t.toml";

/// Two variables; everything else is not set.
fn environment(name: &str) -> Option<String> {
    match name {
        "SET" => Some("secret-value".to_owned()),
        "EMPTY" => Some("  \n".to_owned()),
        "TWO_LINES" => Some("one\ntwo".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    parse_in(text, Path::new(FILE), &environment)
}

fn plan(text: &str) -> Plan {
    resolve_in(&parse(text).unwrap(), &environment).unwrap()
}

/// The problems as `line:column key: message`.
fn problems(text: &str) -> Vec<String> {
    let told = |problem: &Problem| {
        assert_eq!(problem.file, Path::new(FILE));
        let place = problem.place.unwrap();
        let (line, column) = (place.line, place.column);
        format!("{line}:{column} {}: {}", problem.key, problem.message)
    };
    match parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(told).collect(),
    }
}

const CHANNEL: &str = "[[channel]]\nname = 'main'\npreset = 'sim'\nbase_url = 'http://sim/v1'\n";

#[test]
fn an_empty_file_states_the_defaults() {
    let config = parse_in("", Path::new("t.toml"), &environment).unwrap();
    let expected = Config {
        file: Some("t.toml".into()),
        ..Config::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn paths_count_from_the_folder_of_the_file() {
    let config =
        parse("[store]\nurl = 'sqlite:data/x.db'\n[media]\nurl = 'file:/abs/media'").unwrap();
    assert_eq!(config.store.url, StoreUrl::File("folder/data/x.db".into()));
    assert_eq!(config.media.place, MediaPlace::Folder("/abs/media".into()));
    let config = parse("[store]\nurl = 'sqlite:///abs/x.db'").unwrap();
    assert_eq!(config.store.url, StoreUrl::File("/abs/x.db".into()));
    assert_eq!(
        config.media.place,
        MediaPlace::Folder("folder/tollgate-data/media".into())
    );
}

#[test]
fn every_problem_of_the_settings_is_told_with_its_place() {
    for (text, expected) in [
        (
            "[server]\nlisten = '0.0.0.0'",
            &[
                "2:10 server.listen: must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080",
            ][..],
        ),
        (
            "[server]\nlisen = 1\nsdk_aliases = 'yes'",
            &[
                "2:1 server.lisen: unknown setting; did you mean `listen`?",
                "3:15 server.sdk_aliases: must be true or false, found a string",
            ],
        ),
        (
            "[sever]",
            &["1:2 sever: unknown setting; did you mean `server`?"],
        ),
        (
            "zzzzzzzzz = 1",
            &[
                "1:1 zzzzzzzzz: unknown setting; known here: server, admin, store, media, outbound, tasks, limits, timeouts, ledger, journal, channel, model",
            ],
        ),
        (
            "server = 7",
            &["1:10 server: must be a table, found a whole number"],
        ),
        (
            "[channel]\nname = 'x'",
            &["1:1 channel: must be a list of tables ([[channel]]), found a table"],
        ),
        (
            "[server]\ncors_origins = ['*', 'https://a.example/', 'https://a.example/x', 'a.example']",
            &[
                "2:44 server.cors_origins[2]: must not hold a path: an origin is a scheme, a host and a port",
                "2:67 server.cors_origins[3]: must be an http:// or https:// address",
            ],
        ),
        (
            "[server]\ntrusted_proxies = ['10.0.0.0/8', 'here', 7]",
            &[
                "2:34 server.trusted_proxies[1]: must be a range of addresses, such as 10.0.0.0/8 or ::1",
                "2:42 server.trusted_proxies[2]: must be a string, found a whole number",
            ],
        ),
        (
            "[timeouts]\nupstream_idle_ms = 0\nclient_header_ms = -5\nshutdown_drain_ms = 0\nstream_keep_alive_ms = 9999999999",
            &[
                "2:20 timeouts.upstream_idle_ms: must be above 0",
                "3:20 timeouts.client_header_ms: must not be negative",
                "5:24 timeouts.stream_keep_alive_ms: must be at most 2592000000 (30 days)",
            ],
        ),
        (
            "[timeouts]\ndrain_ms = 1\nclient_gone_drain_ms = 2",
            &["1:1 timeouts: drain_ms is another name of client_gone_drain_ms; keep one"],
        ),
        (
            "[limits]\nbody_text_bytes = 0\nconnections = 1.5",
            &[
                "2:19 limits.body_text_bytes: must be above 0",
                "3:15 limits.connections: must be a whole number, found a number with a fraction",
            ],
        ),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn places_of_money_media_and_secrets_are_checked() {
    for (text, expected) in [
        (
            "[ledger]\ncommit = 'later'\ngather_ms = 101",
            &[
                "2:10 ledger.commit: must be `before-answer` or `behind`",
                "3:13 ledger.gather_ms: must be at most 100",
            ][..],
        ),
        (
            "[store]\nurl = 'postgres://db/x?sslmode=perhaps'",
            &[
                "2:7 store.url: is not a usable PostgreSQL URL: invalid connection string: invalid value for option `sslmode`",
            ],
        ),
        (
            "[store]\nurl = 'sqlite::memory:'",
            &["2:7 store.url: must name a file, such as sqlite:tollgate-data/tollgate.db"],
        ),
        (
            "[media]\nurl = 'ftp:x'",
            &["2:7 media.url: must be file:FOLDER or s3://BUCKET/PREFIX"],
        ),
        (
            "[media]\nurl = 's3://b'\naccess_key_id = { env = 'EMPTY' }\nexpiry_hours = 0\nsweep_minutes = 1441",
            &[
                "1:1 media: a bucket needs access_key_id and secret_access_key",
                "3:17 media.access_key_id: environment variable EMPTY is empty",
                "4:16 media.expiry_hours: must be above 0",
                "5:17 media.sweep_minutes: must be at most 1440",
            ],
        ),
        (
            "[tasks]\npoll_first_ms = 10\npoll_max_ms = 5\ncallback_retry_ms = [1, 2, 3, 4]",
            &[
                "1:1 tasks: poll_max_ms is below poll_first_ms",
                "4:31 tasks.callback_retry_ms[3]: is one too many: a callback is delivered 4 times at most",
            ],
        ),
        (
            "[admin]\ntoken = 'sk-oops'",
            &[
                "2:9 admin.token: must be { env = \"NAME\" } or { file = \"path\" }; a secret never stands here itself, found a string",
            ],
        ),
        (
            "[admin]\ntoken = { env = 'EMPTY' }",
            &["2:9 admin.token: environment variable EMPTY is empty"],
        ),
        (
            "[admin]\ntoken = { env = 'SET', file = 'x' }",
            &["2:9 admin.token: names both `env` and `file`; keep one"],
        ),
        (
            "[admin]\ntoken = { evn = 'SET' }",
            &[
                "2:9 admin.token: must be { env = \"NAME\" } or { file = \"path\" }; a secret never stands here itself",
                "2:11 admin.token.evn: unknown setting; did you mean `env`?",
            ],
        ),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn broken_toml_is_told_with_every_place() {
    let told = problems("[server]\nlisten = \nnode = 'a' 'b'\nlisten = 1\n");
    let places: Vec<_> = told
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(places, ["2:10", "3:12", "4:1"], "{told:?}");
}

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
                "3:10 channel[0].preset: \"opena\" is none of: openai anthropic gemini xai ark openai-compatible sim",
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
                "5:22 channel[0].protocols[1]: \"chatt\" is none of: chat responses messages generate interactions embeddings images video-a omni predict content-task voice",
            ],
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
            "9:23 model[0].routes[0].channel: channel `main` speaks images; this text model needs chat or responses or messages or generate or interactions",
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
        let told = problems(&file(kind, base, &format!("['{other}']")));
        assert_eq!(told.len(), 1, "{base} {told:?}");
        assert!(told[0].ends_with(&format!("needs {protocol}")), "{told:?}");
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
    let told: Vec<_> = plan
        .unlisted
        .iter()
        .map(|(id, why)| format!("{id}: {why}"))
        .collect();
    assert_eq!(
        told,
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
            "a/no-route: no route",
            "a/no-live-channel: no live channel (channel unset: environment variable UNSET is not set; channel empty: environment variable EMPTY is empty)",
        ]
    );
}

#[test]
fn secrets_are_found_in_files_and_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "file-secret\n").unwrap();
    let file = folder.path().join("t.toml");
    let text = "[admin]\ntoken = { file = 'token' }\n[[channel]]\nname = 'a'\npreset = 'openai'\ncredential = { file = 'token' }";
    let config = parse_in(text, &file, &environment).unwrap();
    let plan = resolve_in(&config, &environment).unwrap();
    let token = plan.admin_token.as_ref().unwrap();
    assert_eq!(token.digest(), store::Digest::of(b"file-secret"));
    assert_eq!(plan.channels.len(), 1);
    assert!(plan.channels[0].credential.is_some());
    let shown = format!("{config:?} {plan:?}");
    assert!(!shown.contains("file-secret"), "{shown}");
}

#[test]
fn an_absent_admin_token_turns_the_admin_api_off() {
    for text in [
        "",
        "[admin]\ntoken = { env = 'UNSET' }",
        "[admin]\ntoken = { file = 'nowhere' }",
    ] {
        assert!(plan(text).admin_token.is_none(), "{text}");
    }
    assert!(
        plan("[admin]\ntoken = { env = 'SET' }")
            .admin_token
            .is_some()
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
fn the_store_is_found_whatever_else_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    std::fs::write(&file, "[server]\nlisen = 1\n[store]\nurl = 'sqlite:x.db'\n").unwrap();
    let settings = load_store_settings(&file).unwrap();
    assert_eq!(
        settings.location,
        store::Location::File(folder.path().join("x.db"))
    );
    std::fs::write(&file, "[store]\nurl = 'x.db'\n").unwrap();
    assert_eq!(load_store_settings(&file).unwrap_err().len(), 1);
    assert_eq!(
        load_store_settings(&folder.path().join("none"))
            .unwrap_err()
            .len(),
        1
    );
}

#[test]
fn a_postgres_store_takes_its_node_password_and_lease() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("password"), "pass\n").unwrap();
    let file = folder.path().join("t.toml");
    let text = "[server]\nnode = 'one'\n[store]\nurl = 'postgres://me@db/x'\nlease_ms = 5000\n\
                password = { file = 'password' }\n";
    std::fs::write(&file, text).unwrap();
    let store::Location::Server(server) = load_store_settings(&file).unwrap().location else {
        panic!("a server");
    };
    assert_eq!(
        (
            server.node.as_deref(),
            server.password.as_deref(),
            server.lease.as_secs()
        ),
        (Some("one"), Some("pass"), 5)
    );
    assert_eq!(server.shown(), "postgres://db/x");
    std::fs::remove_file(folder.path().join("password")).unwrap();
    let problems = Config::load(&file).unwrap_err();
    assert_eq!(problems[0].key, "store.password");
}

#[test]
fn media_in_a_bucket_take_their_keys_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("id", "AKIA\n"), ("secret", "hush\n")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let file = folder.path().join("t.toml");
    let text = "[media]\nurl = 's3://b/one/two/'\nendpoint = 'https://s3.example.com'\n\
                access_key_id = { file = 'id' }\nsecret_access_key = { file = 'secret' }\n\
                ca_file = 'ca.pem'\nspool = 'spool'\nexpiry_hours = 2\nkeep_expired_hours = 3\n";
    let settings = Config::parse(text, &file).unwrap().media_settings();
    let store::MediaPlace::Bucket(bucket) = &settings.place else {
        panic!("a bucket");
    };
    let expected = store::Bucket {
        name: "b".to_owned(),
        prefix: "one/two".to_owned(),
        endpoint: Some("https://s3.example.com".to_owned()),
        region: "us-east-1".to_owned(),
        access_key_id: "AKIA".to_owned(),
        secret_access_key: "hush".to_owned(),
        ca_file: Some(folder.path().join("ca.pem")),
        spool: folder.path().join("spool"),
    };
    assert_eq!(*bucket, expected);
    assert_eq!(settings.expiry.as_secs(), 2 * 3600);
    assert_eq!(settings.keep_expired.as_secs(), 3 * 3600);
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
    // Classes of output without a price of their own have that of `output`.
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
