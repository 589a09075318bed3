//! Counters and gauges of media.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use store::Swept;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

/// The counts of copies and of bytes served, and the contents of the storage.
#[derive(Debug)]
pub(crate) struct MediaCounts {
    copies: Family<ByOutcome, Counter>,
    pub(crate) copied_bytes: Counter,
    pub(crate) served_bytes: Counter,
    swept: Counter,
    sweeps_failed: Counter,
    kept: Gauge<u64, AtomicU64>,
    kept_bytes: Gauge<u64, AtomicU64>,
    storage_up: Gauge<u64, AtomicU64>,
}

impl MediaCounts {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let copies = Family::default();
        registry.register(
            "media_copies",
            "Copies of media, by how they went",
            copies.clone(),
        );
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let copied_bytes = counter("media_copied_bytes", "Bytes of media that were kept");
        let served_bytes = counter("media_served_bytes", "Bytes of media that were served");
        let swept = counter("media_swept", "Media deleted after their time");
        let sweeps_failed = counter("media_sweeps_failed", "Sweeps that the storage broke off");
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let kept = gauge("media_kept", "Media in the storage at the last sweep");
        let kept_bytes = gauge(
            "media_kept_bytes",
            "Bytes of the media in the storage at the last sweep",
        );
        let about = "Whether the media storage answered when it was asked last";
        let storage_up = gauge("media_storage_up", about);
        Self {
            copies,
            copied_bytes,
            served_bytes,
            swept,
            sweeps_failed,
            kept,
            kept_bytes,
            storage_up,
        }
    }

    pub(crate) fn copied(&self, outcome: &'static str) {
        self.copies.get_or_create(&ByOutcome { outcome }).inc();
    }

    pub(crate) fn swept(&self, found: &Swept) {
        self.swept.inc_by(found.deleted);
        self.kept.set(found.kept);
        self.kept_bytes.set(found.kept_bytes);
    }

    pub(crate) fn storage_answers(&self, answers: bool) {
        self.storage_up.set(u64::from(answers));
    }

    pub(crate) fn sweep_failed(&self) {
        self.sweeps_failed.inc();
    }
}
