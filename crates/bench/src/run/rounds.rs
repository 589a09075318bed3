//! Measures the targets alternately in one scenario.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

use super::figures::{RoundResult, ScenarioResults, TargetResults};
use super::load_command::MeasuredTarget;
use super::scenario::Scenario;
use crate::load::Measured;
use crate::process::output_of;
use crate::process_stats;

const WARM_UP_MS: u64 = 150;
/// A pause between measurements, so that leftover work of one does not affect the next.
const MEASUREMENT_PAUSE: Duration = Duration::from_millis(60);

pub(super) struct Rounds {
    pub(super) count: usize,
    pub(super) measure_ms: u64,
    pub(super) keys: Option<PathBuf>,
}

impl Rounds {
    pub(super) async fn play(
        &self,
        scenario: Scenario,
        target: &[MeasuredTarget<'_>],
    ) -> io::Result<ScenarioResults> {
        let row = |target: &MeasuredTarget<'_>| TargetResults {
            target: target.target,
            turns: Vec::new(),
        };
        let mut rows: Vec<TargetResults> = target.iter().map(row).collect();
        for round in 0..self.count {
            // Each round starts with another target, so that no target is always measured first.
            for position in 0..target.len() {
                let index = (position + round) % target.len();
                rows[index]
                    .turns
                    .push(self.turn(scenario, &target[index]).await?);
                sleep(MEASUREMENT_PAUSE).await;
            }
        }
        Ok(ScenarioResults {
            scenario,
            name: scenario.to_string(),
            rows,
        })
    }

    async fn turn(
        &self,
        scenario: Scenario,
        target: &MeasuredTarget<'_>,
    ) -> io::Result<RoundResult> {
        let watched = target.watched();
        if let Some(pid) = watched {
            process_stats::forget_peak(pid);
        }
        let measured = self.load(scenario, target).await?;
        Ok(RoundResult {
            measured,
            peak_bytes: watched.map(process_stats::peak_bytes).transpose()?,
        })
    }

    async fn load(&self, scenario: Scenario, target: &MeasuredTarget<'_>) -> io::Result<Measured> {
        let delay_ms = scenario.upstream.delay_ms();
        let mut command = target.command("load", scenario, self.keys.as_deref())?;
        command
            .args(["--warm-up-ms", &(WARM_UP_MS + 2 * delay_ms).to_string()])
            .args(["--stagger-ms", &delay_ms.to_string()])
            .args(["--measure-ms", &self.measure_ms.to_string()]);
        if let Some(pid) = target.watched() {
            command.args(["--watch", &pid.to_string()]);
        }
        Ok(serde_json::from_slice(&output_of(&mut command).await?)?)
    }
}
