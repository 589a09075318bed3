//! What the command can be told.

use std::path::PathBuf;

use super::gateway::Population;
use super::scenario::{Extent, SESSIONS, Scenario};

#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Args {
    /// About a minute: the scenarios that decide most.
    #[arg(long, conflicts_with = "full")]
    pub(super) quick: bool,
    /// Every scenario, longer; about a quarter of an hour.
    #[arg(long)]
    pub(super) full: bool,
    /// Only scenarios whose name holds this text, such as `stream` or `plain-instant-64`.
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
    /// Seconds of each turn.
    #[arg(long)]
    pub(super) seconds: Option<u64>,
    /// Rounds of each scenario.
    #[arg(long)]
    pub(super) rounds: Option<usize>,
    /// Sessions at a time, where sessions are held.
    #[arg(long, default_value_t = SESSIONS)]
    pub(super) sessions: u32,
    /// Measures the bare proxy against the upstream alone.
    #[arg(long)]
    pub(super) no_gateway: bool,
    /// Leaves out resident memory.
    #[arg(long)]
    pub(super) no_memory: bool,
    /// The gateway's binary; without it, it is built and taken from beside this one.
    #[arg(long, value_name = "PATH", conflicts_with = "no_gateway")]
    pub(super) gateway: Option<PathBuf>,
    #[command(flatten)]
    pub(super) population: Population,
    /// Runtime workers of the bare proxy and of the gateway; one for each core without it.
    #[arg(long)]
    pub(super) workers: Option<usize>,
    /// Where the gateway's databases lie for the time of the run; beside this binary without it.
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,
    /// Measures the gateway on this `PostgreSQL` server too, in a schema of its own.
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
        // Naming a scenario is reason enough to measure it, whatever the extent.
        let extent = if self.only.is_empty() {
            self.extent()
        } else {
            Extent::Full
        };
        let mut scenarios = extent.scenarios();
        for scenario in &mut scenarios {
            if scenario.shape.topic().is_some() {
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
