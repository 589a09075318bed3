//! Finds the escaped bytes of a JSON string in blocks of 64 bytes.

/// Finds escaped bytes block by block, without a loop over the bytes.
#[derive(Default)]
pub(crate) struct Backslashes {
    /// 1 if the last block ended with a backslash that escapes the next byte.
    open: u64,
}

impl Backslashes {
    /// One bit for each byte that is escaped by a backslash before it. In a run of backslashes, every second
    /// one is escaped. Adding the first bit of a run to the run carries into the bit after it. The position
    /// of that bit shows whether the length of the run is odd.
    #[inline(always)]
    pub(crate) fn escaped(&mut self, backslash: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        if backslash == 0 {
            return std::mem::take(&mut self.open);
        }
        let escaping = backslash & !self.open;
        let behind = escaping << 1 | self.open;
        let odd_starts = escaping & !EVEN & !behind;
        let (carried, beyond) = odd_starts.overflowing_add(escaping);
        self.open = u64::from(beyond);
        (EVEN ^ (carried << 1)) & behind
    }

    /// Whether the last block ended with a backslash that escapes the next byte.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open != 0
    }
}
