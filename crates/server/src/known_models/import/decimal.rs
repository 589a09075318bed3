//! Converts JSON numbers to exact decimal text.

use ledger::Price;

/// Multiplies a JSON number by 10 to the power of `shift` and returns it as the text of a price. No float is involved.
pub(super) fn price(number: &str, shift: i32) -> Result<String, String> {
    let text = plain(number, shift).ok_or_else(|| format!("{number} is no decimal number"))?;
    match text.parse::<Price>() {
        Ok(price) => Ok(price.to_string()),
        Err(fault) => Err(format!("{number} {fault}")),
    }
}

/// The shifted number without an exponent.
fn plain(number: &str, shift: i32) -> Option<String> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The position of the decimal point, counted from the first digit.
    let exponent = exponent.checked_add(shift).filter(|it| it.abs() <= 64)?;
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let length = i32::try_from(digits.len()).ok()?;
    let padded = format!("{}{digits}{}", zeros(1 - point), zeros(point - length));
    let (whole, fraction) = padded.split_at(usize::try_from(point.max(1)).ok()?);
    let fraction = fraction.trim_end_matches('0');
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_moved_exactly() {
        for (number, shift, expected) in [
            ("1.25e-06", 6, "1.25"),
            ("1.25E-6", 6, "1.25"),
            ("0.00000015", 6, "0.15"),
            ("3e-7", 6, "0.3"),
            ("5e-08", 6, "0.05"),
            ("2", 0, "2"),
            ("0.075", 0, "0.075"),
            ("0", 6, "0"),
            ("0.0", 0, "0"),
            ("9", 6, "9000000"),
            ("1.0000000000001e-3", 6, "1000.0000000001"),
        ] {
            let parsed = price(number, shift);
            assert_eq!(parsed.as_deref(), Ok(expected), "{number}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for number in [
            "",
            "-1",
            "x",
            "\"1\"",
            "null",
            "1e",
            "1e99",
            "0.0000000000001",
            "{}",
        ] {
            assert!(price(number, 0).is_err(), "{number}");
        }
    }
}
