//! Adds up the entries of a statement.

use std::collections::BTreeMap;

use ledger::Micro;

use super::entries::EntryKind;
use super::ids::KeyId;
use super::statement::{KeyTotal, KindTotal, StatementTotals};

/// The group to which an entry is added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TotalKey {
    pub(crate) kind: EntryKind,
    pub(crate) key: Option<KeyId>,
    pub(crate) name: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TotalSum {
    entries: i64,
    total: i64,
    charged: i64,
}

impl TotalSum {
    pub(crate) fn add(&mut self, entries: i64, total: i64, charged: i64) {
        self.entries = self.entries.saturating_add(entries);
        self.total = self.total.saturating_add(total);
        self.charged = self.charged.saturating_add(charged);
    }
}

impl StatementTotals {
    pub(crate) fn of(sums: BTreeMap<TotalKey, TotalSum>) -> Self {
        let mut kinds: BTreeMap<EntryKind, TotalSum> = BTreeMap::new();
        let mut keys: BTreeMap<KeyId, KeyTotal> = BTreeMap::new();
        for (TotalKey { kind, key, name }, sum) in sums {
            let of_kind = kinds.entry(kind).or_default();
            of_kind.add(sum.entries, sum.total, sum.charged);
            let Some(key) = key else {
                continue;
            };
            let of_key = keys.entry(key).or_insert(KeyTotal {
                key,
                name,
                calls: 0,
                charged: Micro::ZERO,
            });
            // Only the last entry of a session counts as a call, not its steps.
            if kind != EntryKind::Part {
                of_key.calls = of_key.calls.saturating_add(count(sum.entries));
            }
            let charged = of_key.charged.get().saturating_add(sum.charged);
            of_key.charged = Micro::new(charged);
        }
        let mut keys: Vec<KeyTotal> = keys.into_values().collect();
        keys.sort_by(|a, b| (b.charged, &a.name, a.key).cmp(&(a.charged, &b.name, b.key)));
        let kinds = kinds.into_iter().map(|(kind, sum)| KindTotal {
            kind,
            entries: count(sum.entries),
            total: Micro::new(sum.total),
        });
        Self {
            kinds: kinds.collect(),
            keys,
        }
    }
}

fn count(entries: i64) -> u64 {
    u64::try_from(entries).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_told_by_kind_and_by_key() {
        let key = |name: &str| KeyId::parse(&format!("key_{name:0>16}")).unwrap();
        let mut sums = BTreeMap::new();
        for (kind, of, entries, total, charged) in [
            (EntryKind::TopUp, None, 2, 500, 0),
            (EntryKind::Settled, Some("a"), 3, -30, 30),
            (EntryKind::Settled, Some("b"), 1, -40, 40),
            (EntryKind::Part, Some("a"), 7, -5, 5),
            (EntryKind::Released, Some("a"), 1, 0, 0),
        ] {
            let place = TotalKey {
                kind,
                key: of.map(key),
                name: of.map(Into::into),
            };
            let sum: &mut TotalSum = sums.entry(place).or_default();
            sum.add(entries, total, charged);
        }
        let totals = StatementTotals::of(sums);
        let kinds = totals
            .kinds
            .iter()
            .map(|it| (it.kind, it.entries, it.total.get()));
        let kinds: Vec<_> = kinds.collect();
        assert_eq!(
            kinds,
            [
                (EntryKind::Settled, 4, -70),
                (EntryKind::Released, 1, 0),
                (EntryKind::Part, 7, -5),
                (EntryKind::TopUp, 2, 500),
            ]
        );
        let keys = totals
            .keys
            .iter()
            .map(|it| (it.name.as_deref(), it.calls, it.charged.get()));
        let keys: Vec<_> = keys.collect();
        assert_eq!(keys, [(Some("b"), 1, 40), (Some("a"), 4, 35)]);
    }
}
