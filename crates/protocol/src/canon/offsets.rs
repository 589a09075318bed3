//! Offsets into a text that comes in pieces: some dialects count characters, others bytes.

/// Texts above this size are not kept; sources in them are not told.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The text of a block so far.
#[derive(Debug, Default)]
pub struct Offsets {
    text: String,
    whole: bool,
}

impl Offsets {
    /// A text that begins now.
    pub fn new() -> Self {
        Self {
            text: String::new(),
            whole: true,
        }
    }

    /// Adds a piece.
    pub fn push(&mut self, piece: &str) {
        self.whole &= self.text.len().saturating_add(piece.len()) <= TEXT_BYTES_MAX;
        if self.whole {
            self.text.push_str(piece);
        }
    }

    /// How many characters stand before this byte; nothing if it lies outside of the text.
    pub fn characters(&self, byte: u64) -> Option<u64> {
        let byte = usize::try_from(byte).ok()?;
        let before = self.text.get(..byte).filter(|_| self.whole)?;
        u64::try_from(before.chars().count()).ok()
    }

    /// How many bytes stand before this character; nothing if it lies outside of the text.
    pub fn bytes(&self, character: u64) -> Option<u64> {
        let character = usize::try_from(character).ok()?;
        let mut places = self.text.char_indices().map(|(byte, _)| byte);
        let end = std::iter::once(self.text.len()).filter(|_| self.whole);
        let byte = places.by_ref().chain(end).nth(character)?;
        u64::try_from(byte).ok().filter(|_| self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_are_told_apart() {
        let mut offsets = Offsets::new();
        offsets.push("a\u{e9}");
        offsets.push("\u{1f600}b");
        for (byte, character) in [(0, 0), (1, 1), (3, 2), (7, 3), (8, 4)] {
            assert_eq!(offsets.characters(byte), Some(character));
            assert_eq!(offsets.bytes(character), Some(byte));
        }
        // Inside a character, and behind the end.
        assert_eq!(offsets.characters(2), None);
        assert_eq!(offsets.characters(9), None);
        assert_eq!(offsets.bytes(5), None);
    }

    #[test]
    fn long_texts_are_not_kept() {
        let mut offsets = Offsets::new();
        for _ in 0..3 {
            offsets.push(&"x".repeat(TEXT_BYTES_MAX / 2));
        }
        assert_eq!(offsets.characters(1), None);
        assert_eq!(offsets.bytes(1), None);
        assert!(offsets.text.len() <= TEXT_BYTES_MAX);
    }
}
