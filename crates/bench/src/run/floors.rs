//! The performance floors and goals, and whether the results meet them.

#![expect(clippy::float_arithmetic, reason = "figures for people; no money here")]

use std::io::{self, Write};

use serde::Serialize;

use super::figures::{
    ScenarioResults, cpu_us, megabytes, p50_us, p99_us, peak_mb, requests_per_second, slice_p99_us,
};
use super::memory::Memory;
use super::target::Target;

#[derive(Debug, Serialize)]
pub(super) struct Bound {
    what: String,
    unit: &'static str,
    better: Better,
    floor: f64,
    goal: f64,
    measured: f64,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Better {
    Less,
    More,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// The goal is met, and therefore the floor too.
    Goal,
    /// Only the floor is met.
    Floor,
    Neither,
}

/// Floor and goal of the CPU cost of calls, by scenario.
const CPU_BOUNDS: [(&str, &str, (f64, f64)); 5] = [
    (
        "non-stream, 64 connections: CPU",
        "plain-instant-64",
        (1.8, 1.3),
    ),
    (
        "100-chunk stream, 64 connections: CPU",
        "stream-instant-64",
        (1.0, 0.6),
    ),
    (
        "converted call, 64 connections: CPU",
        "converted-instant-64",
        (2.2, 1.6),
    ),
    (
        "converted 100-chunk stream, 64 connections: CPU",
        "converted-stream-instant-64",
        (2.5, 1.5),
    ),
    (
        "1 MB body, 64 connections: CPU",
        "body-instant-64",
        (2.5, 1.5),
    ),
];

/// Compares the results with the floors. Floors that were not measured are left out.
pub(super) fn judge(
    results: &[ScenarioResults],
    memory: Option<&Memory>,
    session_bytes: Option<u64>,
) -> Vec<Bound> {
    let result = |name: &str| results.iter().find(|result| result.name == name);
    let mut floors = sessions(results, session_bytes);
    let mut add = |what: String, unit, better, (floor, goal), measured: Option<f64>| {
        floors.extend(
            measured.map(|measured| Bound::new(what, unit, better, (floor, goal), measured)),
        );
    };
    for target in Target::GATEWAYS {
        let times_bare = |name, figure| result(name)?.ratio(target, Target::Bare, figure);
        let what = |text: &str| format!("{text} ({})", target.commit());
        for (text, name, bounds) in CPU_BOUNDS {
            let measured = times_bare(name, cpu_us);
            add(what(text), "x bare", Better::Less, bounds, measured);
        }
        add(
            what("non-stream, 64 connections: throughput"),
            "x bare",
            Better::More,
            (0.55, 0.8),
            times_bare("plain-instant-64", requests_per_second),
        );
    }
    let plain = result("plain-instant-64");
    let on_postgres =
        plain.and_then(|result| result.ratio(Target::Postgres, Target::BeforeAnswer, cpu_us));
    add(
        "non-stream, 64 connections: CPU on PostgreSQL".into(),
        "x file",
        Better::Less,
        (1.5, 1.5),
        on_postgres,
    );
    let one = |figure| result("plain-instant-1")?.excess(Target::Behind, Target::Direct, figure);
    add(
        "1 connection: p50 over direct (behind)".into(),
        "us",
        Better::Less,
        (90.0, 60.0),
        one(p50_us),
    );
    add(
        "1 connection: p99 over direct (behind)".into(),
        "us",
        Better::Less,
        (400.0, 200.0),
        one(p99_us),
    );
    let many = result("plain-50ms-512")
        .and_then(|result| result.excess(Target::BeforeAnswer, Target::Direct, p99_us))
        .map(|micros| micros / 1e3);
    let what = "50 ms upstream, 512 connections: p99 over direct (before-answer)";
    add(what.into(), "ms", Better::Less, (6.0, 3.0), many);

    let idle =
        memory.map(|memory| megabytes(memory.idle_bytes.max(memory.keys_used_bytes.unwrap_or(0))));
    add(
        "resident, idle with all keys".into(),
        "MB",
        Better::Less,
        (48.0, 32.0),
        idle,
    );
    add(
        "resident, peak with 512 connections".into(),
        "MB",
        Better::Less,
        (128.0, 80.0),
        peak_at_512(results),
    );
    let stream = memory.map(|memory| megabytes(memory.stream_bytes) * 1e3);
    add(
        "resident, each open stream".into(),
        "KB",
        Better::Less,
        (40.0, 24.0),
        stream,
    );
    floors
}

fn sessions(results: &[ScenarioResults], session_bytes: Option<u64>) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for result in results
        .iter()
        .filter(|it| it.scenario.shape.session_kind().is_some())
    {
        for target in Target::GATEWAYS {
            let over_bare = result.excess(target, Target::Bare, slice_p99_us);
            let what = format!(
                "{}: p99 of a slice over bare ({})",
                result.name,
                target.commit()
            );
            bounds.extend(
                over_bare
                    .map(|micros| Bound::new(what, "ms", Better::Less, (1.0, 0.5), micros / 1e3)),
            );
        }
    }
    bounds.extend(session_bytes.map(|bytes| {
        let what = "resident, each session".to_owned();
        Bound::new(
            what,
            "KB",
            Better::Less,
            (64.0, 32.0),
            megabytes(bytes) * 1e3,
        )
    }));
    bounds
}

