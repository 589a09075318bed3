//! The arguments of the benchmark.

use std::path::PathBuf;

use super::binary::Program;
use super::gateway::Population;
use super::memory::STREAMS;
use super::scenario::{Extent, SESSIONS, Scenario};

#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Args {
    /// About a minute: the most important scenarios.
    #[arg(long, conflicts_with = "full")]
    pub(super) quick: bool,
    /// Every scenario, longer; about a quarter of an hour.
    #[arg(long)]
    pub(super) full: bool,
    /// Only scenarios whose name contains this text, such as `stream` or `plain-instant-64`.
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
    /// Seconds of each measurement.
    #[arg(long)]
    pub(super) seconds: Option<u64>,
    /// Rounds of each scenario.
    #[arg(long)]
    pub(super) rounds: Option<usize>,
    /// Number of concurrent sessions.
    #[arg(long, default_value_t = SESSIONS)]
    pub(super) sessions: u32,
    /// Number of streams that are open while memory is measured.
    #[arg(long, default_value_t = STREAMS)]
    pub(super) streams: u32,
    /// Compares the bare proxy with the upstream, without the gateway.
    #[arg(long, conflicts_with = "gateway")]
    pub(super) no_gateway: bool,
    /// Does not measure resident memory.
    #[arg(long)]
    pub(super) no_memory: bool,
    #[command(flatten)]
    pub(super) program: Program,
    #[command(flatten)]
    pub(super) population: Population,
    /// Runtime workers of the bare proxy and of the gateway; by default one per core.
    #[arg(long)]
    pub(super) workers: Option<usize>,
    /// Also measures the gateway on this `PostgreSQL` server, in a schema of its own.
    #[arg(
        long,
        value_name = "URL",
        env = "TOLLGATE_TEST_POSTGRES",
        conflicts_with = "no_gateway"
    )]
    pub(super) postgres: Option<String>,
    /// Writes all figures to this file.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

impl Args {
    pub(super) fn extent(&self) -> Extent {
        match (self.quick, self.full) {
            (true, _) => Extent::Quick,
            (false, true) => Extent::Full,
            (false, false) => Extent::Usual,
        }
    }

    pub(super) fn scenarios(&self) -> Vec<Scenario> {
        // A scenario that is selected by name is measured even if the chosen extent does not
        // include it.
        let extent = if self.only.is_empty() {
            self.extent()
        } else {
            Extent::Full
        };
        let mut scenarios = extent.scenarios();
        for scenario in &mut scenarios {
            if scenario.shape.session_kind().is_some() {
                scenario.connections = self.sessions.max(1);
            }
        }
        if !self.only.is_empty() {
            scenarios.retain(|scenario| {
                let name = scenario.to_string();
                self.only.iter().any(|part| name.contains(part.as_str()))
            });
        }
        scenarios
    }
}
