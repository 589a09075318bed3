//! The command `fill`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ledger::DAY_MS;
use store::{Server, Settings, Store};
use tokio_postgres::NoTls;

use super::accounts::Accounts;
use super::calls;
use crate::process_stats;

/// The id of a journal row is its time, shifted by this many bits.
const TIME_SHIFT: u32 = 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The new database: a file, or a `postgres://` address with an empty schema.
    #[arg(long, value_name = "PATH or URL")]
    store: String,
    #[command(flatten)]
    size: Size,
}

/// The amount of data that a store is filled with.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Size {
    /// Rows of the journal.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) rows: usize,
    /// Days over which the rows of the journal are spread.
    #[arg(long, default_value_t = 90)]
    pub(crate) days: u32,
    #[arg(long, default_value_t = 1_000)]
    pub(crate) wallets: usize,
    /// Keys, spread over the wallets.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) keys: usize,
    /// Entries of the ledger, spread over the keys.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) entries: usize,
    /// Video tasks that have ended.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) tasks: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Place {
    fn read(text: &str) -> Self {
        if text.starts_with("postgres") {
            Self::Postgres(text.to_owned())
        } else {
            Self::Sqlite(text.into())
        }
    }

    fn settings(&self) -> Settings {
        let settings = match self {
            Self::Sqlite(path) => Settings::at(path),
            Self::Postgres(url) => Settings::on(Server::at(url.clone())),
        };
        Settings {
            journal_retention_days: 0,
            disk_floor_bytes: 0,
            ..settings
        }
    }
}

pub(crate) async fn run(args: Args) -> io::Result<()> {
    fill(&Place::read(&args.store), args.size).await.map(drop)
}

/// Fills a new store and prints how long that took.
pub(crate) async fn fill(place: &Place, size: Size) -> io::Result<Accounts> {
    let mut output = io::stdout();
    let settings = place.settings();
    let opened = tokio::task::spawn_blocking(move || Store::open(&settings)).await;
    let (store, _) = opened?.map_err(io::Error::other)?;
    let store = Arc::new(store);
    if let Place::Postgres(url) = place {
        make_days(url, size.days).await?;
    }
    let began = Instant::now();
    let accounts = Accounts::create(&store, size).await?;
    accounts.book(&store, size.entries).await?;
    accounts.end_tasks(&store, size.tasks).await?;
    writeln!(
        output,
        "{} wallets, {} keys, {} entries and {} tasks in {:?}",
        size.wallets,
        size.keys,
        size.entries,
        size.tasks,
        began.elapsed()
    )?;
    let cpu_before = process_stats::cpu_time(std::process::id())?;
    let took = calls::append(&store, &accounts, size).await?;
    let cpu = process_stats::cpu_time(std::process::id())?.saturating_sub(cpu_before);
    writeln!(
        output,
        "{} journal rows in {took:?}: {} a second, {} ns of CPU each",
        size.rows,
        size.rows as u128 * 1_000 / took.as_millis().max(1),
        cpu.as_nanos() / size.rows.max(1) as u128
    )?;
    if let Place::Sqlite(path) = place {
        let bytes = journal_bytes(path)?;
        writeln!(
            output,
            "{} bytes of disk a row",
            bytes / size.rows.max(1) as u64
        )?;
    }
    // Closing the store waits for its threads.
    tokio::task::spawn_blocking(move || drop(store)).await?;
    if let Place::Postgres(url) = place {
        run_sql(url, "ANALYZE").await?;
    }
    Ok(accounts)
}

/// Creates the journal partitions of earlier days, which a gateway running on those days would have
/// created.
async fn make_days(url: &str, days: u32) -> io::Result<()> {
    let today = calls::now().get() / DAY_MS;
    let statement = |day: i64| {
        let number = |day: i64| (day * DAY_MS) << TIME_SHIFT;
        let (from, to) = (number(day), number(day + 1));
        format!(
            "CREATE TABLE IF NOT EXISTS calls_of_day_{day} PARTITION OF calls FOR VALUES FROM ({from}) TO ({to})"
        )
    };
    let first = today - i64::from(days) - 1;
    let statements: Vec<String> = (first..today).map(statement).collect();
    run_sql(url, &statements.join(";")).await
}

async fn run_sql(url: &str, sql: &str) -> io::Result<()> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .map_err(io::Error::other)?;
    let driver = tokio::spawn(connection);
    client.batch_execute(sql).await.map_err(io::Error::other)?;
    drop(client);
    driver.await?.map_err(io::Error::other)
}

fn journal_bytes(path: &Path) -> io::Result<u64> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let journal = format!("{name}-calls");
    let mut bytes = 0;
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new(".")))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&journal) {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}
