//! Converts a vector between JSON numbers and base64 of little-endian float32.

use std::io::Write as _;

use crate::canon::base64;
use crate::json::{Cursor, Raw, Shape};
use crate::unusable_answer::UnusableAnswer;

pub(super) fn to_base64(numbers: Raw<'_>) -> Result<Vec<u8>, UnusableAnswer> {
    let mut encoder = base64::Encoder::default();
    Cursor::new(numbers.text()).array(|cursor| {
        let number = cursor.value()?;
        let value: f32 = match number.shape() {
            Shape::Number => number.text().parse().map_err(|_| no_vector())?,
            _ => return Err(no_vector()),
        };
        encoder.push(&value.to_le_bytes());
        Ok::<(), UnusableAnswer>(())
    })?;
    Ok(format!("\"{}\"", encoder.finish()).into_bytes())
}

/// Decodes base64 into an array of numbers, each in the shortest notation that parses to the same
/// value.
pub(super) fn to_numbers(text: &str) -> Result<Vec<u8>, UnusableAnswer> {
    let bytes = base64::decode(text).ok_or_else(no_vector)?;
    let (values, []) = bytes.as_chunks::<4>() else {
        return Err(no_vector());
    };
    let mut out = vec![b'['];
    for (index, value) in values.iter().enumerate() {
        let value = f32::from_le_bytes(*value);
        if !value.is_finite() {
            return Err(no_vector());
        }
        if index > 0 {
            out.push(b',');
        }
        // Writing to memory cannot fail.
        let _ = write!(out, "{value}");
    }
    out.push(b']');
    Ok(out)
}

fn no_vector() -> UnusableAnswer {
    UnusableAnswer::malformed("an embedding is no vector")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(text: &str) -> Raw<'_> {
        Cursor::new(text).value().unwrap()
    }

    #[test]
    fn vectors_are_those_that_clients_decode() {
        // The expected bytes are those of Python's `struct.pack("<3f", 0.5, -1, 0.1)`.
        let base64 = to_base64(raw("[0.5, -1, 1e-1]")).unwrap();
        assert_eq!(base64, b"\"AAAAPwAAgL/NzMw9\"");
        assert_eq!(to_numbers("AAAAPwAAgL/NzMw9").unwrap(), b"[0.5,-1,0.1]");
        for text in ["AAA", "AAAAPwA=", "***", "AADAfw=="] {
            assert!(to_numbers(text).is_err(), "{text}");
        }
        assert!(to_base64(raw("[0.5, null]")).is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back_from_base64(values in prop::collection::vec(-1e9_f32..1e9, 1..40)) {
            let json = serde_json::to_string(&values).unwrap();
            let base64 = to_base64(raw(&json)).unwrap();
            let text = std::str::from_utf8(&base64).unwrap().trim_matches('"');
            let back: Vec<f32> = serde_json::from_slice(&to_numbers(text).unwrap()).unwrap();
            prop_assert_eq!(values, back);
        }
    }
}
