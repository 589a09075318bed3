//! Tests that all problems of a file are reported, each at its position.

use std::path::Path;

use crate::config::catalog::live_plan::resolve_in;
use crate::config::load::parse_in;
use crate::config::*;

const FILE: &str = "folder/t.toml";

/// An environment with three variables.
fn environment(name: &str) -> Option<String> {
    match name {
        "SET" => Some("secret-value".to_owned()),
        "EMPTY" => Some("  \n".to_owned()),
        "TWO_LINES" => Some("one\ntwo".to_owned()),
        _ => None,
    }
}

pub(super) fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    parse_in(text, Path::new(FILE), &environment)
}

pub(super) fn plan(text: &str) -> Plan {
    resolve_in(&parse(text).unwrap(), &environment).unwrap()
}

/// The problems as `line:column key: message`.
pub(super) fn problems(text: &str) -> Vec<String> {
    let message_of = |problem: &Problem| {
        assert_eq!(problem.file, Path::new(FILE));
        let position = problem.position.unwrap();
        let (line, column) = (position.line, position.column);
        format!("{line}:{column} {}: {}", problem.key, problem.message)
    };
    match parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(message_of).collect(),
    }
}

pub(super) const CHANNEL: &str =
    "[[channel]]\nname = 'main'\npreset = 'sim'\nbase_url = 'http://sim/v1'\n";

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
                "1:1 zzzzzzzzz: unknown setting; known here: server, admin, store, media, outbound, tasks, alerts, limits, timeouts, ledger, journal, log, telemetry, catalog, channel, model",
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
            "[log]\nformat = 'xml'",
            &["2:10 log.format: must be `text` or `json`"],
        ),
        (
            "[telemetry]\notlp_url = 'collector:4318'\nsample_ratio = 1.1\ntrusted_callers = ['all']",
            &[
                "2:12 telemetry.otlp_url: must be an http:// or https:// address",
                "3:16 telemetry.sample_ratio: must be a number from 0 to 1 with at most six decimals",
                "4:20 telemetry.trusted_callers[0]: must be a range of addresses, such as 10.0.0.0/8 or ::1",
            ],
        ),
        (
            "[telemetry]\nheaders = 'x-api-key=s3cret'\nsample_ratio = 'half'\nservice_name = 'our gateway'",
            &[
                "2:11 telemetry.headers: must be { env = \"NAME\" } or { file = \"path\" }; a secret never stands here itself, found a string",
                "3:16 telemetry.sample_ratio: must be a number from 0 to 1, found a string",
                "4:16 telemetry.service_name: must be at most 64 letters, digits and any of `-_.`",
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
    let reported = problems("[server]\nlisten = \nnode = 'a' 'b'\nlisten = 1\n");
    let places: Vec<_> = reported
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(places, ["2:10", "3:12", "4:1"], "{reported:?}");
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
fn a_storage_whose_secret_is_absent_is_not_opened_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    let unset = "TOLLGATE_TEST_OF_AN_UNSET_VARIABLE";
    let store = format!(
        "[store]\nurl = 'postgres://me@db/x'\npassword = {{ env = '{unset}' }}\n\
         [[channel]]\nname = 'main'\npreset = 'openai'\ncredential = {{ file = '.' }}\n"
    );
    std::fs::write(&file, store).unwrap();
    let shown = |problems: Vec<Problem>| {
        let shown = problems.into_iter().map(|problem| {
            assert_eq!(problem.file, file);
            let line = problem.position.unwrap().line;
            format!("{line} {}: {}", problem.key, problem.message)
        });
        shown.collect::<Vec<_>>()
    };
    let password = format!("3 store.password: environment variable {unset} is not set");
    assert_eq!(shown(load_store_settings(&file).unwrap_err()), [&*password]);
    assert_eq!(
        shown(load_storage_settings(&file).unwrap_err()),
        [&*password]
    );
    let bucket = format!(
        "[media]\nurl = 's3://b/'\naccess_key_id = {{ env = '{unset}' }}\n\
         secret_access_key = {{ file = 'none' }}\n"
    );
    std::fs::write(&file, bucket).unwrap();
    assert!(load_store_settings(&file).is_ok());
    let none = folder.path().join("none");
    assert_eq!(
        shown(load_storage_settings(&file).unwrap_err()),
        [
            format!("3 media.access_key_id: environment variable {unset} is not set"),
            format!(
                "4 media.secret_access_key: file {} does not exist",
                none.display()
            ),
        ]
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
