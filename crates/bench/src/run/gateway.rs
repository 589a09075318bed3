//! Prepares and starts the gateway under measurement.
//!
//! It is set up the way an operator would do it: with a configuration file, `tollgate wallet create`,
//! `tollgate key create` and `tollgate serve`. `tollgate key create` makes only one key; the others are
//! copies of its row in the database.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::keys;
use super::postgres::Schema;
use super::scenario::{SESSION_MODEL, Upstream};
use super::target::Target;
use crate::process::{ServerProcess, output_of, set_workers};

const READY_TIMEOUT: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const LOG_BYTES_SHOWN: usize = 2000;

pub(crate) const CONFIG: &str = "tollgate.toml";
const DATABASE: &str = "tollgate.db";
const LOG: &str = "gateway.log";
const CREDENTIAL: &str = "TOLLGATE_BENCH_CREDENTIAL";

/// The parts that all gateways of a run share.
pub(super) struct GatewayFactory {
    pub(super) binary: PathBuf,
    pub(super) upstream: SocketAddr,
    pub(super) workers: Option<usize>,
    /// A folder with a database that contains the wallets and all keys.
    seed: PathBuf,
    /// The same wallets and keys in a schema of a `PostgreSQL` server.
    schema: Option<Schema>,
}

/// The wallets and keys of the gateway.
#[derive(clap::Args)]
pub(super) struct Population {
    /// Wallets in the gateway's store.
    #[arg(long, default_value_t = 100)]
    wallets: usize,
    /// Keys in the gateway's store, spread over the wallets.
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Keys that the load uses, a sample of all keys.
    #[arg(long, default_value_t = 1000)]
    active_keys: usize,
}

pub(super) struct KeyFiles {
    pub(super) active: PathBuf,
    pub(super) all: PathBuf,
}

pub(super) struct Gateway {
    pub(super) process: ServerProcess,
    folder: PathBuf,
}

impl GatewayFactory {
    pub(super) async fn new(
        binary: PathBuf,
        upstream: SocketAddr,
        workers: Option<usize>,
        folder: &Path,
        server: Option<&str>,
    ) -> io::Result<Self> {
        let schema = match server {
            Some(server) => Some(Schema::create(server).await?),
            None => None,
        };
        Ok(Self {
            binary,
            upstream,
            workers,
            seed: folder.join("seed"),
            schema,
        })
    }

    /// The gateways that can be started.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> {
        let on_server = self.schema.iter().map(|_| Target::Postgres);
        Target::GATEWAYS.into_iter().chain(on_server)
    }

    /// Creates the wallets and keys that every gateway of the run starts with.
    pub(super) async fn populate(
        &self,
        folder: &Path,
        population: &Population,
    ) -> io::Result<KeyFiles> {
        let count = population.keys.max(1);
        self.write_config(&self.seed, Target::BeforeAnswer)?;
        let key_id = self.make_key(population.wallets).await?;
        keys::multiply(&self.seed.join(DATABASE), &key_id, count)?;
        if let Some(schema) = &self.schema {
            self.write_config(&self.seed, Target::Postgres)?;
            let key_id = self.make_key(population.wallets).await?;
            schema.multiply(&key_id, count).await?;
        }
        let secrets = keys::secrets(count);
        let active = population.active_keys.clamp(1, count);
        let keys = KeyFiles {
            active: folder.join("keys-active"),
            all: folder.join("keys-all"),
        };
        fs::write(&keys.all, secrets.join("\n"))?;
        fs::write(&keys.active, secrets[..active].join("\n"))?;
        Ok(keys)
    }

    /// Creates the wallets and one key of the first wallet, and returns the id of the key.
    async fn make_key(&self, wallets: usize) -> io::Result<String> {
        for number in 0..wallets.max(1) {
            let name = format!("bench-{number}");
            self.command_line(&["wallet", "create", &name, "--balance", "1000000"])
                .await?;
        }
        let limits = "--rpm 1000000000 --tpm 2000000000 --concurrency 100000";
        let line = ["key", "create", "--wallet", "bench-0"].into_iter();
        let line: Vec<&str> = line.chain(limits.split(' ')).collect();
        let created = self.command_line(&line).await?;
        let id = created["id"].as_str();
        let id = id.ok_or_else(|| io::Error::other("a key without an id"))?;
        Ok(id.to_owned())
    }

    async fn command_line(&self, arguments: &[&str]) -> io::Result<serde_json::Value> {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .arg("--json")
            .arg("--config")
            .arg(self.seed.join(CONFIG));
        let output = output_of(command.env(CREDENTIAL, "bench")).await?;
        Ok(serde_json::from_slice(&output)?)
    }

    /// Starts a gateway on its own database and waits until it is ready.
    pub(super) async fn start(&self, folder: &Path, target: Target) -> io::Result<Gateway> {
        fs::create_dir_all(folder)?;
        for entry in fs::read_dir(&self.seed)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        let (listen, admin) = self.write_config(folder, target)?;
        let mut command = Command::new(&self.binary);
        set_workers(&mut command, self.workers);
        Ok(Gateway {
            process: serve(command, folder, (listen, admin)).await?,
            folder: folder.to_owned(),
        })
    }

    /// Writes a configuration with free ports. Returns the public and the admin address.
    fn write_config(&self, folder: &Path, target: Target) -> io::Result<(SocketAddr, SocketAddr)> {
        fs::create_dir_all(folder)?;
        let addresses = free_addresses()?;
        let store = match &self.schema {
            Some(schema) if target == Target::Postgres => schema.url.clone(),
            _ => format!("sqlite:{DATABASE}"),
        };
        fs::write(
            folder.join(CONFIG),
            config(addresses, self.upstream, &store, target.commit()),
        )?;
        Ok(addresses)
    }

    pub(super) async fn end_and_verify(&self, gateway: Gateway) -> io::Result<()> {
        gateway.process.end().await?;
        let mut command = Command::new(&self.binary);
        command
            .args(["ledger", "verify", "--config"])
            .arg(gateway.folder.join(CONFIG));
        output_of(command.env(CREDENTIAL, "bench")).await.map(drop)
    }

    /// Drops the schema from the `PostgreSQL` server.
    pub(super) async fn clear(self) -> io::Result<()> {
        match self.schema {
            Some(schema) => schema.drop().await,
            None => Ok(()),
        }
    }
}

