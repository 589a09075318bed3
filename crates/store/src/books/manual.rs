//! Decides on manual entries. Handles repeated references and refunds of top-ups.

use ledger::{ManualError, ManualKind, Micro, Wallet};

use super::changes::TEXT_CHARS_MAX;
use super::manual_entry::ManualEntry;
use super::pending::{Origin, Posting, Source};
use super::state::Books;
use crate::error::StoreError;
use crate::records::entries::EntryKind;
use crate::records::manual::NewEntry;

/// The stored entries that a new manual entry depends on, read inside the transaction that books it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManualFacts {
    pub(crate) same_reference: Option<FoundEntry>,
    pub(crate) refunded: Option<FoundEntry>,
    /// The sum of earlier refunds of `refunded`: zero or negative.
    pub(crate) refunds: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundEntry {
    pub(crate) seq: i64,
    pub(crate) kind: EntryKind,
    /// The change of the wallet's credits.
    pub(crate) total: i64,
    pub(crate) refund_of: Option<i64>,
}

#[derive(Debug)]
pub(crate) enum ManualDecision {
    Post(ManualEntry),
    /// An equal entry was posted before, with this number.
    Exists(i64),
}

impl NewEntry {
    /// Decides on this entry. Changes the wallet if the entry must be posted.
    pub(crate) fn decide(
        &self,
        wallet: &mut Wallet,
        facts: &ManualFacts,
    ) -> Result<ManualDecision, StoreError> {
        let total = self.kind.signed(self.amount).ok_or(StoreError::Overflow)?;
        let refund_of = self.refunded_entry(facts)?;
        if let Some(found) = &facts.same_reference {
            let same = (found.kind, found.total, found.refund_of)
                == (self.kind.into(), total, refund_of.map(|found| found.seq));
            return if same {
                Ok(ManualDecision::Exists(found.seq))
            } else {
                Err(StoreError::ReferenceConflict {
                    reference: self.reference.clone().unwrap_or_default(),
                    seq: found.seq,
                })
            };
        }
        if let Some(top_up) = refund_of {
            let left = Micro::new(top_up.total.saturating_add(facts.refunds));
            if self.amount > left {
                return Err(StoreError::NotCovered {
                    amount_max: left.max(Micro::ZERO),
                });
            }
        }
        let delta = wallet.move_credits(self.kind, self.amount)?;
        let note: Box<str> = self
            .note
            .chars()
            .filter(|c| !c.is_control())
            .take(TEXT_CHARS_MAX)
            .collect();
        Ok(ManualDecision::Post(ManualEntry {
            kind: self.kind.into(),
            delta,
            note: (!note.is_empty()).then_some(note),
            origin: Origin {
                reference: self.reference.as_deref().map(Into::into),
                refund_of: refund_of.map(|found| found.seq),
                actor: None,
            },
        }))
    }

    /// Checks everything that does not depend on stored rows.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let is_printable = |text: &str| {
            text.chars().count() <= TEXT_CHARS_MAX && !text.chars().any(char::is_control)
        };
        let is_blank = self
            .reference
            .as_ref()
            .is_some_and(|it| it.trim().is_empty());
        let mut texts = [&self.reference, &self.refund_of].into_iter().flatten();
        if is_blank || !texts.all(|text| is_printable(text)) {
            return Err(StoreError::Invalid(format!(
                "a reference has 1 to {TEXT_CHARS_MAX} printable characters"
            )));
        }
        if self.refund_of.is_some() && self.kind != ManualKind::Refund {
            return Err(StoreError::Invalid(
                "only a refund names a top-up".to_owned(),
            ));
        }
        Ok(())
    }

    fn refunded_entry(&self, facts: &ManualFacts) -> Result<Option<FoundEntry>, StoreError> {
        let Some(name) = &self.refund_of else {
            return Ok(None);
        };
        match facts.refunded {
            Some(found) if found.kind == EntryKind::TopUp => Ok(Some(found)),
            _ => Err(StoreError::NotFound {
                what: "top-up",
                id: name.clone(),
            }),
        }
    }
}

impl From<ManualError> for StoreError {
    fn from(error: ManualError) -> Self {
        match error {
            ManualError::NotPositive | ManualError::Zero => Self::Invalid(error.to_string()),
            ManualError::NotCovered { amount_max } => Self::NotCovered { amount_max },
            ManualError::Overflow(_) => Self::Overflow,
        }
    }
}

/// Lookups of manual entries that were decided in this batch and are not in the table yet.
impl Books {
    pub(crate) fn pending_reference(&self, wallet: i64, reference: &str) -> Option<FoundEntry> {
        self.pending_manual(wallet)
            .find(|(_, origin)| origin.reference.as_deref() == Some(reference))
            .map(|(posting, origin)| found(posting, origin))
    }

    pub(crate) fn pending_entry(&self, wallet: i64, seq: i64) -> Option<FoundEntry> {
        self.pending_manual(wallet)
            .find(|(posting, _)| posting.seq == seq)
            .map(|(posting, origin)| found(posting, origin))
    }

    pub(crate) fn pending_refunds(&self, wallet: i64, seq: i64) -> i64 {
        self.pending_manual(wallet)
            .filter(|(_, origin)| origin.refund_of == Some(seq))
            .fold(0, |sum: i64, (posting, _)| {
                sum.saturating_add(posting.delta.total())
            })
    }

