//! The bytes of strings and numbers, looked at as many at a time as can be.

use wide::u8x16;

use super::syntax::{SyntaxError, What};

/// Bytes that are looked at together.
const BLOCK_BYTES: usize = 32;
const HALF_BYTES: usize = BLOCK_BYTES / 2;

/// Where the string that begins at `start`, behind its quote, has its closing one, and whether it
/// has escapes.
#[inline]
pub(super) fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), SyntaxError> {
    // Most strings are names and short words, which end here.
    let half = bytes.get(start..).and_then(<[u8]>::first_chunk);
    let marks = half.map_or(0, special_marks_of_half);
    if marks != 0 {
        let special = start + marks.trailing_zeros() as usize;
        if bytes.get(special) == Some(&b'"') {
            return Ok((special, false));
        }
    }
    long_string_end(bytes, start)
}

fn long_string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), SyntaxError> {
    let error = |what, at| SyntaxError { what, at };
    let mut escaped = false;
    // Everything before this has been read.
    let mut at = start;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let mut marks = match rest.first_chunk() {
            Some(block) => special_marks(block),
            None => special_marks_of_last(rest),
        };
        let mut read = at;
        while marks != 0 {
            let special = at + marks.trailing_zeros() as usize;
            marks &= marks - 1;
            // The character that a backslash escapes.
            if special < read {
                continue;
            }
            match bytes.get(special) {
                Some(b'"') => return Ok((special, escaped)),
                Some(b'\\') => {
                    let after = bytes.get(special + 1..).unwrap_or_default();
                    let length = escape_length(after).ok_or(error(What::Escape, special))?;
                    read = special + 1 + length;
                    escaped = true;
                }
                _ => return Err(error(What::Control, special)),
            }
        }
        if rest.len() < BLOCK_BYTES {
            return Err(error(What::StringEnd, start - 1));
        }
        at = read.max(at + BLOCK_BYTES);
    }
}

/// One bit for each byte, the first byte's the lowest: set for quotes, backslashes and control
/// characters.
fn special_marks(block: &[u8; BLOCK_BYTES]) -> u32 {
    let [low, high] = [0, HALF_BYTES].map(|from| {
        let half = block.get(from..).and_then(<[u8]>::first_chunk);
        half.map_or(0, special_marks_of_half)
    });
    low | high << HALF_BYTES
}

#[inline]
fn special_marks_of_half(half: &[u8; HALF_BYTES]) -> u32 {
    let half = u8x16::new(*half);
    // A quote is 0x22: with that bit turned over it stands beside the control characters.
    let turned = half ^ u8x16::splat(0x02);
    let quote_or_control = turned.min(u8x16::splat(0x20)).simd_eq(turned);
    let backslash = half.simd_eq(u8x16::splat(b'\\'));
    (quote_or_control | backslash).to_bitmask()
}

/// The same for the last bytes of a text, which fill no block.
fn special_marks_of_last(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |marks, byte| {
        let is_special = matches!(byte, b'"' | b'\\' | 0..=0x1f);
        marks << 1 | u32::from(is_special)
    })
}

/// How many bytes `text` begins with that stand in a JSON string as they are. Those that begin
/// characters to escape and others alike end them too.
pub(super) fn plain_length(text: &[u8]) -> usize {
    let (halves, last) = text.as_chunks();
    for (half, number) in halves.iter().zip(0..) {
        let marks = odd_marks_of_half(half);
        if marks != 0 {
            return number * HALF_BYTES + marks.trailing_zeros() as usize;
        }
    }
    let plain = last.iter().position(|byte| !is_plain(*byte));
    text.len() - last.len() + plain.unwrap_or(last.len())
}

fn odd_marks_of_half(half: &[u8; HALF_BYTES]) -> u32 {
    let special = special_marks_of_half(half);
    let half = u8x16::new(*half);
    let odd = [0x7f, 0xc2, 0xe2].map(|byte| half.simd_eq(u8x16::splat(byte)));
    special | (odd[0] | odd[1] | odd[2]).to_bitmask()
}

/// Whether a byte is surely not the first of a character to escape.
const fn is_plain(byte: u8) -> bool {
    !matches!(byte, 0..=0x1f | b'"' | b'\\' | 0x7f | 0xc2 | 0xe2)
}

/// How many bytes behind a backslash belong to the escape.
#[inline]
fn escape_length(after: &[u8]) -> Option<usize> {
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
