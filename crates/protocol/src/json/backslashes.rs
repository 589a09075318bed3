//! Finds the escaped bytes of a JSON string, a block of sixty-four bytes at a time.

/// Tells which bytes are escaped, block by block, without a look at any of them.
#[derive(Default)]
pub(crate) struct Backslashes {
    /// 1 when the last block ended in a backslash that escapes what follows.
    open: u64,
}

impl Backslashes {
    /// One bit for each byte that a backslash before it escapes. A run of backslashes escapes
    /// every other one of them: added to the bits of a run, its first bit carries to the one behind it,
    /// which tells by its place whether the run was odd.
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

    pub(super) fn is_open(&self) -> bool {
        self.open != 0
    }
}
