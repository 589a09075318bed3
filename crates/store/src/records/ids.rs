//! Ids of stored things, such as wallets, keys, holds, epochs and price versions, and digests of secrets.
//!
//! Wallet and key ids are small `Copy` values, because every admitted call carries one of each.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayString;
use rand::RngExt as _;

use crate::sha256::Sha256;

/// The number of random characters after the prefix: 16 of 62, about 95 bits.
const RANDOM_CHARS: usize = 16;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id here is `{prefix}` and {RANDOM_CHARS} letters or digits")]
pub struct IdError {
    prefix: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; RANDOM_CHARS]);

        impl $name {
            /// The prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// A fresh random id.
            pub fn random() -> Self {
                let mut rng = rand::rng();
                Self(std::array::from_fn(|_| {
                    BASE62.get(rng.random_range(0..BASE62.len())).copied().unwrap_or(b'0')
                }))
            }

            /// The id that is derived from a text. The same text always gives the same id.
            #[allow(dead_code, reason = "only wallets and keys are imported")]
            pub fn derived(text: &str) -> Self {
                let digest: [u8; 32] = Sha256::digest(text);
                Self(std::array::from_fn(|at| {
                    // Two bytes for each character make all characters almost equally likely.
                    let pair = digest.chunks_exact(2).nth(at).map(|pair| {
                        pair.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
                    });
                    let digit = pair.unwrap_or(0) % BASE62.len();
                    BASE62.get(digit).copied().unwrap_or(b'0')
                }))
            }

            /// Reads the text form.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let chars: Option<[u8; RANDOM_CHARS]> = text
                    .strip_prefix(Self::PREFIX)
                    .and_then(|rest| rest.as_bytes().try_into().ok())
                    .filter(|chars: &[u8; RANDOM_CHARS]| chars.iter().all(u8::is_ascii_alphanumeric));
                chars.map(Self).ok_or(IdError { prefix: Self::PREFIX })
            }

            /// The characters after the prefix.
            #[allow(dead_code, reason = "not every kind of id is hashed")]
            pub(crate) fn chars(&self) -> &[u8; RANDOM_CHARS] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Self::PREFIX)?;
                // The characters are ASCII by construction.
                f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str>>::deserialize(from)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id! {
    /// A wallet, `wal_…`.
    WalletId, "wal_"
}
text_id! {
    /// A token of the admin API (not its secret), `tok_…`.
    TokenId, "tok_"
}
text_id! {
    /// An alert, `alt_…`.
    AlertId, "alt_"
}
text_id! {
    /// An alert rule, `rul_…`.
    RuleId, "rul_"
}
text_id! {
    /// An API key (not its secret), `key_…`.
    KeyId, "key_"
}

/// The id of a request: a short text, which is copied and not shared, because the row of each call takes it to other
/// threads. A longer text is not one of our ids, and is truncated.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestId(ArrayString<REQUEST_ID_BYTES>);

const REQUEST_ID_BYTES: usize = 36;

impl RequestId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(ArrayString::from(text).unwrap_or_else(|_| {
            let mut cut = ArrayString::new();
            text.chars().all(|letter| cut.try_push(letter).is_ok());
            cut
        }))
    }
}

impl std::ops::Deref for RequestId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// SHA-256 of the secret of a key, token, sign-in code or session. Only the digest is stored and looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a secret as a caller sends it.
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret))
    }

    /// A digest that was computed elsewhere.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

// A digest is not a secret, but it need not appear in a log line either.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// The epoch of a node: a number that is new at each start, and greater than all earlier epochs of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(i64);

impl Epoch {
    pub(crate) fn new(epoch: i64) -> Self {
        Self(epoch)
    }

    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// A hold: the epoch that opened it, and a counter within the epoch.
///
/// The process chooses the id, so that a close whose commit was not answered can be repeated by id without
/// being booked twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(i64);

impl HoldId {
    /// The number of bits of the counter, enough for about 10^12 holds per start.
    const COUNTER_BITS: u32 = 40;

    pub(crate) fn new(id: i64) -> Self {
        Self(id)
    }

    pub(crate) fn first_of(epoch: Epoch) -> Self {
        Self(epoch.0 << Self::COUNTER_BITS)
    }

    /// The hold after this one, if every `step`-th id is used.
    pub(crate) fn next(self, step: i64) -> Self {
        Self(self.0.saturating_add(step))
    }

