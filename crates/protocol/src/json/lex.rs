//! The bytes of strings and numbers, looked at as many at a time as can be.

/// Bytes of a string that are looked at one word at a time, before the search for long runs.
const SHORT_WORDS: usize = 8;

/// The first quote, backslash or control character at or behind `at`.
pub(super) fn special(bytes: &[u8], mut at: usize) -> usize {
    let mut rest = bytes.get(at..).unwrap_or_default();
    for _ in 0..SHORT_WORDS {
        let Some((word, after)) = rest.split_first_chunk::<8>() else {
            let found = rest.iter().position(|byte| is_special(*byte));
            return at + found.unwrap_or(rest.len());
        };
        let marks = special_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
        rest = after;
    }
    let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let run = rest.get(..length).unwrap_or_default();
    // Without an early exit this loop becomes a few vector instructions.
    let controls = run
        .iter()
        .fold(0, |found, byte| found | u8::from(*byte < 0x20));
    if controls != 0 {
        let found = run.iter().position(|byte| *byte < 0x20);
        return at + found.unwrap_or(length);
    }
    at + length
}

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// Sets the high bit of each byte that is special. Bytes above the lowest set bit may be marked
/// wrongly by borrows; the lowest never is.
fn special_marks(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

/// How many bytes behind a backslash belong to the escape.
pub(super) fn escape_length(after: &[u8]) -> Option<usize> {
    match after.first()? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(1),
        b'u' => after
            .get(1..5)?
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then_some(5),
        _ => None,
    }
}

/// The length of the number that `text` begins with.
pub(super) fn number_length(text: &[u8]) -> Option<usize> {
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(text, at);
    // A leading zero stands alone.
    if whole == 0 || (whole > 1 && text.get(at) == Some(&b'0')) {
        return None;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(text, at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        let exponent = digits(text, at);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    Some(at)
}

fn digits(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(rest.len())
}
