//! Finds the ends of strings and numbers, many bytes at a time.

#![expect(
    clippy::inline_always,
    reason = "code has to be a part of the dispatched function to use its instructions"
)]

use fearless_simd::{Level, Simd, SimdBase as _, SimdMask as _, dispatch, u8x16, u8x64};

use super::backslashes::Backslashes;
use super::syntax::{SyntaxError, SyntaxErrorKind};

const BLOCK_BYTES: usize = 64;
/// Bytes that one comparison covers.
const PART_BYTES: usize = 16;
/// Strings without escapes that end within this many bytes are not scanned in blocks.
const SHORT_BYTES: usize = 64;

/// Returns the position of the closing quote, and whether the string has escapes. `start` is the position
/// after the opening quote.
#[inline]
pub(super) fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), SyntaxError> {
    // Most strings are names and short words, which end here.
    let part = bytes.get(start..).and_then(<[u8]>::first_chunk);
    let mut plain = start;
    if let Some(part) = part {
        let marks = special_marks(part);
        plain += (marks.trailing_zeros() as usize).min(PART_BYTES);
        if marks != 0 && bytes.get(plain) == Some(&b'"') {
            return Ok((plain, false));
        }
    }
    long_string_end(bytes, start, plain)
}

/// Like `string_end`, for a string that has no escapes up to `at`. Not inlined, so that short
/// strings do not pay for its stack frame.
#[inline(never)]
fn long_string_end(
    bytes: &[u8],
    start: usize,
    mut at: usize,
) -> Result<(usize, bool), SyntaxError> {
    // Strings of a line or two end here.
    let end = at.saturating_add(SHORT_BYTES).min(bytes.len());
    at += plain_parts(bytes.get(at..end).unwrap_or_default());
    if bytes.get(at) == Some(&b'"') {
        return Ok((at, false));
    }
    match dispatch!(Level::new(), simd => string_blocks(simd, bytes, at))? {
        Blocks::End { at, escaped } => Ok((at, escaped)),
        Blocks::Rest { at, escaped } => last_string_end(bytes, start, at, escaped),
    }
}

/// The result of searching the complete blocks of a text.
enum Blocks {
    /// The closing quote is at `at`.
    End { at: usize, escaped: bool },
    /// The string continues at `at`, with less than a block left.
    Rest { at: usize, escaped: bool },
}

/// Searches for the end of a string in blocks, starting at `at`.
#[inline(always)]
fn string_blocks<S: Simd>(simd: S, bytes: &[u8], mut at: usize) -> Result<Blocks, SyntaxError> {
    let mut escaped = false;
    let mut runs = Backslashes::default();
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let block = u8x64::load_array_ref(simd, block);
        let backslash = block.simd_eq(b'\\');
        // Quotes and control characters: see `special_marks`.
        let stops = (block ^ 0x02).simd_le(0x20);
        if !(stops | backslash).any_true() && !runs.is_open() {
            at += BLOCK_BYTES;
            continue;
        }
        let backslash = backslash.to_bitmask();
        let escaped_here = runs.escaped(backslash);
        let stops = stops.to_bitmask() & !escaped_here;
        let before = stops.wrapping_sub(1) & !stops;
        escaped |= backslash & before != 0;
        if escaped_here != 0 {
            // Most escapes are `\"`, `\\` or `\n`. The others are checked one by one.
            let usual = block.simd_eq(b'"') | block.simd_eq(b'\\') | block.simd_eq(b'n');
            let mut others = escaped_here & before & !usual.to_bitmask();
            while others != 0 {
                let backslash = at + others.trailing_zeros() as usize - 1;
                escape_end(bytes, backslash)?;
                others &= others - 1;
            }
        }
        if stops != 0 {
            let at = at + stops.trailing_zeros() as usize;
            return match bytes.get(at) {
                Some(b'"') => Ok(Blocks::End { at, escaped }),
                _ => Err(error(SyntaxErrorKind::Control, at)),
            };
        }
        at += BLOCK_BYTES;
    }
    // A backslash at the end of the last block escapes the first byte of the rest, so the rest starts with
    // the backslash.
    at -= usize::from(runs.is_open());
    Ok(Blocks::Rest { at, escaped })
}