    /// The first hold of one of [`LANES_MAX`](Self::LANES_MAX) lanes, whose ids interleave.
    pub(crate) fn first_of_lane(epoch: Epoch, lane: usize) -> Self {
        let lane = i64::try_from(lane % Self::LANES_MAX).unwrap_or(0);
        Self((epoch.0 << Self::COUNTER_BITS) + lane)
    }

    /// The lane that opened the hold.
    pub(crate) fn lane(self) -> usize {
        usize::try_from(self.0).unwrap_or(0) % Self::LANES_MAX
    }

    /// The maximum number of writers of one process that open holds at the same time.
    pub(crate) const LANES_MAX: usize = 16;

    /// The number that is stored.
    pub fn get(self) -> i64 {
        self.0
    }

    /// The epoch that opened the hold.
    pub fn epoch(self) -> Epoch {
        Epoch(self.0 >> Self::COUNTER_BITS)
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}",
            self.epoch().0,
            self.0 & ((1 << Self::COUNTER_BITS) - 1)
        )
    }
}

/// A version of a model's price card, kept forever, so that repricing an entry gives the same amount.
///
/// It contains the digest of the card, so that an entry's hash covers the prices of its charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceVersion {
    number: PriceNumber,
    /// SHA-256 of the model's name and its card.
    digest: [u8; 32],
}

impl PriceVersion {
    /// The version that is stored under `number`.
    pub(crate) fn new(number: i64, model: &str, card: &str) -> Self {
        let mut digest = Sha256::new();
        // The length keeps different pairs of texts from having the same bytes.
        digest.update((model.len() as u64).to_be_bytes());
        digest.update(model);
        digest.update(card);
        Self {
            number: PriceNumber(number),
            digest: digest.finish(),
        }
    }

    /// The number that is stored with an entry.
    pub fn get(self) -> i64 {
        self.number.0
    }

    /// The number that is stored with an entry.
    pub fn number(self) -> PriceNumber {
        self.number
    }

    /// SHA-256 of the model's name and its card.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// The number of a price version, as entries refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct PriceNumber(pub(crate) i64);

impl PriceNumber {
    /// The number that is stored.
    pub fn get(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_request_is_kept_and_cut_where_it_is_none() {
        for text in ["", "req_1", "req_2aUyqjCzEIiEcYMKj7TZtw"] {
            assert_eq!(&*RequestId::from(text), text);
        }
        let long = "é".repeat(REQUEST_ID_BYTES);
        assert_eq!(&*RequestId::from(&*long), "é".repeat(REQUEST_ID_BYTES / 2));
        let odd = format!("x{long}");
        assert_eq!(RequestId::from(&*odd).len(), REQUEST_ID_BYTES - 1);
    }

    #[test]
    fn an_id_reads_back_from_its_text() {
        let id = KeyId::random();
        assert_eq!(KeyId::parse(&id.to_string()), Ok(id));
        assert_ne!(KeyId::random(), id);
    }

    #[test]
    fn a_text_has_one_id() {
        let id = WalletId::derived("import:x:users:1");
        assert_eq!(id, WalletId::derived("import:x:users:1"));
        assert_ne!(id, WalletId::derived("import:x:users:2"));
        assert_eq!(WalletId::parse(&id.to_string()), Ok(id));
    }

    #[test]
    fn other_texts_are_no_id() {
        for text in [
            "",
            "wal_",
            "key_0123456789abcdef",
            "wal_0123456789abcde",
            "wal_0123456789abcdef0",
            "wal_0123456789abcde-",
        ] {
            assert!(WalletId::parse(text).is_err(), "{text}");
        }
        assert!(WalletId::parse("wal_0123456789abcdeF").is_ok());
    }

    #[test]
    fn a_hold_knows_its_epoch() {
        let epoch = Epoch::new(7);
        let hold = HoldId::first_of(epoch).next(1).next(1);
        assert_eq!(hold.epoch(), epoch);
        assert_eq!(hold.to_string(), "7-2");
        let step = i64::try_from(HoldId::LANES_MAX).unwrap();
        let hold = HoldId::first_of_lane(epoch, 3).next(step).next(step);
        assert_eq!((hold.epoch(), hold.lane()), (epoch, 3));
    }
}
