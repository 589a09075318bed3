//! The shared state of a measurement: its phase and its results.

use std::convert::Infallible;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::histogram::Histogram;
use crate::process_stats;

/// The number of failures after which the measurement stops.
const FAILURES_MAX: u64 = 100;
const MEASURE_TIMES_MAX: u32 = 4;
/// How long we wait until every client has been answered once.
const ANSWERED_MAX: Duration = Duration::from_secs(5);
/// The minimum number of answers per connection, on average. Connections that are served together finish together, so
/// answers come in waves. A short measurement could fall between two waves, so it goes on until there are enough
/// answers.
pub(super) const ANSWERS_EACH_MIN: u64 = 4;
/// How long we wait for the last answers after the measurement.
pub(super) const LAST_ANSWERS: Duration = Duration::from_secs(20);
const WAIT_STEP: Duration = Duration::from_millis(20);
/// The length of a slice. A p99 is computed for each slice of a measurement.
const SLICE: Duration = Duration::from_millis(100);

const WARM_UP: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// The times of a measurement, and the process to measure.
#[derive(clap::Args)]
pub(super) struct Window {
    /// Time before the measurement starts.
    #[arg(long, default_value_t = 200)]
    warm_up_ms: u64,
    /// Length of the measurement; longer if there are few answers.
    #[arg(long, default_value_t = 1000)]
    measure_ms: u64,
    /// The process whose CPU time is measured.
    #[arg(long)]
    watch: Option<u32>,
}

impl Window {
    pub(super) fn cpu_time(&self) -> io::Result<Duration> {
        self.watch
            .map_or(Ok(Duration::ZERO), process_stats::cpu_time)
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Answered calls, or frames of a session.
    pub(crate) requests: u64,
    pub(crate) elapsed_us: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    /// The median of the p99s of all 100 ms slices. A stall of the machine raises `p99_ns`, but affects only one of
    /// these slices.
    pub(crate) slice_p99_ns: u64,
    /// The CPU time of the measured process; 0 if no process is measured.
    pub(crate) cpu_us: u64,
    pub(crate) failures: u64,
    pub(crate) first_failure: Option<String>,
}

pub(super) struct Tally {
    phase: AtomicU8,
    pub(super) clients_answered: AtomicU64,
    latencies: Histogram,
    /// The latencies since the end of the last slice.
    slice: Histogram,
    /// The p99 of each slice.
    slices: Histogram,
    failures: AtomicU64,
    first_failure: OnceLock<String>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            phase: AtomicU8::new(WARM_UP),
            clients_answered: AtomicU64::new(0),
            latencies: Histogram::new(),
            slice: Histogram::new(),
            slices: Histogram::new(),
            failures: AtomicU64::new(0),
            first_failure: OnceLock::new(),
        }
    }

    pub(super) fn is_measured(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == MEASURED
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == OVER
    }

    /// Waits until every client has been answered once, which excludes the cost of opening many sessions at once. Then
    /// warms up and measures for the time of the window. If there are fewer than `answers_min` answers by then,
    /// measures up to `MEASURE_TIMES_MAX` times as long. Returns the elapsed time and the CPU time of the measurement.
    pub(super) async fn measure(
        &self,
        window: &Window,
        clients: u64,
        answers_min: u64,
    ) -> io::Result<(Duration, Duration)> {
        wait(Duration::ZERO, ANSWERED_MAX, || {
            self.clients_answered.load(Ordering::Relaxed) >= clients
        })
        .await;
        sleep(Duration::from_millis(window.warm_up_ms)).await;
        let cpu_before = window.cpu_time()?;
        let started = Instant::now();
        self.phase.store(MEASURED, Ordering::Relaxed);
        let measure = Duration::from_millis(window.measure_ms);
        let measured = wait(measure, measure * MEASURE_TIMES_MAX, || {
            self.latencies.count() >= answers_min
        });
        tokio::select! {
            () = measured => {}
            never = self.slice_by_slice() => match never {},
        }
        self.phase.store(OVER, Ordering::Relaxed);
        let elapsed = started.elapsed();
        let cpu = window.cpu_time()?.saturating_sub(cpu_before);
        Ok((elapsed, cpu))
    }

    async fn slice_by_slice(&self) -> Infallible {
        loop {
            sleep(SLICE).await;
            if let Some(p99) = self.slice.quantile(990) {
                self.slices.record(p99);
                self.slice.clear();
            }
        }
    }

    pub(super) fn record(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latencies.record(nanos);
        self.slice.record(nanos);
    }

    /// Counts a failure. Too many failures end the measurement.
    pub(super) fn record_failure(&self, failure: &io::Error) {
        let _ = self.first_failure.set(failure.to_string());
        if self.failures.fetch_add(1, Ordering::Relaxed) >= FAILURES_MAX {
            self.phase.store(OVER, Ordering::Relaxed);
        }
    }

    pub(super) fn measured(&self, (elapsed, cpu): (Duration, Duration)) -> Measured {
        Measured {
            requests: self.latencies.count(),
            elapsed_us: micros(elapsed),
            p50_ns: self.latencies.quantile(500).unwrap_or(0),
            p99_ns: self.latencies.quantile(990).unwrap_or(0),
            slice_p99_ns: self.slices.quantile(500).unwrap_or(0),
            cpu_us: micros(cpu),
            failures: self.failures.load(Ordering::Relaxed),
            first_failure: self.first_failure.get().cloned(),
        }
    }
}

/// Waits for `least`, and then until `enough` returns true or `most` has passed since the start.
async fn wait(least: Duration, most: Duration, enough: impl Fn() -> bool) {
    let started = Instant::now();
    sleep(least).await;
    while !enough() && started.elapsed() < most {
        sleep(WAIT_STEP).await;
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
