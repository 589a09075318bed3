//! Measures the cost of the gateway: CPU time, latency and memory.
//!
//! `cargo run --profile dist -p tollgate-bench` starts a fixed upstream, a bare proxy that only forwards bytes, and the
//! gateway in both commit modes, each as a separate process. A load generator measures them alternately, with plain
//! calls, streams and WebSocket sessions. The results are ratios, which hardly depend on the machine. Each process is a
//! subcommand, so that it can be profiled separately.

mod admin;
mod answer;
mod bare;
mod fill;
mod filled_gateway;
mod frame;
mod growth;
mod load;
mod process;
mod process_stats;
mod run;
mod session_frames;
mod transfer;
mod upstream;
mod upstream_session;
mod wire;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};

/// The same allocator as in the gateway, for a fair comparison with the bare proxy.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    about = "Measures what the gateway costs",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Args,
}

#[derive(Subcommand)]
enum Command {
    /// The fixed upstream.
    Upstream(upstream::Args),
    /// The bare proxy.
    Bare(bare::Args),
    /// The load generator; prints its results as JSON.
    Load(load::Args),
    /// Fills a store with wallets, keys, entries, tasks and a million calls.
    Fill(fill::Args),
    /// Times every read of the admin API on a filled store, and calls while these reads run.
    Admin(admin::Args),
    /// Compares calls on a filled store with calls on a small one.
    Growth(growth::Args),
    /// Fills a store, moves it to `PostgreSQL`, and compares the source with the target.
    Move(transfer::Args),
    /// Opens streams or sessions and keeps them open until the process is killed.
    Hold(load::HoldArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        // The upstream and the load generator use one thread each and leave the other cores to the measured process.
        Some(Command::Upstream(args)) => {
            one_thread().and_then(|it| it.block_on(upstream::serve(args)))
        }
        Some(Command::Load(args)) => one_thread().and_then(|it| it.block_on(load::drive(args))),
        Some(Command::Hold(args)) => one_thread().and_then(|it| it.block_on(load::hold(args))),
        Some(Command::Fill(args)) => on_all_cores().and_then(|it| it.block_on(fill::run(args))),
        Some(Command::Admin(args)) => on_all_cores().and_then(|it| it.block_on(admin::run(args))),
        Some(Command::Growth(args)) => on_all_cores().and_then(|it| it.block_on(growth::run(args))),
        Some(Command::Move(args)) => on_all_cores().and_then(|it| it.block_on(transfer::run(args))),
        Some(Command::Bare(args)) => on_all_cores().and_then(|it| it.block_on(bare::serve(args))),
        None => one_thread().and_then(|it| it.block_on(run::run(cli.run))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tollgate-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn one_thread() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The number of workers is the runtime's default or `TOKIO_WORKER_THREADS`. The same applies to the serving threads of
/// the gateway.
fn on_all_cores() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn a_move_is_killed_only_on_request_and_its_help_says_so() {
        let moved = |more: &[&str]| {
            let words = ["tollgate-bench", "move", "--postgres", "postgres://db"];
            match Cli::try_parse_from(words.iter().chain(more))
                .unwrap()
                .command
            {
                Some(Command::Move(args)) => args.kill_after(),
                _ => panic!("another command"),
            }
        };
        assert_eq!(moved(&[]), None);
        let asked = moved(&["--kill-after-ms", "3000"]);
        assert_eq!(asked, Some(std::time::Duration::from_secs(3)));
        let mut cli = Cli::command();
        let help = cli.find_subcommand_mut("move").unwrap().render_help();
        assert!(help.to_string().contains("Without this, nothing is killed"));
    }
}
