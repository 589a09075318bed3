//! A deterministic generator for all values in an answer that look random.

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The state of the generator. Equal seeds give equal sequences.
#[derive(Debug, Clone)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// A seed that depends on all given parts.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = FNV_OFFSET;
        for part in parts {
            for byte in part.iter().chain([&0xff]) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
            }
        }
        Self(hash)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.next().checked_rem(bound).unwrap_or_default()).unwrap_or_default()
    }

    /// One of the choices; `None` if there are none.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> Option<&'a T> {
        choices.get(self.below(choices.len())).copied()
    }

    /// Random letters and digits, as in vendors' ids.
    pub(crate) fn letters(&mut self, len: usize) -> String {
        (0..len)
            .filter_map(|_| ALPHABET.get(self.below(ALPHABET.len())))
            .map(|byte| char::from(*byte))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_give_equal_sequences() {
        let mut first = Seed::of(&[b"prompt", b"1"]);
        let mut second = Seed::of(&[b"prompt", b"1"]);
        assert_eq!(first.letters(24), second.letters(24));
        let mut other = Seed::of(&[b"prompt1", b""]);
        assert_ne!(first.letters(24), other.letters(24));
    }

    #[test]
    fn below_nothing_is_zero() {
        assert_eq!(Seed::new(1).below(0), 0);
        assert_eq!(Seed::new(1).pick::<str>(&[]), None);
    }
}
