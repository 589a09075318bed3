//! Results of the rounds, and figures that compare targets.
//!
//! A ratio is the median of the ratios of the individual rounds. The measurements of one round are
//! close together in time, so a disturbance affects all targets equally.

#![expect(clippy::float_arithmetic, reason = "figures for people; no money here")]
#![expect(
    clippy::cast_precision_loss,
    reason = "figures for people need three digits"
)]

use serde::Serialize;

use super::scenario::Scenario;
use super::target::Target;
use crate::load::Measured;

/// The result of one target in one round.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RoundResult {
    pub(super) measured: Measured,
    /// Peak resident memory of the measured process during the round.
    pub(super) peak_bytes: Option<u64>,
}

/// Reads a number from a result; `None` if the result lacks the number. Direct calls, for example, have no CPU time,
/// because no proxy is involved.
pub(super) type Figure = fn(&RoundResult) -> Option<f64>;

pub(super) fn requests_per_second(turn: &RoundResult) -> Option<f64> {
    let measured = &turn.measured;
    (measured.elapsed_us > 0).then(|| measured.requests as f64 * 1e6 / measured.elapsed_us as f64)
}

pub(super) fn p50_us(turn: &RoundResult) -> Option<f64> {
    (turn.measured.requests > 0).then(|| turn.measured.p50_ns as f64 / 1e3)
}

pub(super) fn p99_us(turn: &RoundResult) -> Option<f64> {
    (turn.measured.requests > 0).then(|| turn.measured.p99_ns as f64 / 1e3)
}

pub(super) fn slice_p99_us(turn: &RoundResult) -> Option<f64> {
    (turn.measured.slice_p99_ns > 0).then(|| turn.measured.slice_p99_ns as f64 / 1e3)
}

pub(super) fn cpu_us(turn: &RoundResult) -> Option<f64> {
    let measured = &turn.measured;
    (measured.requests > 0 && measured.cpu_us > 0)
        .then(|| measured.cpu_us as f64 / measured.requests as f64)
}

pub(super) fn peak_mb(turn: &RoundResult) -> Option<f64> {
    turn.peak_bytes.map(megabytes)
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The results of one target in one scenario, one for each round.
#[derive(Debug, Serialize)]
pub(super) struct TargetResults {
    pub(super) target: Target,
    pub(super) turns: Vec<RoundResult>,
}

impl TargetResults {
    pub(super) fn median(&self, figure: Figure) -> Option<f64> {
        median(self.turns.iter().filter_map(figure).collect())
    }

    pub(super) fn failures(&self) -> u64 {
        self.turns.iter().map(|turn| turn.measured.failures).sum()
    }

    pub(super) fn first_failure(&self) -> Option<&str> {
        self.turns
            .iter()
            .find_map(|turn| turn.measured.first_failure.as_deref())
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ScenarioResults {
    pub(super) scenario: Scenario,
    pub(super) name: String,
    pub(super) rows: Vec<TargetResults>,
}

impl ScenarioResults {
    pub(super) fn row(&self, target: Target) -> Option<&TargetResults> {
        self.rows.iter().find(|row| row.target == target)
    }

    /// The ratio of a target's figure to that of `base`.
    pub(super) fn ratio(&self, target: Target, base: Target, figure: Figure) -> Option<f64> {
        self.compare(target, base, figure, |value, base| value / base)
    }

    /// The difference between a target's figure and that of `base`.
    pub(super) fn excess(&self, target: Target, base: Target, figure: Figure) -> Option<f64> {
        self.compare(target, base, figure, |value, base| value - base)
    }

    fn compare(
        &self,
        target: Target,
        base: Target,
        figure: Figure,
        by: fn(f64, f64) -> f64,
    ) -> Option<f64> {
        let pairs = self.row(target)?.turns.iter().zip(&self.row(base)?.turns);
        median(
            pairs
                .filter_map(|(turn, base)| Some(by(figure(turn)?, figure(base)?)))
                .collect(),
        )
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Shape;
    use crate::run::scenario::Upstream;

    fn row(target: Target, cpu_us: &[u64]) -> TargetResults {
        let turn = |&cpu_us: &u64| RoundResult {
            measured: Measured {
                requests: 10,
                elapsed_us: 1_000_000,
                cpu_us,
                ..Measured::default()
            },
            peak_bytes: None,
        };
        TargetResults {
            target,
            turns: cpu_us.iter().map(turn).collect(),
        }
    }

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let scenario = Scenario {
            shape: Shape::Plain,
            upstream: Upstream::Instant,
            connections: 1,
        };
        let result = ScenarioResults {
            scenario,
            name: scenario.to_string(),
            rows: vec![
                row(Target::Bare, &[100, 1000, 200]),
                row(Target::Behind, &[150, 1500, 300]),
                row(Target::Direct, &[0, 0, 0]),
            ],
        };
        assert_eq!(
            result.ratio(Target::Behind, Target::Bare, cpu_us),
            Some(1.5)
        );
        assert_eq!(
            result.excess(Target::Behind, Target::Bare, cpu_us),
            Some(10.0)
        );
        assert_eq!(result.ratio(Target::Behind, Target::Direct, cpu_us), None);
        assert_eq!(
            result.ratio(Target::BeforeAnswer, Target::Bare, cpu_us),
            None
        );
        assert_eq!(
            result
                .row(Target::Bare)
                .unwrap()
                .median(requests_per_second),
            Some(10.0)
        );
    }
}
