//! Makes ids for calls that have none.

/// An id that is stable for a call and unique in a conversation. `seed` distinguishes answers,
/// `number` the calls of one answer. All its characters are allowed in every dialect.
pub(super) fn call_id(seed: &str, number: usize, name: &str) -> String {
    let mut hash = FNV_BASIS;
    for byte in seed.bytes().chain([0]).chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    }
    format!("call_{number}_{hash:016x}")
}

/// FNV-1a, which needs neither a table nor a key.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_the_same_way_every_time() {
        assert_eq!(call_id("r1", 1, "f"), call_id("r1", 1, "f"));
        for (seed, number, name) in [
            ("r1", 2, "f"),
            ("r2", 1, "f"),
            ("r1", 1, "g"),
            ("r1f", 1, ""),
        ] {
            assert_ne!(call_id("r1", 1, "f"), call_id(seed, number, name));
        }
        assert_eq!(call_id("r1", 1, "f").len(), "call_1_".len() + 16);
    }
}