/// The highest median peak memory of a gateway with 512 connections, without large bodies.
fn peak_at_512(results: &[ScenarioResults]) -> Option<f64> {
    [
        "plain-instant-512",
        "plain-50ms-512",
        "stream-instant-512",
        "stream-50ms-512",
    ]
    .iter()
    .filter_map(|name| results.iter().find(|result| result.name == *name))
    .flat_map(|result| {
        Target::GATEWAYS
            .iter()
            .filter_map(|&target| result.row(target)?.median(peak_mb))
    })
    .max_by(f64::total_cmp)
}

impl Bound {
    fn new(
        what: String,
        unit: &'static str,
        better: Better,
        (floor, goal): (f64, f64),
        measured: f64,
    ) -> Self {
        let meets = |bound: f64| match better {
            Better::Less => measured <= bound,
            Better::More => measured >= bound,
        };
        let verdict = match (meets(goal), meets(floor)) {
            (true, _) => Verdict::Goal,
            (false, true) => Verdict::Floor,
            (false, false) => Verdict::Neither,
        };
        Self {
            what,
            unit,
            better,
            floor,
            goal,
            measured,
            verdict,
        }
    }
}

pub(super) fn write(output: &mut impl Write, floors: &[Bound]) -> io::Result<()> {
    writeln!(
        output,
        "{:<68}{:>10}{:>10}{:>10}  unit    verdict",
        "bounds", "measured", "floor", "goal"
    )?;
    for Bound {
        what,
        unit,
        floor,
        goal,
        measured,
        verdict,
        better,
    } in floors
    {
        let sign = match better {
            Better::Less => "<=",
            Better::More => ">=",
        };
        let verdict = match verdict {
            Verdict::Goal => "met (goal too)",
            Verdict::Floor => "met",
            Verdict::Neither => "NOT MET",
        };
        writeln!(
            output,
            "{what:<68}{measured:>10.2}{sign:>5}{floor:>5}{sign:>5}{goal:>5}  {unit:<6}  {verdict}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_at_and_beside_the_bounds() {
        for (better, bounds, measured, verdict) in [
            (Better::Less, (1.8, 1.3), 1.3, Verdict::Goal),
            (Better::Less, (1.8, 1.3), 1.8, Verdict::Floor),
            (Better::Less, (1.8, 1.3), 1.81, Verdict::Neither),
            (Better::More, (0.55, 0.8), 0.9, Verdict::Goal),
            (Better::More, (0.55, 0.8), 0.6, Verdict::Floor),
            (Better::More, (0.55, 0.8), 0.5, Verdict::Neither),
        ] {
            assert_eq!(
                Bound::new(String::new(), "", better, bounds, measured).verdict,
                verdict,
                "{measured}"
            );
        }
    }

    #[test]
    fn bounds_without_a_measurement_are_left_out() {
        assert!(judge(&[], None, None).is_empty());
        let memory = Memory {
            idle_bytes: 40_000_000,
            stream_bytes: 50_000,
            keys_used_bytes: None,
        };
        let verdicts: Vec<Verdict> = judge(&[], Some(&memory), Some(30_000))
            .iter()
            .map(|floor| floor.verdict)
            .collect();
        assert_eq!(verdicts, [Verdict::Goal, Verdict::Floor, Verdict::Neither]);
    }
}