    fn pending_manual(&self, wallet: i64) -> impl Iterator<Item = (&Posting, &Origin)> {
        let postings = if self.pending.has_manual {
            self.pending.postings.as_slice()
        } else {
            &[]
        };
        postings
            .iter()
            .filter_map(move |posting| match &posting.source {
                Source::Manual { origin, .. } if posting.wallet == wallet => {
                    Some((posting, &**origin))
                }
                _ => None,
            })
    }
}

fn found(posting: &Posting, origin: &Origin) -> FoundEntry {
    FoundEntry {
        seq: posting.seq,
        kind: posting.kind,
        total: posting.delta.total(),
        refund_of: origin.refund_of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: ManualKind, amount: i64) -> NewEntry {
        NewEntry {
            kind,
            amount: Micro::new(amount),
            reference: Some("pay_1".to_owned()),
            refund_of: None,
            note: String::new(),
        }
    }

    fn known(kind: EntryKind, total: i64, refund_of: Option<i64>) -> ManualFacts {
        ManualFacts {
            same_reference: Some(FoundEntry {
                seq: 4,
                kind,
                total,
                refund_of,
            }),
            ..ManualFacts::default()
        }
    }

    #[test]
    fn a_known_reference_books_nothing() {
        use ManualKind::{Adjustment, Debit, Gift, TopUp};
        for (new, facts, is_same) in [
            (entry(TopUp, 5), known(EntryKind::TopUp, 5, None), true),
            (entry(Debit, 5), known(EntryKind::Debit, -5, None), true),
            (
                entry(Adjustment, -5),
                known(EntryKind::Adjustment, -5, None),
                true,
            ),
            (entry(TopUp, 5), known(EntryKind::TopUp, 6, None), false),
            (entry(Gift, 5), known(EntryKind::TopUp, 5, None), false),
            (
                entry(Adjustment, 5),
                known(EntryKind::Adjustment, -5, None),
                false,
            ),
            // A repeated request returns the existing entry even if the wallet could not pay for it now.
            (entry(Debit, 500), known(EntryKind::Debit, -500, None), true),
        ] {
            let mut wallet = Wallet::default();
            let decided = new.decide(&mut wallet, &facts);
            match decided {
                Ok(ManualDecision::Exists(4)) => assert!(is_same, "{new:?}"),
                Err(StoreError::ReferenceConflict { seq: 4, .. }) => assert!(!is_same, "{new:?}"),
                other => panic!("{new:?}: {other:?}"),
            }
            assert_eq!(wallet, Wallet::default());
        }
    }

    #[test]
    fn a_refund_takes_back_no_more_than_is_left_of_its_top_up() {
        let top_up = FoundEntry {
            seq: 2,
            kind: EntryKind::TopUp,
            total: 10,
            refund_of: None,
        };
        for (refunds, amount, most) in [
            (0, 10, None),
            (0, 11, Some(10)),
            (-4, 6, None),
            (-4, 7, Some(6)),
            (-10, 1, Some(0)),
        ] {
            let facts = ManualFacts {
                same_reference: None,
                refunded: Some(top_up),
                refunds,
            };
            let mut wallet = Wallet::default();
            wallet.top_up(Micro::new(100)).unwrap();
            let before = wallet;
            let new = NewEntry {
                refund_of: Some("pay_0".to_owned()),
                ..entry(ManualKind::Refund, amount)
            };
            match new.decide(&mut wallet, &facts) {
                Ok(ManualDecision::Post(entry)) => {
                    assert_eq!((entry.delta.total(), most), (-amount, None));
                    assert_eq!(entry.origin.refund_of, Some(2));
                }
                Err(StoreError::NotCovered { amount_max: found }) => {
                    assert_eq!(Some(found.get()), most);
                    assert_eq!(wallet, before);
                }
                other => panic!("{other:?}"),
            }
        }
        // Only a top-up can be refunded.
        for refunded in [
            None,
            Some(FoundEntry {
                kind: EntryKind::Gift,
                ..top_up
            }),
        ] {
            let facts = ManualFacts {
                refunded,
                ..ManualFacts::default()
            };
            let new = NewEntry {
                refund_of: Some("pay_0".to_owned()),
                ..entry(ManualKind::Refund, 1)
            };
            let refused = new.decide(&mut Wallet::default(), &facts);
            assert!(matches!(
                refused,
                Err(StoreError::NotFound { what: "top-up", .. })
            ));
        }
    }

    #[test]
    fn references_are_texts_and_only_refunds_name_a_top_up() {
        for reference in ["", "  ", "a\nb", &"x".repeat(201)] {
            let new = NewEntry {
                reference: Some(reference.to_owned()),
                ..entry(ManualKind::TopUp, 1)
            };
            assert!(
                matches!(new.check(), Err(StoreError::Invalid(_))),
                "{reference}"
            );
        }
        let new = NewEntry {
            refund_of: Some("pay_0".to_owned()),
            ..entry(ManualKind::Debit, 1)
        };
        assert!(new.check().is_err());
        assert!(entry(ManualKind::TopUp, 1).check().is_ok());
    }
}
