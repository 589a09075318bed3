//! A manual entry that does not have a number yet.

use ledger::{Delta, Micro, UnixMs};

use super::pending::{Origin, Posting, Source};
use crate::records::entries::EntryKind;

/// A manual entry, made by a person or an administrative change.
#[derive(Debug)]
pub(crate) struct ManualEntry {
    pub(crate) kind: EntryKind,
    pub(crate) delta: Delta,
    pub(crate) note: Option<Box<str>>,
    pub(crate) origin: Origin,
}

impl ManualEntry {
    /// An entry that records a changed setting.
    pub(super) fn set(kind: EntryKind, delta: Delta, note: String) -> Self {
        Self {
            kind,
            delta,
            note: Some(note.into()),
            origin: Origin::default(),
        }
    }

    /// The posting for the wallet with this row number, made by `actor`.
    pub(super) fn posting(self, wallet: i64, at: UnixMs, actor: &str) -> Posting {
        let origin = Origin {
            actor: Some(actor.into()),
            ..self.origin
        };
        Posting {
            wallet,
            seq: 0,
            kind: self.kind,
            charge: Micro::ZERO,
            delta: self.delta,
            note: self.note,
            source: Source::Manual {
                at,
                origin: Box::new(origin),
            },
        }
    }
}
