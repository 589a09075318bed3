//! Measures resident memory: idle, per open stream, and per session.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{sleep, timeout};

use super::gateway::KeyFiles;
use super::load_command::MeasuredTarget;
use super::scenario::{Scenario, Upstream};
use crate::load::{Measured, OPEN, Shape};
use crate::process::output_of;
use crate::process_stats;

/// The default number of open streams.
pub(super) const STREAMS: u32 = 500;
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before a measurement. It gives streams time to deliver a few events, and idle
/// processes time to settle.
const SETTLE: Duration = Duration::from_millis(1500);

const FEW_CALLS: Scenario = Scenario {
    shape: Shape::Plain,
    upstream: Upstream::Instant,
    connections: 1,
};
const MANY_CALLS: Scenario = Scenario {
    shape: Shape::Plain,
    upstream: Upstream::Instant,
    connections: 64,
};

/// The memory of one freshly started process.
#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "a unit stands last in every name"
)]
pub(super) struct Memory {
    /// The memory after a few calls.
    pub(super) idle_bytes: u64,
    /// The memory that each open stream adds.
    pub(super) stream_bytes: u64,
    /// The memory after every key has been used once.
    pub(super) keys_used_bytes: Option<u64>,
}

/// Measures a process that has not served any request yet.
pub(super) async fn measure(
    target: &MeasuredTarget<'_>,
    keys: Option<&KeyFiles>,
    streams: u32,
    every_key: bool,
) -> io::Result<Memory> {
    let open_streams = Scenario {
        shape: Shape::Stream,
        upstream: Upstream::Paced,
        connections: streams.max(1),
    };
    let active = keys.map(|keys| keys.active.as_path());
    warm_up(target, FEW_CALLS, active).await?;
    sleep(SETTLE).await;
    let idle_bytes = process_stats::resident_bytes(target.process.pid)?;
    let stream_bytes = bytes_of_each(target, open_streams, active, idle_bytes).await?;
    let keys_used_bytes = match keys {
        Some(keys) if every_key => Some(keys_used_bytes(target, keys).await?),
        _ => None,
    };
    Ok(Memory {
        idle_bytes,
        stream_bytes,
        keys_used_bytes,
    })
}

/// The memory that each session adds while audio flows in both directions. The process must be
/// fresh, because sessions would reuse memory that calls have left behind.
pub(super) async fn of_each_session(
    target: &MeasuredTarget<'_>,
    keys: Option<&KeyFiles>,
    sessions: u32,
) -> io::Result<u64> {
    let active = keys.map(|keys| keys.active.as_path());
    let speaking = |connections| Scenario {
        shape: Shape::Realtime,
        upstream: Upstream::Instant,
        connections,
    };
    warm_up(target, speaking(1), active).await?;
    sleep(SETTLE).await;
    let idle_bytes = process_stats::resident_bytes(target.process.pid)?;
    bytes_of_each(target, speaking(sessions), active, idle_bytes).await
}

async fn warm_up(
    target: &MeasuredTarget<'_>,
    scenario: Scenario,
    keys: Option<&Path>,
) -> io::Result<()> {
    let mut command = target.command("load", scenario, keys)?;
    check(&output_of(command.args(["--warm-up-ms", "0", "--measure-ms", "100"])).await?)
}

async fn keys_used_bytes(target: &MeasuredTarget<'_>, keys: &KeyFiles) -> io::Result<u64> {
    let mut command = target.command("load", MANY_CALLS, Some(&keys.all))?;
    check(&output_of(command.arg("--each-key-once")).await?)?;
    sleep(SETTLE).await;
    process_stats::resident_bytes(target.process.pid)
}

fn check(output: &[u8]) -> io::Result<()> {
    let measured: Measured = serde_json::from_slice(output)?;
    measured
        .first_failure
        .map_or(Ok(()), |failure| Err(io::Error::other(failure)))
}

/// The memory that each open stream or session of a scenario adds.
async fn bytes_of_each(
    target: &MeasuredTarget<'_>,
    scenario: Scenario,
    keys: Option<&Path>,
    idle_bytes: u64,
) -> io::Result<u64> {
    let mut command = target.command("hold", scenario, keys)?;
    let mut holder = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = holder
        .stdout
        .take()
        .ok_or_else(|| io::Error::other("a holder without output"))?;
    let line = timeout(OPEN_TIMEOUT, BufReader::new(output).lines().next_line()).await??;
    if line.as_deref() != Some(OPEN) {
        return Err(io::Error::other(format!("{scenario} did not open")));
    }
    sleep(SETTLE).await;
    let bytes = process_stats::resident_bytes(target.process.pid)?;
    holder.kill().await?;
    Ok(bytes.saturating_sub(idle_bytes) / u64::from(scenario.connections))
}