/// The end of a string in the last bytes of a text, which are less than a block.
fn last_string_end(
    bytes: &[u8],
    start: usize,
    mut at: usize,
    mut escaped: bool,
) -> Result<(usize, bool), SyntaxError> {
    loop {
        at += plain_parts(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'"') => return Ok((at, escaped)),
            Some(b'\\') => {
                at = escape_end(bytes, at)?;
                escaped = true;
            }
            Some(0..=0x1f) => return Err(error(SyntaxErrorKind::Control, at)),
            Some(_) => at += 1,
            None => return Err(error(SyntaxErrorKind::StringEnd, start - 1)),
        }
    }
}

fn error(kind: SyntaxErrorKind, at: usize) -> SyntaxError {
    SyntaxError { kind, at }
}

/// The number of bytes before the first quote, backslash or control character. Bytes after the last
/// complete part are not checked.
#[inline]
fn plain_parts(text: &[u8]) -> usize {
    let (parts, _) = text.as_chunks();
    let mut plain = 0;
    for part in parts {
        let marks = special_marks(part);
        if marks != 0 {
            return plain + marks.trailing_zeros() as usize;
        }
        plain += PART_BYTES;
    }
    plain
}

/// One bit per byte, set for quotes, backslashes and control characters. The lowest bit is the
/// first byte.
#[inline]
fn special_marks(part: &[u8; PART_BYTES]) -> u64 {
    dispatch!(Level::baseline(), simd => {
        let part = u8x16::load_array_ref(simd, part);
        // Flipping bit 0x02 turns a quote into 0x20, next to the control characters, and a space
        // into 0x22.
        let quote_or_control = (part ^ 0x02).simd_le(0x20);
        (quote_or_control | part.simd_eq(b'\\')).to_bitmask()
    })
}

/// The number of leading bytes that a JSON string can contain unescaped. Bytes that may start a
/// character that needs an escape end the run too.
pub(super) fn plain_length(text: &[u8]) -> usize {
    let (parts, last) = text.as_chunks();
    for (part, number) in parts.iter().zip(0..) {
        let marks = escape_marks(part);
        if marks != 0 {
            return number * PART_BYTES + marks.trailing_zeros() as usize;
        }
    }
    let mut part = [b' '; PART_BYTES];
    if let Some(room) = part.get_mut(..last.len()) {
        room.copy_from_slice(last);
    }
    let plain = escape_marks(&part).trailing_zeros() as usize;
    text.len() - last.len() + plain.min(last.len())
}

fn escape_marks(part: &[u8; PART_BYTES]) -> u64 {
    let odd = dispatch!(Level::baseline(), simd => {
        let part = u8x16::load_array_ref(simd, part);
        let odd = part.simd_eq(0x7f) | part.simd_eq(0xc2) | part.simd_eq(0xe2);
        odd.to_bitmask()
    });
    special_marks(part) | odd
}

fn escape_end(bytes: &[u8], backslash: usize) -> Result<usize, SyntaxError> {
    let after = bytes.get(backslash + 1..).unwrap_or_default();
    let length = match after {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(1),
        [b'u', hex @ ..] => hex
            .get(..4)
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            .map(|_| 5),
        _ => None,
    };
    let length = length.ok_or(error(SyntaxErrorKind::Escape, backslash))?;
    Ok(backslash + 1 + length)
}

/// The length of the number at the start of `text`.
pub(super) fn number_length(text: &[u8]) -> Option<usize> {
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(text, at);
    // A number other than 0 cannot start with a zero.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The end of a string, found byte by byte.
    fn slow_string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), SyntaxError> {
        let (mut at, mut escaped) = (start, false);
        loop {
            match bytes.get(at) {
                Some(b'"') => return Ok((at, escaped)),
                Some(b'\\') => {
                    at = escape_end(bytes, at)?;
                    escaped = true;
                }
                Some(0..=0x1f) => return Err(error(SyntaxErrorKind::Control, at)),
                Some(_) => at += 1,
                None => return Err(error(SyntaxErrorKind::StringEnd, start - 1)),
            }
        }
    }

    proptest! {
        #[test]
        fn a_string_ends_alike_in_blocks_and_byte_by_byte(
            text in "[ a]{0,200}([ a]{0,9}|(\\\\\\\\){0,40}|\\\\[\"/nu\u{1}]|[\"\u{1}\\\\]|\\\\u00e9|é){0,12}\"?[ \\\\]{0,70}",
        ) {
            let bytes = text.as_bytes();
            let slow = slow_string_end(bytes, 1);
            prop_assert_eq!(string_end(bytes, 1), slow);
            prop_assert_eq!(long_string_end(bytes, 1, 1), slow);
            prop_assert_eq!(last_string_end(bytes, 1, 1, false), slow);
        }
    }
}
