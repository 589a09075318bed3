//! Lets the targets take turns in one scenario.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

use super::ask::Asked;
use super::figures::{Row, Sheet, Turn};
use super::scenario::Scenario;
use crate::load::Measured;
use crate::part::output_of;
use crate::proc;

const WARM_UP_MS: u64 = 150;
/// What a turn leaves to be done behind it should not fall into the next one.
const REST: Duration = Duration::from_millis(60);

pub(super) struct Rounds {
    pub(super) count: usize,
    pub(super) measure_ms: u64,
    pub(super) keys: Option<PathBuf>,
}

impl Rounds {
    pub(super) async fn play(&self, scenario: Scenario, asked: &[Asked<'_>]) -> io::Result<Sheet> {
        let row = |asked: &Asked<'_>| Row {
            target: asked.target,
            turns: Vec::new(),
        };
        let mut rows: Vec<Row> = asked.iter().map(row).collect();
        for round in 0..self.count {
            // Each round begins with another target, so that none always follows the same one.
            for position in 0..asked.len() {
                let index = (position + round) % asked.len();
                rows[index]
                    .turns
                    .push(self.turn(scenario, &asked[index]).await?);
                sleep(REST).await;
            }
        }
        Ok(Sheet {
            scenario,
            name: scenario.to_string(),
            rows,
        })
    }

    async fn turn(&self, scenario: Scenario, asked: &Asked<'_>) -> io::Result<Turn> {
        let watched = asked.watched();
        if let Some(pid) = watched {
            proc::forget_peak(pid);
        }
        let measured = self.load(scenario, asked).await?;
        Ok(Turn {
            measured,
            peak_bytes: watched.map(proc::peak_bytes).transpose()?,
        })
    }

    async fn load(&self, scenario: Scenario, asked: &Asked<'_>) -> io::Result<Measured> {
        let delay_ms = scenario.upstream.delay_ms();
        let mut command = asked.command("load", scenario, self.keys.as_deref())?;
        command
            .args(["--warm-up-ms", &(WARM_UP_MS + 2 * delay_ms).to_string()])
            .args(["--stagger-ms", &delay_ms.to_string()])
            .args(["--measure-ms", &self.measure_ms.to_string()]);
        if let Some(pid) = asked.watched() {
            command.args(["--watch", &pid.to_string()]);
        }
        Ok(serde_json::from_slice(&output_of(&mut command).await?)?)
    }
}
