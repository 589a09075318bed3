//! Parses the command line and runs the command.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime;

use super::accounts::{key, wallet};
use super::args::{Cli, Command};
use super::context::Context;
#[cfg(feature = "sim")]
use super::simulation::{demo, sim};
use super::terminal::{CommandError, Output};
use super::{
    alerts, audit, catalog, channels, check, health, import, init, ledger, logs, manual, serve,
    tasks, tokens, transfer,
};

/// Runs the program. Results go to standard output, errors to standard error.
pub fn main() -> ExitCode {
    // An invalid command line ends the program here, with exit code 2.
    let cli = Cli::parse();
    match run(cli, Output::to(std::io::stdout().lock())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            // If standard error is closed too, the error cannot be reported anywhere.
            let _ = write!(std::io::stderr(), "{stop}");
            stop.exit_code()
        }
    }
}

pub(super) fn run(cli: Cli, out: Output) -> Result<(), CommandError> {
    let mut context = Context::new(cli.global, out);
    match cli.command {
        #[cfg(feature = "sim")]
        Command::Demo(command) => on_all_cores()?.block_on(demo::run(command, &mut context)),
        Command::Serve => on_all_cores()?.block_on(serve::run(&context)),
        Command::Health(command) => on_this_thread()?.block_on(health::run(command, &mut context)),
        Command::Init(command) => on_this_thread()?.block_on(init::run(command, &mut context)),
        Command::Check(command) => on_this_thread()?.block_on(check::run(&command, &mut context)),
        Command::Catalog(command) => {
            on_this_thread()?.block_on(catalog::run(command, &mut context))
        }
        Command::Channel(command) => {
            on_this_thread()?.block_on(channels::run(command, &mut context))
        }
        Command::Wallet(command) => on_this_thread()?.block_on(wallet::run(command, &mut context)),
        Command::Key(command) => on_this_thread()?.block_on(key::run(command, &mut context)),
        Command::Token(command) => on_this_thread()?.block_on(tokens::run(command, &mut context)),
        Command::Alert(command) => on_this_thread()?.block_on(alerts::run(command, &mut context)),
        Command::Audit(command) => on_this_thread()?.block_on(audit::run(command, &mut context)),
        Command::Ledger(command) => on_this_thread()?.block_on(ledger::run(command, &mut context)),
        Command::Logs(command) => on_this_thread()?.block_on(logs::run(command, &mut context)),
        Command::Tasks(command) => on_this_thread()?.block_on(tasks::run(command, &mut context)),
        Command::Backup(command) => {
            on_this_thread()?.block_on(transfer::run_backup(command, &mut context))
        }
        Command::Restore(command) => {
            on_this_thread()?.block_on(transfer::run_restore(command, &mut context))
        }
        Command::Move(command) => {
            on_this_thread()?.block_on(transfer::run_move(command, &mut context))
        }
        Command::Completions(command) => manual::run_completions(&command, &mut context),
        Command::Manual(command) => manual::run_manual(&command, &mut context),
        Command::Import(command) => on_this_thread()?.block_on(import::run(command, &mut context)),
        #[cfg(feature = "sim")]
        Command::Sim(command) => on_all_cores()?.block_on(sim::run(command, &mut context)),
        #[cfg(not(feature = "sim"))]
        Command::NoSimulator { .. } => Err(CommandError::message(
            "this build has no simulator; `demo` and `sim` need a build with the cargo feature `sim`",
        )),
    }
}

