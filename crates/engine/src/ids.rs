//! Creates the ids that clients see: a prefix and 128 bits in base62. The bits are random, except that request ids
//! begin with a time.

use arrayvec::ArrayString;
use ledger::UnixMs;
use rand::RngExt as _;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The number of base62 digits of 64 bits: 62^11 is the first power of 62 above 2^64.
const HALF_DIGITS: usize = 11;

/// The maximum length of a prefix.
const PREFIX_BYTES: usize = 10;

/// Creates a random id, such as `resp_2aUyqjCzEIiEcYMKj7TZtw`.
pub fn fresh<T: for<'a> From<&'a str>>(prefix: &str) -> T {
    spell(prefix, rand::rng().random()).as_str().into()
}

/// Creates an id that begins with the time `at`, so that later ids are greater. An index of such ids grows at its end,
/// whereas random ids would change a different page for every row.
pub fn fresh_at<T: for<'a> From<&'a str>>(prefix: &str, at: UnixMs) -> T {
    spell(prefix, at_time(at, rand::rng().random()))
        .as_str()
        .into()
}

/// Replaces the first 44 bits with the time in milliseconds, which fits until the year 2527.
fn at_time(at: UnixMs, [first, second]: [u64; 2]) -> [u64; 2] {
    let ms = u64::try_from(at.get()).unwrap_or(0);
    [(ms << 20) | (first >> 44), second]
}

/// Writes an id. Each half is encoded separately, because dividing 128-bit numbers would cost more than everything else
/// here.
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
        let at = UnixMs::new(1_800_000_000_000);
        assert_ne!(
            fresh_at::<String>("req_", at),
            fresh_at::<String>("req_", at)
        );
    }

    #[test]
    fn ids_of_later_times_are_greater() {
        let times = [0, 1, 1_000, 1_800_000_000_000, 1_800_000_000_001, 1 << 43];
        let spelt = |ms, bits| spell("req_", at_time(UnixMs::new(ms), [bits; 2]));
        for (earlier, later) in times.iter().zip(&times[1..]) {
            assert!(spelt(*earlier, u64::MAX) < spelt(*later, 0), "{later}");
        }
    }
}
