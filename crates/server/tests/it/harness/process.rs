//! Runs the real program as a child process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

use super::wait::eventually;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program and waits until it ends.
pub(crate) async fn run(arguments: &[&str], folder: &Path) -> Output {
    run_in(arguments, folder, &[]).await
}

/// Like `run`, with additional environment variables.
pub(crate) async fn run_in(
    arguments: &[&str],
    folder: &Path,
    environment: &[(&str, &str)],
) -> Output {
    let output = tokio::process::Command::new(PROGRAM)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env_remove("TOLLGATE_CONFIG")
        .envs(environment.iter().copied())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    Output {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status()
        .unwrap();
    assert!(sent.success(), "kill -{name} {pid}");
}

/// A file in the test gateway's folder with the offset of the gateway's wall clock.
pub(crate) const CLOCK_FILE: &str = "clock";

/// The library of Debian's `faketime` package, if it is installed.
fn faketime() -> Option<std::path::PathBuf> {
    let machines = std::fs::read_dir("/usr/lib").ok()?;
    let library = |machine: std::fs::DirEntry| machine.path().join("faketime/libfaketimeMT.so.1");
    machines
        .flatten()
        .map(library)
        .find(|library| library.exists())
}

/// Whether this machine can run gateways with a [`CLOCK_FILE`].
pub(crate) fn can_play_clocks() -> bool {
    faketime().is_some()
}

/// A program that runs until it is stopped. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    /// Reads the lines until the output is closed.
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the program and collects the lines of one of its outputs.
    pub(crate) fn start(arguments: &[&str], folder: &Path, listen_to: Channel) -> Self {
        Self::start_in(arguments, folder, listen_to, &[])
    }

    /// Like `start`, with additional environment variables.
    pub(crate) fn start_in(
        arguments: &[&str],
        folder: &Path,
        listen_to: Channel,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .current_dir(folder)
            .envs(environment.iter().copied())
            .env_remove("TOLLGATE_CONFIG")
            .env_remove("TOLLGATE_LOG")
            .stdin(Stdio::null());
        let clock = folder.join(CLOCK_FILE);
        if let Some(library) = faketime().filter(|_| clock.exists()) {
            command
                .env("LD_PRELOAD", library)
                // `faketime` reads dates in the local time zone.
                .env("TZ", "UTC")
                .env("FAKETIME_TIMESTAMP_FILE", clock)
                .env("FAKETIME_NO_CACHE", "1")
                .env("DONT_FAKE_MONOTONIC", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        match listen_to {
            Channel::Stdout => command.stdout(Stdio::piped()).stderr(Stdio::null()),
            Channel::Stderr => command.stdout(Stdio::null()).stderr(Stdio::piped()),
        };
        let mut child = command.spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let listen = move |output: &mut dyn std::io::Read| {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                written.lock().unwrap().push(line);
            }
        };
        let reader = match (child.stdout.take(), child.stderr.take()) {
            (Some(mut output), _) => std::thread::spawn(move || listen(&mut output)),
            (None, Some(mut output)) => std::thread::spawn(move || listen(&mut output)),
            (None, None) => unreachable!("one of them is piped"),
        };
        Self {
            child,
            lines,
            reader: Some(reader),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for the first line that satisfies `wanted`. The program must not end before.
    pub(crate) async fn line(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        eventually(what, async || {
            let has_ended = self.child.try_wait().unwrap().is_some();
            if has_ended {
                self.read_to_end();
            }
            let found = self.lines().into_iter().find(|line| wanted(line));
            assert!(
                found.is_some() || !has_ended,
                "it ended without {what}:\n{}",
                self.lines().join("\n")
            );
            found
        })
        .await
    }

    /// Waits for the last lines of a process that has ended. They may still be in the pipe.
    fn read_to_end(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }

    /// Sends `kill -9` and waits for the end of the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the program has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let status = eventually("its end", async || self.child.try_wait().unwrap()).await;
        self.read_to_end();
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output that is collected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

/// The public and the admin address in the line that a gateway logs when it is ready.
pub(crate) fn addresses(line: &str) -> (SocketAddr, SocketAddr) {
    let line: Value = serde_json::from_str(line).unwrap();
    let address = |name: &str| line[name].as_str().unwrap().parse().unwrap();
    (address("address"), address("admin"))
}
