//! The command `admin`.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use super::requests::StoreNames;
use super::slowdown;
use super::timing::AdminClient;
use crate::fill::{Place, Size, fill};
use crate::filled_gateway::FilledGateway;
use crate::process::ServerProcess;
use crate::run::{Program, Schema};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// How many times each read is timed.
    #[arg(long, default_value_t = 20)]
    times: usize,
    /// How many times calls are measured, each time first alone and then while the admin API is read.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of each measurement of calls.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    #[command(flatten)]
    program: Program,
    /// Measures on this `PostgreSQL` server too, in a schema of its own.
    #[arg(long, value_name = "URL", env = "TOLLGATE_TEST_POSTGRES")]
    postgres: Option<String>,
}

pub(crate) async fn run(args: Args) -> io::Result<()> {
    let binary = args.program.binary().await?;
    let folder = args.program.folder()?;
    let upstream = ServerProcess::start_own(["upstream"], None).await?;
    let sqlite = folder.path().join("sqlite");
    fs::create_dir_all(&sqlite)?;
    let place = Place::Sqlite(sqlite.join("tollgate.db"));
    measure(&args, &binary, &upstream, &sqlite, &place).await?;
    if let Some(server) = &args.postgres {
        let schema = Schema::create(server).await?;
        let on_server = folder.path().join("postgres");
        fs::create_dir_all(&on_server)?;
        let place = Place::Postgres(schema.url.clone());
        let measured = measure(&args, &binary, &upstream, &on_server, &place).await;
        schema.drop().await?;
        measured?;
    }
    upstream.end().await
}

async fn measure(
    args: &Args,
    binary: &Path,
    upstream: &ServerProcess,
    folder: &Path,
    place: &Place,
) -> io::Result<()> {
    let mut output = io::stdout();
    let name = match place {
        Place::Sqlite(_) => "SQLite",
        Place::Postgres(_) => "PostgreSQL",
    };
    writeln!(output, "\n# {name}")?;
    let accounts = fill(place, args.size).await?;
    let gateway = FilledGateway::start(binary, folder, upstream.address, place).await?;
    let client = AdminClient::new(gateway.admin);
    let names = StoreNames::of(&client, &accounts, args.size).await?;
    let (requests, forgotten) = names.timed_and_other_reads(&client).await?;
    for path in forgotten {
        writeln!(output, "not timed: {path}")?;
    }
    writeln!(
        output,
        "\n| read | rows or bytes | p50 ms | max of {} ms |\n|---|--:|--:|--:|",
        args.times
    )?;
    let mut slowest = (String::new(), 0.0);
    for request in &requests {
        let timed = client.time(&request.path, args.times).await?;
        if timed.max_ms > slowest.1 {
            slowest = (request.what.clone(), timed.max_ms);
        }
        writeln!(
            output,
            "| {} | {} | {:.1} | {:.1} |",
            request.what, timed.size, timed.median_ms, timed.max_ms
        )?;
    }
    writeln!(output, "\nThe slowest: {}, {:.1} ms.", slowest.0, slowest.1)?;
    let keys = folder.join("keys");
    fs::write(&keys, accounts.secrets.join("\n"))?;
    slowdown::measure(
        &gateway,
        &client,
        &requests,
        &keys,
        (args.rounds, args.seconds),
    )
    .await?;
    gateway.process.end().await
}
