//! Exemplars: the trace of the last request in each bucket of a histogram.
//!
//! The metrics library writes exemplars only for its own histograms, which all threads share. Ours are therefore
//! appended to the finished text, which is otherwise the same, byte for byte.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use ledger::UnixMs;

use crate::telemetry::TraceId;

/// The approximate length of an exemplar in the text.
const EXEMPLAR_BYTES: usize = 80;

/// The trace of a request, and the time of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedMoment {
    pub trace: TraceId,
    pub at: UnixMs,
}

/// A traced request and its measured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exemplar {
    pub(super) moment: TracedMoment,
    pub(super) took: Duration,
}

/// Appends each exemplar to the line of its series, such as `name_bucket{le="0.1"}`.
pub(super) fn append(text: &str, exemplars: &HashMap<String, Exemplar>) -> String {
    let mut with_exemplars = String::with_capacity(text.len() + exemplars.len() * EXEMPLAR_BYTES);
    for line in text.lines() {
        with_exemplars.push_str(line);
        let series = line.rsplit_once(' ').map(|(series, _count)| series);
        if let Some(exemplar) = series.and_then(|series| exemplars.get(series)) {
            let Exemplar { moment, took } = exemplar;
            let (seconds, at_ms) = (took.as_secs_f64(), moment.at.get());
            let (at, ms) = (at_ms.div_euclid(1_000), at_ms.rem_euclid(1_000));
            // Writing to a string cannot fail.
            let _ = write!(
                with_exemplars,
                " # {{trace_id=\"{}\"}} {seconds} {at}.{ms:03}",
                moment.trace
            );
        }
        with_exemplars.push('\n');
    }
    with_exemplars
}
