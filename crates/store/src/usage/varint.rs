//! Encodes variable-length integers: seven bits in each byte, the lowest bits first.

pub(super) fn put(to: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            to.push(low);
            return;
        }
        to.push(low | 0x80);
    }
}

/// Appends a number that may be negative. Numbers close to zero are short, regardless of their sign.
pub(super) fn put_signed(to: &mut Vec<u8>, number: i64) {
    put(to, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Reads a number from the front. `None` if the bytes end early or the number is too large.
pub(super) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Reads a number that may be negative.
pub(super) fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let number = take(from)?;
    Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec((any::<u64>(), any::<i64>()), 0..20)) {
            let mut bytes = Vec::new();
            for (number, signed) in &numbers {
                put(&mut bytes, *number);
                put_signed(&mut bytes, *signed);
            }
            let mut rest = &*bytes;
            for (number, signed) in numbers {
                prop_assert_eq!(take(&mut rest), Some(number));
                prop_assert_eq!(take_signed(&mut rest), Some(signed));
            }
            prop_assert_eq!(take(&mut rest), None);
        }

        #[test]
        fn any_bytes_end_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut rest = &*bytes;
            while take(&mut rest).is_some() {}
        }
    }
}
