//! Entries that people make, before they have a number.

use ledger::{Delta, Micro, UnixMs};

use super::pending::{Origin, Posting, Source};
use crate::records::entries::EntryKind;

/// An entry of a wallet that somebody makes.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) kind: EntryKind,
    pub(crate) delta: Delta,
    pub(crate) note: Option<Box<str>>,
    pub(crate) origin: Origin,
}

impl Said {
    /// An entry about a value that was set.
    pub(super) fn set(kind: EntryKind, delta: Delta, note: String) -> Self {
        Self {
            kind,
            delta,
            note: Some(note.into()),
            origin: Origin::default(),
        }
    }

    /// The entry of a wallet, by number, with who makes it.
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
