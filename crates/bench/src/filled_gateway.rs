//! A gateway with an admin token on a filled store.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::process::Command;

use crate::fill::Place;
use crate::load::Measured;
use crate::process::{ServerProcess, output_of};
use crate::run::{CONFIG, config, free_addresses, serve};

pub(crate) const TOKEN: &str = "bench-admin-token-0123456789";
const TOKEN_VARIABLE: &str = "TOLLGATE_BENCH_ADMIN_TOKEN";

pub(crate) struct FilledGateway {
    pub(crate) process: ServerProcess,
    pub(crate) admin: SocketAddr,
}

impl FilledGateway {
    /// Starts the gateway and waits until it is ready.
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
        fs::write(folder.join(CONFIG), text)?;
        let mut command = Command::new(binary);
        command.env(TOKEN_VARIABLE, TOKEN);
        let process = serve(command, folder, (listen, admin)).await?;
        Ok(Self { process, admin })
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
