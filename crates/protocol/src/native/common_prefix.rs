//! Remembers the first bytes that all events of a stream have in common.

use super::inspection::Inspection;
use crate::answer_layout::{IdentityJson, IdentitySet};

/// The first bytes that all events of a stream have in common, as received and as sent.
#[derive(Debug, Default)]
pub(super) struct CommonPrefix {
    received: Vec<u8>,
    pub(super) sent: Vec<u8>,
    /// The identity members in these bytes.
    pub(super) found: IdentitySet,
}

/// Longer prefixes are not remembered.
const PREFIX_BYTES_MAX: usize = 1024;

impl CommonPrefix {
    /// The length of the known prefix, or 0 if the event does not begin with it.
    pub(super) fn length_in(&self, event: &[u8]) -> usize {
        if event.starts_with(&self.received) {
            self.received.len()
        } else {
            0
        }
    }

    /// Remembers the start of an event up to `end` of its data. The data is at `data_at`.
    pub(super) fn learn(
        &mut self,
        event: &[u8],
        data_at: usize,
        end: usize,
        inspection: &Inspection<'_>,
        identity_json: &IdentityJson,
    ) {
        self.received.clear();
        self.sent.clear();
        let end = data_at + end;
        if end > PREFIX_BYTES_MAX {
            return;
        }
        self.received
            .extend_from_slice(event.get(..end).unwrap_or_default());
        let mut done = 0;
        let shared = inspection
            .spans()
            .filter(|(_, span)| data_at + span.end <= end);
        self.found = inspection.found_in_start;
        for (name, span) in shared {
            let before = event.get(done..data_at + span.start);
            self.sent.extend_from_slice(before.unwrap_or_default());
            self.sent.extend_from_slice(&identity_json.get(name));
            done = data_at + span.end;
        }
    }
}
