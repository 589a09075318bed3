//! Computes the head of a chain, and encodes entries for hashing.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayVec;

use crate::records::columns::EntryColumns;
use crate::records::ids::{KeyId, WalletId};
use crate::sha256::Sha256;

/// The prefixes of hashed bytes. They state whether a wallet or an entry is hashed, and the version of the encoding.
const WALLET: &[u8] = b"tollgate ledger wallet 1";
const ENTRY: &[u8] = b"tollgate ledger entry 1";
/// The prefix for entries with a reference, a refunded top-up, or an actor.
const MANUAL_ENTRY: &[u8] = b"tollgate ledger entry 2";
/// The marker before the cost in the encoding of an entry.
const COST: &str = "cost";

/// Large enough for an entry of usual size, so that the hasher is called once.
const BUFFER_BYTES: usize = 512;

/// The values behind an entry's references by row number. The hash covers these values, because row numbers mean
/// nothing outside the database.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReferencedValues<'a> {
    pub(crate) key: Option<KeyId>,
    /// The digest of the entry's price version.
    pub(crate) card: Option<&'a [u8; 32]>,
    /// The digest of the entry's cost version.
    pub(crate) cost_card: Option<&'a [u8; 32]>,
}

/// The hash of a wallet's last entry. It covers all earlier entries too.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head([u8; 32]);

impl Head {
    /// The head of a wallet without entries. It covers the wallet's id, so that no chain fits another wallet.
    pub(crate) fn of_wallet(wallet: WalletId) -> Self {
        let mut encoder = Encoder::new(WALLET);
        encoder.name(WalletId::PREFIX, wallet.chars());
        encoder.finish()
    }

    pub(crate) fn after(&self, entry: &EntryColumns<'_>, named: ReferencedValues<'_>) -> Self {
        let EntryColumns {
            // The chain's first head covers the wallet's id.
            wallet: _,
            seq,
            kind,
            at,
            closes,
            part_of,
            // `named` contains the id of the key.
            key: _,
            held,
            booked,
            charge,
            delta,
            opened_at,
            request_id,
            meter,
            price_version,
            basis,
            note,
            reference,
            refund_of,
            actor,
            cost,
            cost_version,
        } = entry;
        let ReferencedValues {
            key,
            card,
            cost_card,
        } = named;
        let is_manual = reference.is_some() || refund_of.is_some() || actor.is_some();
        let mut encoder = Encoder::new(if is_manual { MANUAL_ENTRY } else { ENTRY });
        encoder.bytes(&self.0);
        encoder.integer(*seq);
        encoder.text(kind);
        encoder.integer(*at);
        encoder.option(*closes, Encoder::integer);
        encoder.option(*part_of, Encoder::integer);
        encoder.option(key, |encoder, key| {
            encoder.name(KeyId::PREFIX, key.chars());
        });
        encoder.option(*held, Encoder::integer);
        encoder.integer(*booked);
        encoder.integer(*charge);
        encoder.integer(delta.balance);
        encoder.integer(delta.gift_balance);
        encoder.integer(delta.credit_used);
        encoder.option(*opened_at, Encoder::integer);
        encoder.option(*request_id, Encoder::text);
        encoder.option(*meter, Encoder::text);
        encoder.option(*price_version, Encoder::integer);
        encoder.option(card, |encoder, card| encoder.bytes(card));
        encoder.option(*basis, Encoder::text);
        encoder.option(*note, Encoder::text);
        if is_manual {
            encoder.option(*reference, Encoder::text);
            encoder.option(*refund_of, Encoder::integer);
            encoder.option(*actor, Encoder::text);
        }
        // An entry without a cost has the encoding of earlier versions, which knew no costs, so stored hashes stay
        // valid.
        if cost.is_some() || cost_version.is_some() {
            encoder.text(COST);
            encoder.option(*cost, Encoder::integer);
            encoder.option(*cost_version, Encoder::integer);
            encoder.option(cost_card, |encoder, card| encoder.bytes(card));
        }
        encoder.finish()
    }

