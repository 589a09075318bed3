//! What the rounds have shown, and how targets compare.
//!
//! A ratio is the median of each round's own ratio: the rounds of one scenario stand close
//! together, so what disturbs one target disturbs the one beside it.

#![expect(clippy::float_arithmetic, reason = "figures for people; no money here")]
#![expect(
    clippy::cast_precision_loss,
    reason = "figures for people need three digits"
)]

use serde::Serialize;

use super::scenario::Scenario;
use super::target::Target;
use crate::load::Measured;

/// One turn of one target.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Turn {
    pub(super) measured: Measured,
    /// Peak resident memory of the measured process during the turn.
    pub(super) peak_bytes: Option<u64>,
}

/// A number that a turn shows; `None` where it has none, as direct calls have no proxy.
pub(super) type Figure = fn(&Turn) -> Option<f64>;

pub(super) fn requests_per_second(turn: &Turn) -> Option<f64> {
    let measured = &turn.measured;
    (measured.elapsed_us > 0).then(|| measured.requests as f64 * 1e6 / measured.elapsed_us as f64)
}

pub(super) fn p50_us(turn: &Turn) -> Option<f64> {
    (turn.measured.requests > 0).then(|| turn.measured.p50_ns as f64 / 1e3)
}

pub(super) fn p99_us(turn: &Turn) -> Option<f64> {
    (turn.measured.requests > 0).then(|| turn.measured.p99_ns as f64 / 1e3)
}

/// Of the median slice.
pub(super) fn slice_p99_us(turn: &Turn) -> Option<f64> {
    (turn.measured.slice_p99_ns > 0).then(|| turn.measured.slice_p99_ns as f64 / 1e3)
}

pub(super) fn cpu_us(turn: &Turn) -> Option<f64> {
    let measured = &turn.measured;
    (measured.requests > 0 && measured.cpu_us > 0)
        .then(|| measured.cpu_us as f64 / measured.requests as f64)
}

pub(super) fn peak_mb(turn: &Turn) -> Option<f64> {
    turn.peak_bytes.map(megabytes)
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// All turns of one target in one scenario, a turn for each round.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) target: Target,
    pub(super) turns: Vec<Turn>,
}

impl Row {
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

/// All targets in one scenario.
#[derive(Debug, Serialize)]
pub(super) struct Sheet {
    pub(super) scenario: Scenario,
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
}

impl Sheet {
    pub(super) fn row(&self, target: Target) -> Option<&Row> {
        self.rows.iter().find(|row| row.target == target)
    }

    /// How many times `base` a target's figure is.
    pub(super) fn ratio(&self, target: Target, base: Target, figure: Figure) -> Option<f64> {
        self.compare(target, base, figure, |value, base| value / base)
    }

    /// By how much a target's figure exceeds that of `base`.
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

    fn row(target: Target, cpu_us: &[u64]) -> Row {
        let turn = |&cpu_us: &u64| Turn {
            measured: Measured {
                requests: 10,
                elapsed_us: 1_000_000,
                cpu_us,
                ..Measured::default()
            },
            peak_bytes: None,
        };
        Row {
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
        let sheet = Sheet {
            scenario,
            name: scenario.to_string(),
            rows: vec![
                row(Target::Bare, &[100, 1000, 200]),
                row(Target::Behind, &[150, 1500, 300]),
                row(Target::Direct, &[0, 0, 0]),
            ],
        };
        assert_eq!(sheet.ratio(Target::Behind, Target::Bare, cpu_us), Some(1.5));
        assert_eq!(
            sheet.excess(Target::Behind, Target::Bare, cpu_us),
            Some(10.0)
        );
        assert_eq!(sheet.ratio(Target::Behind, Target::Direct, cpu_us), None);
        assert_eq!(
            sheet.ratio(Target::BeforeAnswer, Target::Bare, cpu_us),
            None
        );
        assert_eq!(
            sheet.row(Target::Bare).unwrap().median(requests_per_second),
            Some(10.0)
        );
    }
}
