//! The command that runs the benchmark.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::args::Args;
use super::figures::{ScenarioResults, TargetResults};
use super::floors::{self, Bound};
use super::gateway::{Gateway, GatewayFactory, KeyFiles};
use super::load_command::MeasuredTarget;
use super::memory::{self, Memory};
use super::rounds::Rounds;
use super::target::Target;
use super::{disk, table};
use crate::process::ServerProcess;

#[derive(Serialize)]
struct Findings {
    cores: usize,
    sync_us: u128,
    results: Vec<ScenarioResults>,
    bare_memory: Option<Memory>,
    gateway_memory: Option<Memory>,
    bare_session_bytes: Option<u64>,
    gateway_session_bytes: Option<u64>,
    floors: Vec<Bound>,
}

/// Runs until done or interrupted. In both cases every process that it started is killed.
pub(crate) async fn run(args: Args) -> io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        done = measure_and_report(args) => done,
        _ = terminated.recv() => Err(io::Error::other("terminated")),
        _ = tokio::signal::ctrl_c() => Err(io::Error::other("interrupted")),
    }
}

async fn measure_and_report(args: Args) -> io::Result<()> {
    if cfg!(debug_assertions) {
        writeln!(
            io::stderr(),
            "warning: a debug build; only figures of release builds mean anything"
        )?;
    }
    let binary = if args.no_gateway {
        None
    } else {
        Some(args.program.binary().await?)
    };
    let folder = args.program.folder()?;
    let findings = measure(&args, binary, folder.path()).await?;
    if let Some(path) = &args.json {
        serde_json::to_writer_pretty(File::create(path)?, &findings)?;
    }
    let failures: u64 = findings
        .results
        .iter()
        .flat_map(|result| &result.rows)
        .map(TargetResults::failures)
        .sum();
    if failures > 0 {
        return Err(io::Error::other(format!(
            "{failures} calls failed, so the figures mean nothing"
        )));
    }
    Ok(())
}

async fn measure(args: &Args, binary: Option<PathBuf>, folder: &Path) -> io::Result<Findings> {
    let mut output = io::stdout();
    let cores = std::thread::available_parallelism()?.get();
    let sync_time = disk::sync_time(folder)?;
    writeln!(
        output,
        "{cores} cores; a small write is durable after {sync_time:.0?}"
    )?;

    let upstream = ServerProcess::start_own(["upstream"], None).await?;
    let prepared = match binary {
        None => None,
        Some(binary) => {
            writeln!(output, "preparing wallets and keys")?;
            let address = upstream.address;
            let server = args.postgres.as_deref();
            let kit = GatewayFactory::new(binary, address, args.workers, folder, server).await?;
            let keys = kit.populate(folder, &args.population).await?;
            Some((kit, keys))
        }
    };

    let results = run_scenarios(args, &upstream, prepared.as_ref(), folder, &mut output).await?;
    let mut bare_memory = None;
    let mut gateway_memory = None;
    let mut bare_session_bytes = None;
    let mut gateway_session_bytes = None;
    if !args.no_memory {
        bare_memory = Some(memory_of_bare(&upstream, args).await?);
        bare_session_bytes = Some(sessions_of_bare(&upstream, args).await?);
        if let Some((kit, keys)) = &prepared {
            gateway_memory = Some(memory_of_gateway(kit, keys, folder, args).await?);
            gateway_session_bytes = Some(sessions_of_gateway(kit, keys, folder, args).await?);
        }
        write_memory(
            &mut output,
            "bare proxy",
            bare_memory.as_ref(),
            bare_session_bytes,
        )?;
        write_memory(
            &mut output,
            "gateway",
            gateway_memory.as_ref(),
            gateway_session_bytes,
        )?;
    }
    if let Some((kit, _)) = prepared {
        kit.clear().await?;
    }
    let floors = floors::judge(&results, gateway_memory.as_ref(), gateway_session_bytes);
    if !floors.is_empty() {
        floors::write(&mut output, &floors)?;
    }
    Ok(Findings {
        cores,
        sync_us: sync_time.as_micros(),
        results,
        bare_memory,
        gateway_memory,
        bare_session_bytes,
        gateway_session_bytes,
        floors,
    })
}

