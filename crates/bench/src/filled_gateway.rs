//! A gateway with an admin token on a filled store.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::fill::Place;
use crate::load::Measured;
use crate::process::{ServerProcess, output_of};
use crate::run::{CREDENTIAL, config, free_addresses, log_end, ready};

const CONFIG: &str = "tollgate.toml";
const LOG: &str = "gateway.log";
/// The admin token.
pub(crate) const TOKEN: &str = "bench-admin-token-0123456789";
const TOKEN_VARIABLE: &str = "TOLLGATE_BENCH_ADMIN_TOKEN";

pub(crate) struct FilledGateway {
    pub(crate) process: ServerProcess,
    pub(crate) admin: SocketAddr,
}

impl FilledGateway {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(
        binary: &Path,
        folder: &Path,
        upstream: SocketAddr,
        place: &Place,
    ) -> io::Result<Self> {
        let (listen, admin) = free_addresses()?;
        let store = match place {
            Place::Sqlite(path) => format!("sqlite:{}", path.display()),
            Place::Postgres(url) => url.clone(),
        };
        let text = config((listen, admin), upstream, &store, "before-answer");
        let token = format!("[admin]\ntoken = {{ env = \"{TOKEN_VARIABLE}\" }}\n");
        let text = text.replacen("[admin]\n", &token, 1) + "[journal]\nretention_days = 0\n";
        let file = folder.join(CONFIG);
        fs::write(&file, text)?;
        let log = File::create(folder.join(LOG))?;
        let child = Command::new(binary)
            .args(["serve", "--config"])
            .arg(&file)
            .env(CREDENTIAL, "bench")
            .env(TOKEN_VARIABLE, TOKEN)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let process = ServerProcess::running(child, listen)?;
        if ready(admin).await {
            return Ok(Self { process, admin });
        }
        Err(io::Error::other(format!(
            "the gateway did not become ready; its log ends:\n{}",
            log_end(&folder.join(LOG))
        )))
    }

    /// Measures plain calls with the keys of a file.
    pub(crate) async fn calls(
        &self,
        keys: &Path,
        connections: u32,
        seconds: u64,
    ) -> io::Result<Measured> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["load", "--shape", "plain", "--model", "bench/instant"])
            .args(["--address", &self.process.address.to_string()])
            .args(["--connections", &connections.to_string()])
            .args(["--measure-ms", &(seconds * 1_000).to_string()])
            .args(["--watch", &self.process.pid.to_string()])
            .arg("--keys")
            .arg(keys);
        let measured: Measured = serde_json::from_slice(&output_of(&mut command).await?)?;
        match &measured.first_failure {
            Some(failure) => Err(io::Error::other(failure.clone())),
            None => Ok(measured),
        }
    }
}
