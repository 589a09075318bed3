//! Times `tollgate move` of a filled store. Optionally, a first move is killed halfway and a second
//! one resumes it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::fill::{Place, Size, fill};
use crate::process::output_of;
use crate::run::{Program, Schema};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// Kills a first move (SIGKILL) after this time and times the move that resumes it. Without this, nothing is killed.
    #[arg(long, value_name = "MS")]
    kill_after_ms: Option<u64>,
    #[command(flatten)]
    program: Program,
    /// The `PostgreSQL` server to move to. The run creates a schema there, and drops it at the end.
    #[arg(long, value_name = "URL", env = "TOLLGATE_TEST_POSTGRES")]
    postgres: String,
}

impl Args {
    /// The time after which the first move is killed; `None` if no move is killed.
    pub(crate) fn kill_after(&self) -> Option<Duration> {
        self.kill_after_ms.map(Duration::from_millis)
    }
}

/// Fills a store, moves it, and compares the source with the target.
pub(crate) async fn run(args: Args) -> io::Result<()> {
    let binary = args.program.binary().await?;
    let folder = args.program.folder()?;
    let file = folder.path().join("tollgate.db");
    fill(&Place::Sqlite(file.clone()), args.size).await?;
    let schema = Schema::create(&args.postgres).await?;
    let from = StoreConfig::new(
        &binary,
        folder.path(),
        "from",
        &format!("sqlite:{}", file.display()),
    )?;
    let to = StoreConfig::new(&binary, folder.path(), "to", &schema.url)?;
    let measured = measure(&args, &from, &to).await;
    schema.drop().await?;
    measured
}

async fn measure(args: &Args, from: &StoreConfig, to: &StoreConfig) -> io::Result<()> {
    let mut output = io::stdout();
    let before = verified(from, "the source").await?;
    if let Some(after) = args.kill_after() {
        let killed = kill_move(from, to, after).await?;
        writeln!(output, "{killed}")?;
    }
    let began = Instant::now();
    let moved = from.json(&["move", "--to", &to.url]).await?;
    writeln!(
        output,
        "moved in {:?}, resumed: {}, rows: {}",
        began.elapsed(),
        moved["resumed"],
        moved["tables"]
    )?;
    let after = verified(to, "the destination").await?;
    let again = verified(from, "the source after the move").await?;
    if before != after || before != again || moved["heads"] != before {
        return Err(io::Error::other("the heads of the chains differ"));
    }
    let count = before
        .as_array()
        .map(Vec::len)
        .or(before.as_object().map(serde_json::Map::len));
    writeln!(output, "{} chain heads are equal", count.unwrap_or(1))
}

/// Verifies the ledger of one store and returns the heads of all its chains.
async fn verified(store: &StoreConfig, what: &str) -> io::Result<Value> {
    let began = Instant::now();
    let mut report = store.json(&["ledger", "verify"]).await?;
    let entries = &report["entries"];
    writeln!(
        io::stdout(),
        "{what}: verified {entries} entries in {:?}",
        began.elapsed()
    )?;
    Ok(report["heads"].take())
}

async fn kill_move(from: &StoreConfig, to: &StoreConfig, after: Duration) -> io::Result<String> {
    let mut child = from
        .command(&["move", "--to", &to.url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Ok(ended) = timeout(after, child.wait()).await {
        let ended = ended?;
        return Ok(format!("the first move was too fast to be killed: {ended}"));
    }
    child.kill().await?;
    Ok(format!("killed (SIGKILL) after {after:?}"))
}

/// The source or the target of a move: a configuration that names its database.
struct StoreConfig {
    binary: PathBuf,
    config: PathBuf,
    url: String,
}

impl StoreConfig {
    fn new(binary: &Path, folder: &Path, name: &str, url: &str) -> io::Result<Self> {
        let config = folder.join(format!("{name}.toml"));
        fs::write(&config, format!("[store]\nurl = \"{url}\"\n"))?;
        Ok(Self {
            binary: binary.to_owned(),
            config,
            url: url.to_owned(),
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(&self.config).args(words);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command, which must succeed, and returns its report.
    async fn json(&self, words: &[&str]) -> io::Result<Value> {
        let mut command = self.command(words);
        let output = output_of(command.arg("--json")).await?;
        serde_json::from_slice(&output).map_err(io::Error::other)
    }
}
