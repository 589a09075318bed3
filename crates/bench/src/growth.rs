//! Compares a gateway on a large store with one on a small store. The cost of a call and of a start must not grow with
//! the number of keys, wallets, entries and journal rows.

#![expect(clippy::float_arithmetic, reason = "figures for people; no money here")]
#![expect(
    clippy::cast_precision_loss,
    reason = "figures for people need three digits"
)]

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fill::{Accounts, Place, Size, fill};
use crate::filled_gateway::FilledGateway;
use crate::load::Measured;
use crate::process::ServerProcess;
use crate::process_stats;
use crate::run::Program;

const SMALL: Size = Size {
    rows: 1_000,
    days: 1,
    wallets: 100,
    keys: 1_000,
    entries: 1_000,
    tasks: 0,
};
const CONNECTIONS: u32 = 64;
/// Both stores serve calls of this many keys, so that the stores differ only in size.
const ACTIVE_KEYS: usize = 1_000;
/// The number of starts of each gateway that only time the start. The start for the calls is timed too.
const STARTS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The size of the large store.
    #[command(flatten)]
    size: Size,
    /// How many times both stores are measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of each measurement.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    #[command(flatten)]
    program: Program,
}

/// A filled store and the measurements taken on it.
struct FilledStore {
    name: &'static str,
    folder: PathBuf,
    place: Place,
    keys: PathBuf,
    size: Size,
    starts: Vec<Duration>,
    calls: Vec<Measured>,
    resident_bytes: u64,
}

pub(crate) async fn run(args: Args) -> io::Result<()> {
    let binary = args.program.binary().await?;
    let folder = args.program.folder()?;
    let upstream = ServerProcess::start_own(["upstream"], None).await?;
    let mut small = FilledStore::fill("small", folder.path(), SMALL).await?;
    let mut large = FilledStore::fill("large", folder.path(), args.size).await?;
    for _ in 0..STARTS {
        for side in [&mut small, &mut large] {
            let gateway = side.start(&binary, upstream.address).await?;
            gateway.process.end().await?;
        }
    }
    let gateways = [
        small.start(&binary, upstream.address).await?,
        large.start(&binary, upstream.address).await?,
    ];
    for _ in 0..args.rounds.max(1) {
        for (side, gateway) in [&mut small, &mut large].into_iter().zip(&gateways) {
            let calls = gateway.calls(&side.keys, CONNECTIONS, args.seconds).await?;
            side.calls.push(calls);
        }
    }
    for (side, gateway) in [&mut small, &mut large].into_iter().zip(gateways) {
        side.resident_bytes = process_stats::resident_bytes(gateway.process.pid)?;
        gateway.process.end().await?;
    }
    upstream.end().await?;
    report(&small, &large)
}

impl FilledStore {
    async fn fill(name: &'static str, parent: &Path, size: Size) -> io::Result<Self> {
        let folder = parent.join(name);
        fs::create_dir_all(&folder)?;
        writeln!(io::stdout(), "\n# The {name} store")?;
        let place = Place::Sqlite(folder.join("tollgate.db"));
        let accounts = fill(&place, size).await?;
        let keys = folder.join("keys");
        fs::write(&keys, active_keys(&accounts).join("\n"))?;
        Ok(Self {
            name,
            folder,
            place,
            keys,
            size,
            starts: Vec::new(),
            calls: Vec::new(),
            resident_bytes: 0,
        })
    }

    async fn start(&mut self, binary: &Path, upstream: SocketAddr) -> io::Result<FilledGateway> {
        let began = Instant::now();
        let gateway = FilledGateway::start(binary, &self.folder, upstream, &self.place).await?;
        self.starts.push(began.elapsed());
        Ok(gateway)
    }

    fn start_ms(&self) -> f64 {
        median(self.starts.iter().map(|it| it.as_secs_f64() * 1e3))
    }

    fn cpu_us(&self) -> f64 {
        median(
            self.calls
                .iter()
                .map(|it| it.cpu_us as f64 / it.requests.max(1) as f64),
        )
    }
}

/// Picks keys from the whole store, because adjacent keys would share database pages.
fn active_keys(accounts: &Accounts) -> Vec<&str> {
    let step = (accounts.secrets.len() / ACTIVE_KEYS).max(1);
    let keys = accounts.secrets.iter().step_by(step).take(ACTIVE_KEYS);
    keys.map(String::as_str).collect()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}

fn report(small: &FilledStore, large: &FilledStore) -> io::Result<()> {
    let mut output = io::stdout();
    writeln!(
        output,
        "\n| store | wallets | keys | entries | journal rows | start, ms | CPU of a call, µs | resident, MB |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for side in [small, large] {
        writeln!(
            output,
            "| {} | {} | {} | {} | {} | {:.0} | {:.1} | {:.0} |",
            side.name,
            side.size.wallets,
            side.size.keys,
            side.size.entries,
            side.size.rows,
            side.start_ms(),
            side.cpu_us(),
            side.resident_bytes as f64 / 1e6,
        )?;
    }
    let pairs = small.calls.iter().zip(&large.calls);
    let ratio = median(pairs.map(|(small, large)| {
        let cpu = |it: &Measured| it.cpu_us as f64 / it.requests.max(1) as f64;
        cpu(large) / cpu(small)
    }));
    writeln!(
        output,
        "\nA call on the large store costs {ratio:.2} times the CPU time of one on the small store."
    )
}