    /// Reads a head from its stored bytes. `None` if they are not a head.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a head is written as 64 hexadecimal digits")]
pub struct HeadError;

impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(HeadError);
        };
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(HeadError),
        };
        let bytes: Result<Vec<u8>, HeadError> = pairs
            .iter()
            .map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?))
            .collect();
        Self::from_bytes(&bytes?).ok_or(HeadError)
    }
}

/// The head of a wallet at the time of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletHead {
    pub wallet: WalletId,
    /// The number of entries that the wallet had.
    pub entries: i64,
    pub head: Head,
}

/// Encodes values so that different lists of values give different bytes. Integers have a fixed size. A text is
/// preceded by its length, and an optional value by a marker.
struct Encoder {
    hasher: Sha256,
    /// Bytes that were not passed to the hasher yet. They are on the stack to avoid an allocation.
    buffer: ArrayVec<u8, BUFFER_BYTES>,
}

impl Encoder {
    fn new(purpose: &[u8]) -> Self {
        let mut encoder = Self {
            hasher: Sha256::new(),
            buffer: ArrayVec::new(),
        };
        encoder.bytes(purpose);
        encoder
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.buffer.try_extend_from_slice(bytes).is_err() {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
            self.hasher.update(bytes);
        }
    }

    fn integer(&mut self, integer: i64) {
        self.bytes(&integer.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    /// An id, encoded as its text.
    fn name(&mut self, prefix: &str, rest: &[u8]) {
        self.length(prefix.len() + rest.len());
        self.bytes(prefix.as_bytes());
        self.bytes(rest);
    }

    fn length(&mut self, length: usize) {
        self.bytes(&(length as u64).to_be_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.bytes(&[u8::from(value.is_some())]);
        if let Some(value) = value {
            encode(self, value);
        }
    }

    fn finish(mut self) -> Head {
        self.hasher.update(&self.buffer);
        Head(self.hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use ledger::Delta;
    use proptest::prelude::*;

    use super::*;

    fn wallet(text: &str) -> WalletId {
        WalletId::parse(text).unwrap()
    }

    fn key() -> KeyId {
        KeyId::parse("key_0123456789abcdef").unwrap()
    }

    fn settled() -> EntryColumns<'static> {
        EntryColumns {
            wallet: 1,
            seq: 2,
            kind: "settled",
            at: 1_800_000_000_000,
            closes: Some(77),
            part_of: None,
            key: Some(4),
            held: Some(6),
            booked: 0,
            charge: 5,
            delta: Delta {
                balance: -5,
                ..Delta::default()
            },
            opened_at: Some(1_799_999_999_000),
            request_id: Some("req_1"),
            meter: Some(r#"{"input":5}"#),
            price_version: Some(1),
            basis: Some("reported"),
            note: None,
            ..EntryColumns::default()
        }
    }

    fn named(key: Option<KeyId>, card: Option<&[u8; 32]>) -> ReferencedValues<'_> {
        ReferencedValues {
            key,
            card,
            cost_card: None,
        }
    }

    /// Stored heads never change, so a new encoding needs a new version and a migration.
    #[test]
    fn the_encoding_does_not_change() {
        let first = Head::of_wallet(wallet("wal_0123456789abcdef"));
        assert_eq!(
            first.to_string(),
            "f6c212369142f646346d3c4c1e95086d4ddafe193b566510584d3b709ccca9c9"
        );
        let second = first.after(&settled(), named(Some(key()), Some(&[7; 32])));
        assert_eq!(
            second.to_string(),
            "1b210fe7248fafd21ad6176b53355839f904b2fe5b3a9020664b233bd0bc51cb"
        );
        let refund = EntryColumns {
            seq: 3,
            kind: "refund",
            at: 1_800_000_000_001,
            delta: Delta {
                balance: -7,
                ..Delta::default()
            },
            note: Some("money back"),
            reference: Some("re_1"),
            refund_of: Some(1),
            actor: Some("ada"),
            ..EntryColumns::default()
        };
        let third = second.after(&refund, ReferencedValues::default());
        assert_eq!(
            third.to_string(),
            "c51611cb66bc538245cd1757cebe882e1d87f14d6256091411ba1a149d70a1d7"
        );
    }

    #[test]
    fn a_head_reads_back_from_its_text() {
        let head = Head::of_wallet(wallet("wal_0123456789abcdef"));
        assert_eq!(head.to_string().parse(), Ok(head));
        let text = head.to_string();
        for text in [
            &text[1..],
            &text[2..],
            &format!("{text}00"),
            &text.to_uppercase(),
            "",
        ] {
            assert_eq!(text.parse::<Head>(), Err(HeadError), "{text}");
        }
    }

    #[test]
    fn every_value_changes_the_hash() {
        let first = Head::of_wallet(wallet("wal_0123456789abcdef"));
        let base = settled();
        let long: &str = "x".repeat(2 * BUFFER_BYTES).leak();
        let of = |entry: EntryColumns<'_>| first.after(&entry, named(Some(key()), Some(&[7; 32])));
        let costly = EntryColumns {
            cost: Some(0),
            cost_version: Some(3),
            ..base.clone()
        };
        let cost_card = |card: &'static [u8; 32]| ReferencedValues {
            cost_card: Some(card),
            ..named(Some(key()), Some(&[7; 32]))
        };
        let with = |change: &dyn Fn(&mut EntryColumns<'static>)| {
            let mut entry = base.clone();
            change(&mut entry);
            of(entry)
        };
        let heads = [
            of(base.clone()),
            Head::of_wallet(wallet("wal_0123456789abcdeg"))
                .after(&base, named(Some(key()), Some(&[7; 32]))),
            first.after(&base, named(None, Some(&[7; 32]))),
            first.after(&base, named(Some(KeyId::random()), Some(&[7; 32]))),
            first.after(&base, named(Some(key()), None)),
            first.after(&base, named(Some(key()), Some(&[8; 32]))),
            of(costly.clone()),
            first.after(&costly, cost_card(&[7; 32])),
            first.after(&costly, cost_card(&[8; 32])),
            with(&|it| it.cost = Some(0)),
            with(&|it| (it.cost, it.cost_version) = (Some(1), Some(3))),
            with(&|it| (it.cost, it.cost_version) = (Some(0), Some(4))),
            with(&|it| it.seq = 3),
            with(&|it| it.kind = "abandoned"),
            with(&|it| it.at += 1),
            with(&|it| it.closes = None),
            with(&|it| it.closes = Some(78)),
            with(&|it| (it.part_of, it.closes) = (it.closes, None)),
            with(&|it| it.held = Some(7)),
            with(&|it| it.held = None),
            with(&|it| it.booked = 1),
            with(&|it| it.charge = 6),
            with(&|it| it.delta.balance = -6),
            with(&|it| it.delta.gift_balance = -5),
            with(&|it| it.delta.credit_used = -5),
            with(&|it| it.opened_at = None),
            with(&|it| it.request_id = Some("req_")),
            with(&|it| it.request_id = Some("")),
            with(&|it| it.request_id = None),
            with(&|it| it.meter = None),
            with(&|it| it.price_version = Some(2)),
            with(&|it| it.basis = Some("counted")),
            with(&|it| it.note = Some("")),
            with(&|it| it.note = Some(long)),
            with(&|it| it.note = Some(&long[1..])),
            with(&|it| it.reference = Some("")),
            with(&|it| it.reference = Some("x")),
            with(&|it| it.refund_of = Some(1)),
            with(&|it| it.actor = Some("")),
            with(&|it| it.actor = Some("x")),
        ];
        for (n, head) in heads.iter().enumerate() {
            assert!(
                !heads[..n].contains(head),
                "the hash of change {n} is another's"
            );
        }
    }

    proptest! {
        /// The boundary between two texts is part of the hash, regardless of their sizes.
        #[test]
        fn a_text_cannot_reach_into_the_next(text in ".{1,700}", cut in any::<prop::sample::Index>()) {
            let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let (request_id, meter) = text.split_at(*cut.get(&cuts));
            let hash = |request_id, meter| {
                let entry = EntryColumns { request_id: Some(request_id), meter: Some(meter), ..settled() };
                Head::of_wallet(wallet("wal_0123456789abcdef")).after(&entry, ReferencedValues::default())
            };
            prop_assert_ne!(hash(request_id, meter), hash(&text, ""));
            prop_assert_eq!(hash(request_id, meter), hash(request_id, meter));
        }
    }
}