/// Runs every scenario with all targets, and prints the result of each as soon as it is done.
async fn run_scenarios(
    args: &Args,
    upstream: &ServerProcess,
    prepared: Option<&(GatewayFactory, KeyFiles)>,
    folder: &Path,
    output: &mut impl Write,
) -> io::Result<Vec<ScenarioResults>> {
    let bare = start_bare(upstream, args.workers).await?;
    let mut gateways: Vec<(Target, Gateway)> = Vec::new();
    if let Some((kit, _)) = prepared {
        for target in kit.targets() {
            let gateway = kit.start(&folder.join(target.folder()), target).await?;
            gateways.push((target, gateway));
        }
    }
    let mut target = vec![
        MeasuredTarget {
            target: Target::Direct,
            process: upstream,
        },
        MeasuredTarget {
            target: Target::Bare,
            process: &bare,
        },
    ];
    target.extend(gateways.iter().map(|(target, gateway)| MeasuredTarget {
        target: *target,
        process: &gateway.process,
    }));

    let rounds = Rounds {
        count: args.rounds.unwrap_or(args.extent().rounds()),
        measure_ms: args.seconds.map_or(args.extent().measure_ms(), |seconds| {
            seconds.saturating_mul(1000)
        }),
        keys: prepared.map(|(_, keys)| keys.active.clone()),
    };
    writeln!(
        output,
        "{} rounds of {} ms for each\n",
        rounds.count, rounds.measure_ms
    )?;
    let mut results = Vec::new();
    for scenario in args.scenarios() {
        let result = rounds.play(scenario, &target).await?;
        table::write(output, &result)?;
        results.push(result);
    }
    drop(target);

    bare.end().await?;
    if let Some((kit, _)) = prepared {
        for (_, gateway) in gateways {
            kit.end_and_verify(gateway).await?;
        }
        writeln!(output, "the ledgers balance after kill -9\n")?;
    }
    Ok(results)
}

async fn start_bare(upstream: &ServerProcess, workers: Option<usize>) -> io::Result<ServerProcess> {
    ServerProcess::start_own(
        ["bare", "--upstream", &upstream.address.to_string()],
        workers,
    )
    .await
}

async fn memory_of_bare(upstream: &ServerProcess, args: &Args) -> io::Result<Memory> {
    let bare = start_bare(upstream, args.workers).await?;
    let memory = memory::measure(
        &MeasuredTarget {
            target: Target::Bare,
            process: &bare,
        },
        None,
        args.streams,
        false,
    )
    .await?;
    bare.end().await?;
    Ok(memory)
}

async fn sessions_of_bare(upstream: &ServerProcess, args: &Args) -> io::Result<u64> {
    let bare = start_bare(upstream, args.workers).await?;
    let target = MeasuredTarget {
        target: Target::Bare,
        process: &bare,
    };
    let bytes = memory::of_each_session(&target, None, args.sessions).await?;
    bare.end().await?;
    Ok(bytes)
}

async fn sessions_of_gateway(
    kit: &GatewayFactory,
    keys: &KeyFiles,
    folder: &Path,
    args: &Args,
) -> io::Result<u64> {
    let folder = folder.join("sessions");
    let gateway = kit.start(&folder, Target::BeforeAnswer).await?;
    let target = MeasuredTarget {
        target: Target::BeforeAnswer,
        process: &gateway.process,
    };
    let bytes = memory::of_each_session(&target, Some(keys), args.sessions).await?;
    gateway.process.end().await?;
    Ok(bytes)
}

async fn memory_of_gateway(
    kit: &GatewayFactory,
    keys: &KeyFiles,
    folder: &Path,
    args: &Args,
) -> io::Result<Memory> {
    let gateway = kit
        .start(&folder.join("memory"), Target::BeforeAnswer)
        .await?;
    let target = MeasuredTarget {
        target: Target::BeforeAnswer,
        process: &gateway.process,
    };
    let memory = memory::measure(&target, Some(keys), args.streams, !args.quick).await?;
    gateway.process.end().await?;
    Ok(memory)
}

fn write_memory(
    output: &mut impl Write,
    name: &str,
    memory: Option<&Memory>,
    session_bytes: Option<u64>,
) -> io::Result<()> {
    let Some(memory) = memory else {
        return Ok(());
    };
    let Memory {
        idle_bytes,
        stream_bytes,
        keys_used_bytes,
    } = memory;
    write!(
        output,
        "{name}: {} KB resident when idle, {} KB for each open stream",
        idle_bytes / 1000,
        stream_bytes / 1000
    )?;
    if let Some(bytes) = session_bytes {
        write!(output, ", {} KB for each session", bytes / 1000)?;
    }
    if let Some(bytes) = keys_used_bytes {
        write!(output, ", {} KB after every key was used", bytes / 1000)?;
    }
    writeln!(output)
}
