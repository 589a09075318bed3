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

const BLOCK_BYTES: usize = 64;

/// Spaces and lower-case letters are counted together, so they must cost the same.
const _: () = assert!(cost::SPACE == cost::LOWER);

/// A sign costs as much as the start of a word, so they are counted together too.
const _: () = assert!(cost::SIGN == cost::WORD);

/// The ASCII bytes at the start of a text.
#[derive(Debug)]
pub(super) struct Run {
    /// The end of these bytes.
    pub(super) end: usize,
    /// Whether the last of these bytes belongs to a word.
    pub(super) in_word: bool,
    /// The cost of these bytes, in parts of a token.
    pub(super) parts: u64,
}

/// Counts the bytes up to the first one outside ASCII.
///
/// With `ESCAPES` the text is the inside of a JSON string: a backslash costs nothing, and the byte
/// after it counts as punctuation. An escape with four digits ends the run, because it can
/// encode any character.
#[inline(always)]
pub(super) fn count<S: Simd, const ESCAPES: bool>(simd: S, text: &[u8], in_word: bool) -> Run {
    let mut counts = Counts::<ESCAPES>::after(in_word);
    let (blocks, rest) = text.as_chunks();
    for (place, block) in blocks.iter().enumerate() {
        if let Some(stop) = counts.add(simd, block, BLOCK_BYTES) {
            return counts.run_to(place * BLOCK_BYTES + stop);
        }
    }
    let mut padded = [0; BLOCK_BYTES];
    if let Some(room) = padded.get_mut(..rest.len()) {
        room.copy_from_slice(rest);
    }
    let stop = counts.add(simd, &padded, rest.len());
    counts.run_to(text.len() - rest.len() + stop.unwrap_or(rest.len()))
}

struct Counts<const ESCAPES: bool> {
    parts: u64,
    backslashes: Backslashes,
    /// The letters of the previous block. The highest bit stands for the byte before the text.
    letters_before: u64,
    /// Whether the last byte of the run belongs to a word. Known when the run has ended.
    in_word: bool,
    /// Whether the run ends at an escape. The backslash is then not part of the run either.
    ends_at_escape: bool,
}

impl<const ESCAPES: bool> Counts<ESCAPES> {
    #[inline(always)]
    fn after(in_word: bool) -> Self {
        Self {
            parts: 0,
            backslashes: Backslashes::default(),
            letters_before: u64::from(in_word) << (BLOCK_BYTES - 1),
            in_word,
            ends_at_escape: false,
        }
    }

    /// Adds the first `length` bytes of a block. Returns where the run stops, if it does so in this
    /// block.
    ///
    /// Masks have one bit per byte. The lowest bit is the first byte.
    #[inline(always)]
    fn add<S: Simd>(&mut self, simd: S, block: &[u8; BLOCK_BYTES], length: usize) -> Option<usize> {
        let block = u8x64::load_array_ref(simd, block);
        let mut stops = block.simd_ge(0x80).to_bitmask() | above(length);
        let mut backslash = 0;
        let mut escaped = 0;
        if ESCAPES {
            backslash = block.simd_eq(b'\\').to_bitmask();
            escaped = self.backslashes.escaped(backslash);
            backslash &= !escaped;
            if escaped != 0 {
                stops |= block.simd_eq(b'u').to_bitmask() & escaped;
            }
        }
        let letters = ((block | 0x20) - b'a').simd_lt(26).to_bitmask() & !escaped;
        let starts = letters & !(letters << 1 | self.letters_before >> (BLOCK_BYTES - 1));
        let mut letters_and_spaces = letters | block.simd_eq(b' ').to_bitmask();
        let mut upper = letters & !block.simd_ge(b'a').to_bitmask();
        let mut starts_and_signs = starts | !(letters_and_spaces | backslash);
        if stops != 0 {
            let inside = !above(stops.trailing_zeros() as usize);
            letters_and_spaces &= inside;
            upper &= inside;
            starts_and_signs &= inside;
        }
        // One sum: the compiler would count the bits of separate sums with slower vector instructions.
        self.parts += ones(letters_and_spaces) * u64::from(cost::LOWER)
            + ones(upper) * u64::from(cost::UPPER - cost::LOWER)
            + ones(starts_and_signs) * u64::from(cost::WORD);
        if stops == 0 {
            self.letters_before = letters;
            return None;
        }
        let stop = stops.trailing_zeros() as usize;
        self.ends_at_escape = escaped >> stop & 1 == 1;
        let letters = u128::from(letters) << BLOCK_BYTES | u128::from(self.letters_before);
        let last = BLOCK_BYTES - 1 + stop - usize::from(self.ends_at_escape);
        self.in_word = letters >> last & 1 == 1;
        Some(stop)
    }

    #[inline(always)]
    fn run_to(self, stop: usize) -> Run {
        Run {
            end: stop - usize::from(self.ends_at_escape),
            in_word: self.in_word,
            parts: self.parts,
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
