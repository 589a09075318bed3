//! Rendezvous hashing: calls with the same key prefer the same route, without any stored state.
//!
//! Each route gets a number that is drawn from the key and the route's name. Routes are ordered by these numbers, so if
//! a route disappears, only the keys that preferred it move. The numbers are exponentially distributed with the weight
//! as their rate, so the share of keys that prefer a route is proportional to its weight.

use crate::route_order::mix;

/// The number of bits after the binary point of a logarithm.
const FRACTION_BITS: u32 = 24;

/// Hashes bytes. The result is the same on every node and in every version. The hash does not resist deliberate
/// collisions.
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(seed ^ bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = mix(hash ^ word);
    }
    let rest = words.remainder().iter().rev();
    let rest = rest.fold(0, |word, byte| (word << 8) | u64::from(*byte));
    mix(hash ^ rest)
}

/// The rank of a route for a key. The smallest rank comes first; a route of weight 0 comes last.
pub fn sticky_rank(key: u64, route: &[u8], weight: u32) -> u64 {
    let drawn = hash_bytes(key, route);
    match weight {
        0 => u64::MAX,
        // The logarithm is at most 64 << 24, which is 2^30, so the shifted value is at most 2^62 and fits.
        weight => (negative_log2(drawn) << 32) / u64::from(weight),
    }
}

/// `64 - log2(drawn)`, with [`FRACTION_BITS`] bits after the binary point: an exponential variate of a uniform draw.
fn negative_log2(drawn: u64) -> u64 {
    let drawn = drawn.max(1);
    let whole = u64::from(drawn.ilog2());
    // The mantissa, in [2^63, 2^64). Each squaring reveals one more bit of its logarithm.
    let mut mantissa = drawn << (63 - drawn.ilog2());
    let mut fraction = 0_u64;
    for _ in 0..FRACTION_BITS {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let is_above = square >> 64 != 0;
        fraction = (fraction << 1) | u64::from(is_above);
        let square = if is_above { square >> 1 } else { square };
        mantissa = u64::try_from(square).unwrap_or(u64::MAX);
    }
    (64 << FRACTION_BITS) - ((whole << FRACTION_BITS) | fraction)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The routes in the order in which a key prefers them.
    fn order(key: u64, routes: &[(&str, u32)]) -> Vec<String> {
        let mut ranked: Vec<_> = routes
            .iter()
            .map(|(name, weight)| (sticky_rank(key, name.as_bytes(), *weight), *name))
            .collect();
        ranked.sort_unstable();
        ranked
            .into_iter()
            .map(|(_, name)| name.to_owned())
            .collect()
    }

    #[test]
    fn the_logarithm_is_that_of_the_number() {
        let one = 1 << FRACTION_BITS;
        for (drawn, expected) in [
            (1, 64 * one),
            (2, 63 * one),
            (1 << 40, 24 * one),
            (3 << 40, 0),
        ] {
            let found = negative_log2(drawn);
            // log2(3) = 1.584962500721156
            let expected = match expected {
                0 => 23 * one - 9_814_042,
                exact => exact,
            };
            assert!(found.abs_diff(expected) <= 1, "{drawn}: {found} {expected}");
        }
        assert!(negative_log2(u64::MAX) <= 1);
    }

    #[test]
    fn keys_are_shared_by_weight() {
        let routes = [("a", 3), ("b", 1), ("c", 0)];
        let keys = 40_000;
        let first = (0..keys)
            .filter(|key| order(*key, &routes)[0] == "a")
            .count();
        assert!((29_500..30_500).contains(&first), "{first} of {keys}");
        assert!((0..100).all(|key| order(key, &routes)[2] == "c"));
    }

    #[test]
    fn every_byte_and_the_length_count() {
        let base = hash_bytes(1, b"0123456789abcdef");
        for other in [
            &b"0123456789abcdeF"[..],
            b"1123456789abcdef",
            b"0123456789abcde",
            b"0123456789abcdef\0",
        ] {
            assert_ne!(hash_bytes(1, other), base);
        }
        assert_ne!(hash_bytes(2, b"0123456789abcdef"), base);
        assert_eq!(hash_bytes(1, b"0123456789abcdef"), base);
    }

    proptest! {
        /// If a route disappears, only the keys that preferred it move.
        #[test]
        fn the_others_keep_their_order(
            key: u64,
            weights in prop::collection::vec(0_u32..5, 2..7),
            lost in 0_usize..7,
        ) {
            let names: Vec<String> = (0..weights.len()).map(|it| format!("route-{it}")).collect();
            let routes: Vec<_> = names.iter().map(String::as_str).zip(weights).collect();
            let lost = lost % routes.len();
            let mut before = order(key, &routes);
            before.retain(|name| name != routes[lost].0);
            let mut left = routes.clone();
            left.remove(lost);
            prop_assert_eq!(order(key, &left), before);
        }
    }
}
