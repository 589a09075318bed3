//! Tests whole commands, from their arguments to their output, each with its own store.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::Parser;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::args::Cli;
use super::run::run;
use super::terminal::{CommandError, Output};

/// Runs commands in a folder with a configuration.
struct Operator {
    folder: TempDir,
}

#[derive(Clone, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Operator {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.toml"), config).unwrap();
        Self { folder }
    }

    fn config(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command. Returns its output and its result.
    fn run(&self, line: &str) -> (String, Result<(), CommandError>) {
        let config = self.config().join("t.toml");
        let words = ["tollgate", "--config", config.to_str().unwrap()];
        let cli = Cli::try_parse_from(words.into_iter().chain(line.split(' '))).unwrap();
        let buffer = OutputBuffer::default();
        let end = run(cli, Output::to(buffer.clone()));
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        (text, end)
    }

    /// Runs a command that must succeed, and returns its JSON output.
    fn run_json(&self, line: &str) -> Value {
        let (text, end) = self.run(&format!("{line} --json"));
        assert!(end.is_ok(), "{line}: {end:?}");
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command that must fail, and returns its error message.
    fn run_failing(&self, line: &str) -> String {
        let (text, end) = self.run(line);
        assert_eq!(text, "", "{line}");
        end.expect_err(line).to_string()
    }
}

#[test]
fn a_wallet_is_created_funded_and_disabled() {
    let operator = Operator::new("");
    let made = operator.run_json("wallet create acme --balance 100 --gift 5 --credit-limit 50");
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("wal_"));
    assert_eq!(made["balance_micro"], "100000000");
    assert_eq!(made["total_available"], "155");

    for (line, member, expected) in [
        (format!("wallet topup {id} 0.5"), "balance", "100.5"),
        ("wallet gift acme 1.25".to_owned(), "gift_balance", "6.25"),
        (format!("wallet credit-limit {id} 0"), "credit_limit", "0"),
        ("wallet disable acme".to_owned(), "status", "disabled"),
        (format!("wallet enable {id}"), "status", "active"),
        ("wallet show acme".to_owned(), "id", id),
    ] {
        assert_eq!(operator.run_json(&line)[member], expected, "{line}");
    }
    assert_eq!(
        operator.run_json("wallet list").as_array().unwrap().len(),
        1
    );
    assert_eq!(operator.run_json("ledger verify")["ok"], true);

    let error = operator.run_failing("wallet create acme");
    assert_eq!(error, "tollgate: a wallet named acme exists already\n");
    let error = operator.run_failing("wallet topup nobody 1");
    assert_eq!(error, "tollgate: no wallet `nobody`\n");
}

#[test]
fn a_key_tells_its_secret_once_and_takes_limits() {
    let operator = Operator::new("");
    let wallet = operator.run_json("wallet create acme")["id"].clone();
    let line =
        "key create --wallet acme --limit 10 --rpm 60 --tpm 100000 --concurrency 4 --expires 30d";
    let made = operator.run_json(line);
    let id = made["id"].as_str().unwrap();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with(made["prefix"].as_str().unwrap()));
    assert_eq!(made["wallet"], wallet);
    let limits = ["limit", "rpm_limit", "tpm_limit", "concurrency_limit"].map(|name| &made[name]);
    assert_eq!(json!(limits), json!(["10", 60, 100_000, 4]));
    assert!(made["expires_at"].is_i64());

    let change = "--limit none --rpm 5 --tpm none --concurrency none --expires none --name ops";
    let changed = operator.run_json(&format!("key update {id} {change}"));
    let names = [
        "name",
        "limit",
        "rpm_limit",
        "tpm_limit",
        "concurrency_limit",
        "expires_at",
    ];
    let limits = names.map(|name| &changed[name]);
    assert_eq!(json!(limits), json!(["ops", null, 5, null, null, null]));

    assert_eq!(
        operator.run_json(&format!("key disable {id}"))["enabled"],
        false
    );
    assert_eq!(
        operator.run_json(&format!("key enable {id}"))["enabled"],
        true
    );
    let listed = operator.run_json("key list --wallet acme");
    assert_eq!(listed[0]["id"], id);
    let (shown, _) = operator.run(&format!("key show {id}"));
    for text in [listed.to_string(), shown] {
        assert!(!text.contains(secret), "{text}");
    }
    // No file contains the secret.
    for file in std::fs::read_dir(operator.config().join("tollgate-data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(
            !bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        );
    }

    let error = operator.run_failing("key show key_0123456789abcdef");
    assert_eq!(error, "tollgate: no key `key_0123456789abcdef`\n");
}

