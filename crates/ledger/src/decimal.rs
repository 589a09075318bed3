//! Parses and formats exact decimal numbers as integer multiples of a power of ten, without floats.

use std::fmt;

/// The reason why a text is not a valid decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is not a number: an optional minus sign, then digits with at most one point between them.
    #[error("is not a decimal number such as \"1.25\"")]
    Malformed,
    /// The number has more digits after the point than the unit. It is not rounded.
    #[error("has more than {0} digits after the point")]
    TooFine(usize),
    /// The number does not fit the type.
    #[error("is too large")]
    TooLarge,
}

/// Parses `text` as a multiple of 10^-`scale`, exactly.
pub(crate) fn parse(text: &str, scale: usize) -> Result<i64, DecimalError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let pointless = digits.len() == whole.len();
    if whole.is_empty() || (fraction.is_empty() && !pointless) {
        return Err(DecimalError::Malformed);
    }
    if !whole
        .bytes()
        .chain(fraction.bytes())
        .all(|byte| byte.is_ascii_digit())
    {
        return Err(DecimalError::Malformed);
    }
    if fraction.len() > scale {
        return Err(DecimalError::TooFine(scale));
    }
    let padding = std::iter::repeat_n(b'0', scale - fraction.len());
    let mut value: i128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()).chain(padding) {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(i128::from(byte - b'0')))
            .ok_or(DecimalError::TooLarge)?;
    }
    let value = if negative { -value } else { value };
    i64::try_from(value).map_err(|_| DecimalError::TooLarge)
}

/// Formats a multiple of 10^-`scale` without trailing zeros.
pub(crate) fn show(value: i64, scale: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let unit = 10_u64.pow(scale);
    let (whole, mut fraction) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
    if value < 0 {
        f.write_str("-")?;
    }
    write!(f, "{whole}")?;
    if fraction == 0 {
        return Ok(());
    }
    let mut width = scale as usize;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        width -= 1;
    }
    write!(f, ".{fraction:0width$}")
}
