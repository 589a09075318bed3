//! Counts ASCII text in blocks of 64 bytes.
//!
//! Each block is turned into bit masks, one for each class of bytes. Words and escapes are found by
//! shifts, and classes are counted by population count. [`PlainBlocks`] counts blocks of ASCII without
//! escapes, which are the most common. It needs a bit mask only for letters and keeps the other counts in
//! vector registers.

#![expect(
    clippy::inline_always,
    reason = "code has to be a part of the dispatched function to use its instructions"
)]

use fearless_simd::{Simd, SimdBase as _, SimdMask as _, i8x64, u8x64};

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
    let mut plain = PlainBlocks::new(simd);
    let (blocks, rest) = text.as_chunks();
    for (place, block) in blocks.iter().enumerate() {
        let bytes = u8x64::load_array_ref(simd, block);
        let mut unusual = bytes.simd_ge(0x80);
        if ESCAPES {
            unusual |= bytes.simd_eq(b'\\');
        }
        if !unusual.any_true() && !counts.backslashes.is_open() {
            plain.add(bytes, &mut counts.letters_before);
            if plain.is_full() {
                counts.parts += plain.take_parts(simd);
            }
        } else if let Some(stop) = counts.add(simd, block, BLOCK_BYTES) {
            counts.parts += plain.take_parts(simd);
            return counts.run_to(place * BLOCK_BYTES + stop);
        }
    }
    counts.parts += plain.take_parts(simd);
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
    /// The letters of the previous block. In the first block, the highest bit stands for the byte
    /// before the text.
    letters_before: u64,
    /// Whether the last byte of the run belongs to a word. Set when the run ends.
    in_word: bool,
    /// Whether the run ends at an escape. The backslash is then not a part of the run.
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

    /// Adds the first `length` bytes of a block. Returns where the run stops if it stops in this block.
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
        let starts = word_starts(letters, self.letters_before);
        let mut letters_and_spaces = letters | block.simd_eq(b' ').to_bitmask();
        let mut upper = letters & !block.simd_ge(b'a').to_bitmask();
        let mut starts_and_signs = starts | !(letters_and_spaces | backslash);
        if stops != 0 {
            let inside = !above(stops.trailing_zeros() as usize);
            letters_and_spaces &= inside;
            upper &= inside;
            starts_and_signs &= inside;
        }
        // The code uses one sum, because the compiler would count separate sums with slower vector
        // instructions.
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

/// Counts blocks of ASCII text that contain no escape.
struct PlainBlocks<S: Simd> {
    /// For each position in a block, the number of blocks with a letter or a space there.
    letters_and_spaces: i8x64<S>,
    upper: i8x64<S>,
    starts: u64,
    blocks: u8,
}

impl<S: Simd> PlainBlocks<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        Self {
            letters_and_spaces: i8x64::splat(simd, 0),
            upper: i8x64::splat(simd, 0),
            starts: 0,
            blocks: 0,
        }
    }

    /// Adds a block. `letters_before` are the letters of the block before it.
    #[inline(always)]
    fn add(&mut self, block: u8x64<S>, letters_before: &mut u64) {
        let folded = block | 0x20;
        let letters = (folded - b'a').simd_lt(26);
        let upper = letters & !folded.simd_eq(block);
        // Each lane of a mask is 0 or -1.
        self.letters_and_spaces -= (letters | block.simd_eq(b' ')).to_vector();
        self.upper -= upper.to_vector();
        let letters = letters.to_bitmask();
        self.starts += ones(word_starts(letters, *letters_before));
        self.blocks += 1;
        *letters_before = letters;
    }

    /// Whether another block could overflow a counter.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.blocks == u8::MAX
    }

    /// The cost of the added blocks, in parts of a token. Resets the counters.
    #[inline(always)]
    fn take_parts(&mut self, simd: S) -> u64 {
        if self.blocks == 0 {
            return 0;
        }
        let Self {
            letters_and_spaces,
            upper,
            starts,
            blocks,
        } = std::mem::replace(self, Self::new(simd));
        let letters_and_spaces = sum(letters_and_spaces);
        let signs = u64::from(blocks) * BLOCK_BYTES as u64 - letters_and_spaces;
        letters_and_spaces * u64::from(cost::LOWER)
            + sum(upper) * u64::from(cost::UPPER - cost::LOWER)
            + (starts + signs) * u64::from(cost::WORD)
    }
}

/// The sum of the counters. They are unsigned bytes, although the lanes are signed.
#[inline(always)]
fn sum<S: Simd>(counters: i8x64<S>) -> u64 {
    let counters: [i8; BLOCK_BYTES] = counters.into();
    counters
        .map(|it| u64::from(it.cast_unsigned()))
        .iter()
        .sum()
}

#[inline(always)]
fn word_starts(letters: u64, letters_before: u64) -> u64 {
    letters & !(letters << 1 | letters_before >> (BLOCK_BYTES - 1))
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
