//! Prints a scenario's figures.

#![expect(clippy::float_arithmetic, reason = "figures for people; no money here")]

use std::io::{self, Write};

use super::figures::{
    Figure, ScenarioResults, TargetResults, cpu_us, p50_us, p99_us, peak_mb, requests_per_second,
    slice_p99_us,
};
use super::target::Target;

pub(super) fn write(output: &mut impl Write, result: &ScenarioResults) -> io::Result<()> {
    let title = result.name.as_str();
    line(
        output,
        [
            title,
            "",
            "",
            "",
            "slice",
            "",
            "",
            "x bare",
            "x bare",
            "over direct",
            "over direct",
        ],
    )?;
    line(
        output,
        [
            "", "req/s", "p50", "p99", "p99", "CPU/req", "peak MB", "req/s", "CPU", "p50", "p99",
        ],
    )?;
    for row in &result.rows {
        let cells = cells(result, row);
        line(output, cells.each_ref().map(String::as_str))?;
        if let Some(failure) = row.first_failure() {
            writeln!(
                output,
                "  ! {} failures, the first: {failure}",
                row.failures()
            )?;
        }
    }
    writeln!(output)
}

fn cells(result: &ScenarioResults, row: &TargetResults) -> [String; 11] {
    let times_bare = |figure: Figure| shown(result.ratio(row.target, Target::Bare, figure), times);
    let over_direct = |figure: Figure| match row.target {
        Target::Direct => String::new(),
        _ => shown(result.excess(row.target, Target::Direct, figure), time),
    };
    [
        row.target.to_string(),
        shown(row.median(requests_per_second), |value| {
            format!("{value:.0}")
        }),
        shown(row.median(p50_us), time),
        shown(row.median(p99_us), time),
        shown(row.median(slice_p99_us), time),
        shown(row.median(cpu_us), time),
        shown(row.median(peak_mb), |value| format!("{value:.1}")),
        times_bare(requests_per_second),
        times_bare(cpu_us),
        over_direct(p50_us),
        over_direct(p99_us),
    ]
}

fn line(output: &mut impl Write, cells: [&str; 11]) -> io::Result<()> {
    let [
        target,
        rate,
        p50,
        p99,
        slice_p99,
        cpu,
        peak,
        rate_ratio,
        cpu_ratio,
        p50_over,
        p99_over,
    ] = cells;
    writeln!(
        output,
        "{target:<24}{rate:>9}{p50:>10}{p99:>10}{slice_p99:>10}{cpu:>10}{peak:>10}  {rate_ratio:>9}{cpu_ratio:>9}  {p50_over:>13}{p99_over:>13}"
    )
}

fn shown(value: Option<f64>, form: impl Fn(f64) -> String) -> String {
    value.map_or_else(String::new, form)
}

pub(super) fn times(value: f64) -> String {
    format!("{value:.2}x")
}

/// Formats a time in microseconds with a suitable unit.
pub(super) fn time(micros: f64) -> String {
    match micros.abs() {
        size if size < 100.0 => format!("{micros:.1} us"),
        size if size < 1000.0 => format!("{micros:.0} us"),
        size if size < 100_000.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_reads_best() {
        for (micros, text) in [
            (0.04, "0.0 us"),
            (61.24, "61.2 us"),
            (-412.0, "-412 us"),
            (51_234.0, "51.23 ms"),
            (2e6, "2000 ms"),
        ] {
            assert_eq!(time(micros), text);
        }
    }
}
