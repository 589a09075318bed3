//! The beginning that the events of a stream share.

use super::identity::{NameSet, Written};
use super::inspection::Inspection;

/// The beginning that the events of a stream share, as it comes and as it goes.
#[derive(Debug, Default)]
pub(super) struct KnownStart {
    came: Vec<u8>,
    pub(super) changed: Vec<u8>,
    /// The parts of an identity in it.
    pub(super) found: NameSet,
}

/// Longer beginnings are not worth remembering.
const KNOWN_START_BYTES_MAX: usize = 1024;

impl KnownStart {
    /// The length of the known beginning, if the event has it.
    pub(super) fn length_in(&self, event: &[u8]) -> usize {
        if event.starts_with(&self.came) {
            self.came.len()
        } else {
            0
        }
    }

    /// Remembers the beginning of an event up to `end` of its data, which stands at `data_at`.
    pub(super) fn learn(
        &mut self,
        event: &[u8],
        data_at: usize,
        end: usize,
        inspection: &Inspection<'_>,
        written: &Written,
    ) {
        self.came.clear();
        self.changed.clear();
        let end = data_at + end;
        if end > KNOWN_START_BYTES_MAX {
            return;
        }
        self.came
            .extend_from_slice(event.get(..end).unwrap_or_default());
        let mut done = 0;
        let shared = inspection
            .spans()
            .filter(|(_, span)| data_at + span.end <= end);
        self.found = inspection.found_in_start;
        for (name, span) in shared {
            let before = event.get(done..data_at + span.start);
            self.changed.extend_from_slice(before.unwrap_or_default());
            self.changed.extend_from_slice(&written.get(name));
            done = data_at + span.end;
        }
    }
}
