//! Verifies RSA signatures with textbook arithmetic, independently of the library that the gateway uses to sign.

use sha2::{Digest as _, Sha256};

/// The public exponent of all keys in use.
const EXPONENT: u32 = 65_537;
/// The DER prefix of a SHA-256 digest (RFC 8017, section 9.2).
const DIGEST_INFO: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
    0x00, 0x04, 0x20,
];

/// Whether this is the message's signature (RSASSA-PKCS1-v1_5 with SHA-256).
pub(super) fn verifies(modulus: &[u8], message: &[u8], signature: &[u8]) -> bool {
    if signature.len() != modulus.len() || signature >= modulus {
        return false;
    }
    let digest = Sha256::digest(message);
    let filled = modulus.len() - DIGEST_INFO.len() - digest.len() - 3;
    let mut expected = vec![0x00, 0x01];
    expected.resize(2 + filled, 0xff);
    expected.push(0x00);
    expected.extend_from_slice(&DIGEST_INFO);
    expected.extend_from_slice(&digest);
    let modulus = limbs(modulus);
    power(&limbs(signature), &modulus) == limbs(&expected)
}

/// Splits a big-endian number into 32-bit limbs, lowest first.
fn limbs(bytes: &[u8]) -> Vec<u32> {
    let chunks = bytes.rchunks(4);
    let limb = |chunk: &[u8]| {
        chunk
            .iter()
            .fold(0, |limb, byte| (limb << 8) | u32::from(*byte))
    };
    chunks.map(limb).collect()
}

/// `base` to the public exponent, modulo `modulus`.
fn power(base: &[u32], modulus: &[u32]) -> Vec<u32> {
    let mut result = base.to_vec();
    // `result` starts as `base`, which accounts for the highest bit of the exponent. Sixteen bits are left.
    for bit in (0..16).rev() {
        result = product(&result, &result, modulus);
        if EXPONENT >> bit & 1 == 1 {
            result = product(&result, base, modulus);
        }
    }
    result
}

/// `a * b` modulo `modulus`, by doubling and adding. Both factors are below the modulus.
fn product(a: &[u32], b: &[u32], modulus: &[u32]) -> Vec<u32> {
    let mut sum = vec![0; modulus.len()];
    for limb in a.iter().rev() {
        for bit in (0..32).rev() {
            let doubled = sum.clone();
            add(&mut sum, &doubled, modulus);
            if limb >> bit & 1 == 1 {
                add(&mut sum, b, modulus);
            }
        }
    }
    sum
}

fn add(a: &mut [u32], b: &[u32], modulus: &[u32]) {
    let mut carry = false;
    for (a, b) in a.iter_mut().zip(b) {
        let (sum, over) = a.overflowing_add(*b);
        let (sum, again) = sum.overflowing_add(u32::from(carry));
        (*a, carry) = (sum, over || again);
    }
    if carry || !is_below(a, modulus) {
        let mut borrow = false;
        for (a, m) in a.iter_mut().zip(modulus) {
            let (rest, under) = a.overflowing_sub(*m);
            let (rest, again) = rest.overflowing_sub(u32::from(borrow));
            (*a, borrow) = (rest, under || again);
        }
    }
}

fn is_below(a: &[u32], b: &[u32]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_plain_arithmetic() {
        for (base, modulus) in [
            (2_u64, 4_294_967_291_u64),
            (123_456_789, 1_000_000_007),
            (3, 7),
        ] {
            let mut expected = 1_u128;
            for _ in 0..EXPONENT {
                expected = expected * u128::from(base) % u128::from(modulus);
            }
            let number = |value: u64| limbs(&value.to_be_bytes());
            let expected = number(u64::try_from(expected).unwrap());
            assert_eq!(power(&number(base), &number(modulus)), expected);
        }
    }
}