#[test]
fn people_get_tables() {
    let operator = Operator::new("");
    let (text, _) = operator.run("wallet create acme --balance 1.5");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("ID ") && lines[0].contains(" BALANCE "));
    assert!(lines[1].contains(" acme ") && lines[1].contains(" 1.5 "));
    let (text, _) = operator.run("key create --wallet acme");
    assert!(text.contains("secret: sk-tg-"), "{text}");
    let (text, _) = operator.run("logs");
    assert!(text.starts_with("AT "), "{text}");
}

#[test]
fn an_empty_journal_has_no_rows() {
    let operator = Operator::new("");
    let (text, end) = operator.run("logs --json");
    assert!(end.is_ok());
    assert_eq!(text, "");
    let error = operator.run_failing("logs show req_none");
    assert_eq!(error, "tollgate: no call `req_none` in the journal\n");
}

#[test]
fn a_check_tells_the_catalog_or_every_problem() {
    let operator = Operator::new(
        "[[channel]]\nname = 'sim'\npreset = 'sim'\nbase_url = 'http://127.0.0.1:1/v1'\n\
         [[model]]\nid = 'sim/chat'\nkind = 'text'\nprice = { input = '1', output = '2' }\n\
         profile = { max_output_tokens = 10 }\nroutes = [{ channel = 'sim', model = 'x' }]\n\
         [[model]]\nid = 'sim/dear'\nkind = 'text'\n",
    );
    let answer = operator.run_json("check");
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["models"][0]["id"], "sim/chat");
    assert_eq!(
        answer["models"][0]["price"],
        json!({ "input": "1", "output": "2" })
    );
    let unlisted = json!([{ "id": "sim/dear", "reason": "no price" }]);
    assert_eq!(answer["unlisted"], unlisted);
    let (text, end) = operator.run("check");
    assert!(end.is_ok());
    assert!(text.ends_with("ok: callable 1, not callable 1\n"), "{text}");

    let operator = Operator::new("[server]\nlisen = 1\nnode = 2\n");
    let error = operator.run_failing("check");
    assert!(
        error.contains(":2:1: server.lisen: unknown setting"),
        "{error}"
    );
    assert!(
        error.ends_with("tollgate: 2 problems in the configuration\n"),
        "{error}"
    );
    let (text, end) = operator.run("check --json");
    assert!(matches!(end, Err(CommandError::Reported)));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["problems"][1]["key"], "server.node");
    // Commands on the store work even if the rest of the configuration has problems.
    assert_eq!(operator.run_json("wallet list"), json!([]));
}

#[test]
fn heads_are_written_once_compared_and_replaced_when_asked() {
    let operator = Operator::new("");
    let first = operator.run_json("wallet create acme --balance 100")["id"].clone();
    let file = operator.config().join("heads");
    let verify = format!("ledger verify --heads {}", file.display());
    let read = || std::fs::read_to_string(&file).unwrap();

    let written = operator.run_json(&verify);
    assert_eq!(written["heads_written"], true);
    let head = &written["heads"][0];
    assert_eq!((&head["wallet"], &head["entries"]), (&first, &json!(1)));
    let hash = head["head"].as_str().unwrap();
    let kept = read();
    assert_eq!(
        kept,
        format!(
            "tollgate ledger heads 1\n{} 1 {hash}\n",
            first.as_str().unwrap()
        )
    );
    let (people, end) = operator.run("ledger verify");
    assert!(end.is_ok() && people.contains(hash), "{people}");

    // Later entries are not a difference, and the file is not changed without `--update`.
    operator.run_json("wallet topup acme 1");
    assert_eq!(operator.run_json(&verify)["heads_written"], false);
    assert_eq!(read(), kept);
    assert_eq!(
        operator.run_json(&format!("{verify} --update"))["heads_written"],
        true
    );
    let newer = read();
    assert_ne!(newer, kept);

    // If a head is no longer part of the chain, the command reports a difference and does not write the file.
    let other = kept.replace(" 1 ", " 2 ");
    std::fs::write(&file, &other).unwrap();
    for update in ["", " --update"] {
        let (text, end) = operator.run(&format!("{verify}{update} --json"));
        assert!(matches!(end, Err(CommandError::Reported)), "{end:?}");
        let report: Value = serde_json::from_str(&text).unwrap();
        let difference = &report["differences"][0];
        assert_eq!(difference["wallet"], first);
        assert_eq!(difference["rule"], "V9 entries hash to the head");
        assert_eq!(difference["expected"], hash);
        assert_eq!(read(), other);
    }
    std::fs::write(&file, "something else").unwrap();
    let error = operator.run_failing(&verify);
    assert!(error.contains("the first line is not"), "{error}");
}
