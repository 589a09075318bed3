//! Ids that callers see: a prefix and 128 random bits in base62.

use rand::RngExt as _;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^22 is the first power of 62 above 2^128.
const DIGITS: usize = 22;

/// A fresh id such as `req_2aUyqjCzEIiEcYMKj7TZtw`.
pub fn fresh(prefix: &str) -> String {
    spell(prefix, rand::rng().random())
}

fn spell(prefix: &str, mut bits: u128) -> String {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        let rest = usize::try_from(bits % 62).unwrap_or(0);
        *digit = BASE62.get(rest).copied().unwrap_or(b'0');
        bits /= 62;
    }
    let mut id = String::with_capacity(prefix.len() + DIGITS);
    id.push_str(prefix);
    id.extend(digits.iter().copied().map(char::from));
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_length_and_spell_all_bits() {
        for (bits, spelt) in [
            (0, "req_0000000000000000000000"),
            (61, "req_000000000000000000000z"),
            (62, "req_0000000000000000000010"),
            (u128::MAX, "req_7n42DGM5Tflk9n8mt7Fhc7"),
        ] {
            assert_eq!(spell("req_", bits), spelt);
        }
    }

    #[test]
    fn two_ids_differ() {
        assert_ne!(fresh("req_"), fresh("req_"));
    }
}
