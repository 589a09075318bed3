//! Measures what the gateway costs.
//!
//! `cargo run --release -p tollgate-bench` starts a fixed upstream, a bare proxy that only forwards
//! bytes, and the gateway in both commit modes, each as a process of its own, and lets a load
//! generator ask them in turn. What it prints is told in ratios, because the machine changes and
//! the ratios hardly do. The parts are subcommands, so that each can be profiled alone. Calls are
//! measured, and sessions that speak over sockets.

mod answer;
mod bare;
mod frame;
mod load;
mod part;
mod proc;
mod run;
mod session;
mod topic;
mod upstream;
mod wire;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};

/// The gateway's allocator, so that the bare proxy is compared on equal terms.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    about = "Measures what the gateway costs",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    run: run::Args,
}

#[derive(Subcommand)]
enum Part {
    /// The fixed upstream.
    Upstream(upstream::Args),
    /// The bare proxy.
    Bare(bare::Args),
    /// The load generator; prints what it measured as JSON.
    Load(load::Args),
    /// Opens streams or sessions and holds them until it is ended.
    Hold(load::HoldArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.part {
        // The parts around the measured one take one thread each and leave it the rest.
        Some(Part::Upstream(args)) => {
            one_thread().and_then(|it| it.block_on(upstream::serve(args)))
        }
        Some(Part::Load(args)) => one_thread().and_then(|it| it.block_on(load::drive(args))),
        Some(Part::Hold(args)) => one_thread().and_then(|it| it.block_on(load::hold(args))),
        Some(Part::Bare(args)) => on_all_cores().and_then(|it| it.block_on(bare::serve(args))),
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

/// The number of workers is the runtime's own choice or `TOKIO_WORKER_THREADS`, as of the gateway's gates.
fn on_all_cores() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}
