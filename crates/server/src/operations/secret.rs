//! Generates the secret of a new API key.

use rand::Rng;

/// The prefix of every key, by which scanners recognise a leaked one.
const PREFIX: &str = "sk-tg-";

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The number of base 62 digits for 256 bits: 62^43 is the first power above 2^256.
const DIGITS: usize = 43;

/// The number of characters that may be shown later: the prefix and four digits, 24 of 256 bits.
const SHOWN: usize = PREFIX.len() + 4;

/// A fresh secret, and the part of it that may be shown later.
pub(crate) fn fresh() -> (String, String) {
    let mut bits = [0; 32];
    rand::rng().fill_bytes(&mut bits);
    let secret = write(bits);
    let shown = secret.chars().take(SHOWN).collect();
    (secret, shown)
}

/// Writes 256 bits in base 62 with leading zeros, so that all keys have the same length.
fn write(mut bits: [u8; 32]) -> String {
    let mut digits = [0_u8; DIGITS];
    for digit in digits.iter_mut().rev() {
        // Long division of the whole number by 62; the remainder is the next digit.
        let mut rest: u16 = 0;
        for byte in &mut bits {
            let part = rest << 8 | u16::from(*byte);
            *byte = u8::try_from(part / 62).unwrap_or(u8::MAX);
            rest = part % 62;
        }
        *digit = BASE62[usize::from(rest)];
    }
    PREFIX.chars().chain(digits.map(char::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bits_stand_in_the_secret() {
        let mut one = [0; 32];
        one[31] = 1;
        let mut sixty_two = [0; 32];
        sixty_two[31] = 62;
        for (bits, expected) in [
            ([0; 32], "0".repeat(43)),
            (one, format!("{}1", "0".repeat(42))),
            (sixty_two, format!("{}10", "0".repeat(41))),
            // 2^256 - 1 in base 62, computed independently.
            (
                [255; 32],
                "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1".to_owned(),
            ),
        ] {
            assert_eq!(write(bits), format!("sk-tg-{expected}"));
        }
    }

    #[test]
    fn two_secrets_differ_and_show_little() {
        let (first, shown) = fresh();
        let (second, _) = fresh();
        assert_ne!(first, second);
        assert_eq!(first.len(), 49);
        assert_eq!(shown.len(), 10);
        assert!(first.starts_with(&shown));
    }
}