fn on_this_thread() -> Result<runtime::Runtime, CommandError> {
    Ok(runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

fn on_all_cores() -> Result<runtime::Runtime, CommandError> {
    Ok(runtime::Builder::new_multi_thread().enable_all().build()?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_forms_that_operators_rely_on_are_read() {
        for line in [
            "demo",
            "demo --listen 127.0.0.1:0",
            "serve --config x.toml",
            "--config x.toml serve",
            "init --yes --dry-run --data d --markup 1.2 --balance 5 --listen 127.0.0.1:1",
            "catalog list --preset openai --json",
            "catalog show openai/gpt-6-luna",
            "catalog diff prices.json --form litellm --all",
            "catalog import https://models.dev/api.json --form models-dev --yes",
            "check --json",
            "check --strict",
            "check --live --strict --json",
            "channel list --json",
            "channel disable main",
            "channel enable main",
            "wallet create acme --balance 100 --gift 5 --credit-limit 50 --json",
            "wallet list",
            "wallet show acme",
            "wallet topup wal_0 10.5",
            "wallet gift acme 1",
            "wallet credit-limit acme 0",
            "wallet disable acme",
            "wallet enable acme",
            "key create --wallet acme --limit 10 --rpm 60 --tpm 100000 --concurrency 4 --expires 30d --json",
            "key list --wallet acme",
            "key show key_0123456789abcdef",
            "key update key_0123456789abcdef --limit none --expires 2026-12-31T00:00:00Z",
            "key disable key_0123456789abcdef",
            "key enable key_0123456789abcdef",
            "token create till --role support --json",
            "token list",
            "token revoke tok_0123456789abcdef",
            "token sign-in-link --role viewer --url http://127.0.0.1:8081",
            "audit --actor cli --action wallet.create --target wal_0 --since 1d --until 1h --search x --limit 5 --json",
            "alert list --open --limit 5 --json",
            "alert rules",
            "alert add https://a.example/x --kinds low_balance,key_limit --wallet acme --below 5",
            "alert add https://a.example/x --kinds channel_down",
            "alert remove rul_0123456789abcdef",
            "alert test rul_0123456789abcdef",
            "wallet alert-below acme 5",
            "wallet alert-below acme none",
            "ledger verify",
            "ledger report --day 2026-11-15 --by day,wallet,key,model --format csv",
            "ledger report --since 30d --until 1d --wallet acme --json",
            "ledger reprice --day 2026-11-15",
            "logs --wallet acme --key key_0123456789abcdef --model a/b --status 429 --since 1h --limit 5",
            "logs --follow --json",
            "logs --request req_1 --until 1h",
            "logs show req_1",
            "tasks list --wallet acme --model a/b --protocol video-a --status failed --open --limit 5",
            "tasks show 019876ab-cdef-7000-8000-000000000000",
            "tasks follow --open --drain --json",
            "move --from sqlite:a.db --to postgres://u@h/d --to-password-file p --to-ca-file c --json",
            "move --to sqlite:a.db",
            "import new-api one-api.db --dry-run --json",
            "import litellm config.yaml postgres://u@h/d --budgets-as credit-line --credit-line 10",
            "import openrouter keys.json credits.json --known-key-file k --secrets s",
            "import new-api env:DSN --group vip --source second --out c.toml --secrets s",
            "backup folder --without-media --json",
            "restore folder --without-media --json",
            "health --address 127.0.0.1:1 --timeout 5",
            "completions zsh",
            "manual folder",
            "sim --listen 127.0.0.1:9000",
        ] {
            let words = std::iter::once("tollgate").chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
    }

    #[test]
    fn senseless_forms_are_refused_as_usage() {
        for line in [
            "wallet",
            "wallet create",
            "wallet create acme --balance -1",
            "wallet create acme --balance 0.0000001",
            "init --markup 0",
            "catalog",
            "catalog list --preset opena",
            "catalog diff",
            "catalog diff x --form y",
            "wallet topup acme 0",
            "wallet topup acme ten",
            "wallet topup acme",
            "key create",
            "key create --wallet a --rpm 0",
            "key create --wallet a --expires soon",
            "key update key_0123456789abcdef",
            "key show acme",
            "token create till",
            "token create till --role king",
            "token revoke till",
            "audit --limit 0",
            "alert add https://a.example/x",
            "alert add https://a.example/x --kinds fire",
            "alert remove acme",
            "wallet alert-below acme",
            "logs --since whenever",
            "logs --status 9000",
            "ledger report --by hour",
            "ledger report --day 15",
            "ledger reprice --day 2026-11-15 --since 1d",
            "tasks",
            "tasks show",
            "tasks show x",
            "import litellm",
            "import litellm a b c",
            "import new-api x --source a/b",
            "import openrouter",
            "backup",
            "restore",
            "move",
            "move --from a.db",
            "move --from sqlite:a.db --to-password-file p",
            "completions tcsh",
            "manual",
        ] {
            let words = std::iter::once("tollgate").chain(line.split(' '));
            let error = Cli::try_parse_from(words).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