/// Finds free addresses for the public and the admin listener.
pub(crate) fn free_addresses() -> io::Result<(SocketAddr, SocketAddr)> {
    // Both ports are bound at the same time, so that they differ.
    let public = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok((public.local_addr()?, admin.local_addr()?))
}

pub(crate) fn config(
    (listen, admin): (SocketAddr, SocketAddr),
    upstream: SocketAddr,
    store: &str,
    commit: &str,
) -> String {
    let mut text = format!(
        "[server]\nlisten = \"{listen}\"\n[admin]\nlisten = \"{admin}\"\n\
         [store]\nurl = \"{store}\"\n[ledger]\ncommit = \"{commit}\"\n"
    );
    for kind in Upstream::ALL {
        let (name, model, path) = (kind.name(), kind.model(), kind.base_path());
        let _ = write!(
            text,
            "[[channel]]\nname = \"{name}\"\npreset = \"openai-compatible\"\n\
             base_url = \"http://{upstream}{path}\"\ncredential = {{ env = \"{CREDENTIAL}\" }}\n\
             [[model]]\nid = \"{model}\"\nkind = \"text\"\n\
             routes = [{{ channel = \"{name}\", model = \"fixed\" }}]\n\
             price = {{ input = \"1.25\", output = \"10\" }}\n\
             profile = {{ context_tokens = 2000000, max_output_tokens = 128000 }}\n"
        );
    }
    let _ = write!(
        text,
        "[[channel]]\nname = \"voice\"\npreset = \"openai-compatible\"\nprotocols = [\"voice\"]\n\
         base_url = \"http://{upstream}/v1\"\ncredential = {{ env = \"{CREDENTIAL}\" }}\n\
         [[model]]\nid = \"{SESSION_MODEL}\"\nkind = \"audio\"\n\
         routes = [{{ channel = \"voice\", model = \"fixed\" }}]\n\
         price = {{ realtime_minute = \"0.08\", stt_stream_second = \"0.00006\" }}\n"
    );
    text
}

/// Starts `tollgate serve` with the configuration in a folder, and waits until it is ready.
pub(crate) async fn serve(
    mut command: Command,
    folder: &Path,
    (listen, admin): (SocketAddr, SocketAddr),
) -> io::Result<ServerProcess> {
    let log = File::create(folder.join(LOG))?;
    let child = command
        .args(["serve", "--config"])
        .arg(folder.join(CONFIG))
        .env(CREDENTIAL, "bench")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    let process = ServerProcess::running(child, listen)?;
    if ready(admin).await {
        return Ok(process);
    }
    Err(io::Error::other(format!(
        "the gateway did not become ready; its log ends:\n{}",
        log_end(&folder.join(LOG))
    )))
}

/// Polls `/readyz` until the gateway is ready.
async fn ready(admin: SocketAddr) -> bool {
    let started = Instant::now();
    while started.elapsed() < READY_TIMEOUT {
        if matches!(timeout(PROBE_TIMEOUT, probe(admin)).await, Ok(Ok(true))) {
            return true;
        }
        sleep(READY_POLL).await;
    }
    false
}

async fn probe(admin: SocketAddr) -> io::Result<bool> {
    let mut socket = TcpStream::connect(admin).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut status = [0; 12];
    socket.read_exact(&mut status).await?;
    Ok(status == *b"HTTP/1.1 200")
}

fn log_end(log: &Path) -> String {
    let log = fs::read(log).unwrap_or_default();
    let start = log.len().saturating_sub(LOG_BYTES_SHOWN);
    String::from_utf8_lossy(&log[start..]).into_owned()
}
