//! Ids that clients see: a prefix and 128 random bits in base62.

use arrayvec::ArrayString;
use rand::RngExt as _;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^11 is the first power of 62 above 2^64.
const HALF_DIGITS: usize = 11;

/// The longest prefix of an id.
const PREFIX_BYTES: usize = 10;

/// A fresh id, such as `resp_2aUyqjCzEIiEcYMKj7TZtw`.
pub fn fresh<T: for<'a> From<&'a str>>(prefix: &str) -> T {
    spell(prefix, rand::rng().random()).as_str().into()
}

/// Each half is encoded separately, because dividing 128-bit numbers would cost more than everything else here.
fn spell(prefix: &str, halves: [u64; 2]) -> ArrayString<{ PREFIX_BYTES + 2 * HALF_DIGITS }> {
    let mut id = ArrayString::new();
    id.push_str(prefix);
    for mut bits in halves {
        let mut digits = [b'0'; HALF_DIGITS];
        for digit in digits.iter_mut().rev() {
            let rest = usize::try_from(bits % 62).unwrap_or(0);
            *digit = BASE62.get(rest).copied().unwrap_or(b'0');
            bits /= 62;
        }
        // All digits are ASCII.
        id.push_str(str::from_utf8(&digits).unwrap_or_default());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_length_and_spell_all_bits() {
        for (bits, spelt) in [
            ([0, 0], "req_0000000000000000000000"),
            ([0, 61], "req_000000000000000000000z"),
            ([62, 62], "req_0000000001000000000010"),
            ([u64::MAX, 0], "req_LygHa16AHYF00000000000"),
        ] {
            assert_eq!(&*spell("req_", bits), spelt);
        }
    }

    #[test]
    fn two_ids_differ() {
        assert_ne!(fresh::<String>("req_"), fresh::<String>("req_"));
    }
}
