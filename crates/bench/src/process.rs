//! Starts and ends the server processes of a run: the upstream, the bare proxy and the gateway.
//!
//! Each process is killed by its id when its value is dropped. Our own processes also exit when their standard input
//! closes, so that no process is left behind if the runner is killed.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

const START_TIMEOUT: Duration = Duration::from_secs(10);
const LISTENING: &str = "listening on ";

pub(crate) struct ServerProcess {
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl ServerProcess {
    /// Starts one of our subcommands and waits until it listens.
    pub(crate) async fn start_own<S: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = S>,
        workers: Option<usize>,
    ) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).arg("--until-stdin-closes");
        set_workers(&mut command, workers);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("a process without output"))?;
        let mut lines = BufReader::new(output).lines();
        let line = timeout(START_TIMEOUT, lines.next_line())
            .await??
            .unwrap_or_default();
        let address = line
            .strip_prefix(LISTENING)
            .and_then(|address| address.parse().ok())
            .ok_or_else(|| io::Error::other("a process ended before it listened"))?;
        Self::running(child, address)
    }

    /// Wraps a process that listens on `address`.
    pub(crate) fn running(child: Child, address: SocketAddr) -> io::Result<Self> {
        let pid = child
            .id()
            .ok_or_else(|| io::Error::other("a process ended at once"))?;
        Ok(Self {
            pid,
            address,
            child,
        })
    }

    pub(crate) async fn end(mut self) -> io::Result<()> {
        self.child.kill().await
    }
}

/// Sets the number of runtime workers. It is the same for all compared processes.
pub(crate) fn set_workers(command: &mut Command, workers: Option<usize>) {
    if let Some(workers) = workers {
        command.env("TOKIO_WORKER_THREADS", workers.to_string());
    }
}

/// Prints the address of the listener to standard output.
pub(crate) fn announce(address: SocketAddr, until_stdin_closes: bool) -> io::Result<()> {
    if until_stdin_closes {
        end_with_stdin();
    }
    let mut output = io::stdout().lock();
    writeln!(output, "{LISTENING}{address}")?;
    output.flush()
}

fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(0);
    });
}

pub(crate) async fn output_of(command: &mut Command) -> io::Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let line = format!("{:?}", command.as_std());
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "{line} failed ({}): {}",
        output.status,
        said.trim()
    )))
}
