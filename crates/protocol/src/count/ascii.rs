//! Counts ASCII text in blocks of 64 bytes.
//!
//! Each block is turned into bit masks, one for each class of bytes. Words and escapes are found by
//! shifts, and classes are counted by population count.

#![expect(
    clippy::inline_always,
    reason = "code has to be a part of the dispatched function to use its instructions"
)]

use fearless_simd::{Simd, SimdBase as _, SimdMask as _, u8x64};

use super::text::cost;
use crate::json::Backslashes;

/// The number of bytes in a block.
const BLOCK_BYTES: usize = 64;

/// Spaces and lower-case letters are counted together, so they must cost the same.
const _: () = assert!(cost::SPACE == cost::LOWER);

/// The ASCII bytes at the start of a text, counted by class.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The end of these bytes.
    pub(super) end: usize,
    /// Whether the last of these bytes belongs to a word.
    pub(super) in_word: bool,
    letters_and_spaces: u64,
    upper: u64,
    /// Letters at the start of a word.
    starts: u64,
    /// All other bytes, except the backslashes of escapes.
    signs: u64,
}

impl Run {
    /// The cost of the bytes, in parts of a token.
    pub(super) fn parts(&self) -> u64 {
        self.letters_and_spaces * u64::from(cost::LOWER)
            + self.upper * u64::from(cost::UPPER - cost::LOWER)
            + self.starts * u64::from(cost::WORD)
            + self.signs * u64::from(cost::SIGN)
    }
}

/// Counts the bytes up to the first one outside ASCII.
///
/// With `ESCAPES` the text is the inside of a JSON string: a backslash costs nothing, and the byte
/// after it counts as punctuation. An escape with four digits ends the run, because it can
/// encode any character.
#[inline(always)]
pub(super) fn count<S: Simd, const ESCAPES: bool>(simd: S, text: &[u8], in_word: bool) -> Run {
    let mut run = Run::default();
    let mut backslashes = Backslashes::default();
    // The letters of the previous block. The highest bit stands for the byte before the text.
    let mut letters_before = u64::from(in_word) << (BLOCK_BYTES - 1);
    let mut rest = text;
    let mut padded = [0; BLOCK_BYTES];
    loop {
        let (block, length) = if let Some((block, _)) = rest.split_first_chunk() {
            (block, BLOCK_BYTES)
        } else {
            if let Some(room) = padded.get_mut(..rest.len()) {
                room.copy_from_slice(rest);
            }
            (&padded, rest.len())
        };
        let classes = Classes::of(simd, block);
        let mut stops = classes.outside | above(length);
        let mut backslash = 0;
        let mut escaped = 0;
        if ESCAPES {
            escaped = backslashes.escaped(classes.backslash);
            backslash = classes.backslash & !escaped;
            stops |= classes.u & escaped;
        }
        let inside = !above(stops.trailing_zeros() as usize);
        let letters = classes.letters & !escaped;
        let letters_and_spaces = (letters | classes.space) & inside;
        run.letters_and_spaces += ones(letters_and_spaces);
        run.upper += ones(letters & !classes.lower & inside);
        run.starts +=
            ones(letters & !(letters << 1 | letters_before >> (BLOCK_BYTES - 1)) & inside);
        run.signs += ones(inside & !letters_and_spaces & !backslash);
        if stops == 0 {
            letters_before = letters;
            rest = rest.get(BLOCK_BYTES..).unwrap_or_default();
            continue;
        }
        // If the run ends at an escape, its backslash is not part of the run either.
        let stop = stops.trailing_zeros() as usize;
        let cut = usize::from(escaped >> stop & 1 == 1);
        let letters = u128::from(letters) << BLOCK_BYTES | u128::from(letters_before);
        run.in_word = letters >> (BLOCK_BYTES - 1 + stop - cut) & 1 == 1;
        run.end = text.len() - rest.len() + stop - cut;
        return run;
    }
}

/// The classes in a block, one bit per byte. The lowest bit is the first byte.
struct Classes {
    /// Bytes outside ASCII.
    outside: u64,
    letters: u64,
    /// Lower-case letters and some signs.
    lower: u64,
    space: u64,
    backslash: u64,
    u: u64,
}

impl Classes {
    #[inline(always)]
    fn of<S: Simd>(simd: S, block: &[u8; BLOCK_BYTES]) -> Self {
        let block = u8x64::load_array_ref(simd, block);
        let place = (block | 0x20) - b'a';
        Self {
            outside: block.simd_ge(0x80).to_bitmask(),
            letters: place.simd_lt(26).to_bitmask(),
            lower: block.simd_ge(b'a').to_bitmask(),
            space: block.simd_eq(b' ').to_bitmask(),
            backslash: block.simd_eq(b'\\').to_bitmask(),
            u: block.simd_eq(b'u').to_bitmask(),
        }
    }
}

/// A mask of the bits from `place` upward.
#[inline(always)]
fn above(place: usize) -> u64 {
    if place < BLOCK_BYTES {
        u64::MAX << place
    } else {
        0
    }
}

#[inline(always)]
fn ones(bits: u64) -> u64 {
    u64::from(bits.count_ones())
}
