//! Starts a gateway with an admin token on a filled store.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::timing::TOKEN;
use crate::fill::Place;
use crate::process::ServerProcess;
use crate::run::{CREDENTIAL, config, free_addresses, log_end, ready};

const CONFIG: &str = "tollgate.toml";
const LOG: &str = "gateway.log";
const TOKEN_VARIABLE: &str = "TOLLGATE_BENCH_ADMIN_TOKEN";

pub(super) struct AdminGateway {
    pub(super) process: ServerProcess,
    pub(super) admin: SocketAddr,
}

impl AdminGateway {
    pub(super) async fn start(
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
}
