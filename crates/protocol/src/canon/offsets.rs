//! Converts between character offsets and byte offsets in a text that arrives in pieces. Some dialects count
//! characters, others bytes.

/// Longer texts are not kept, because an open stream must use little memory. Citations of longer texts are
/// dropped, unless every character is one byte.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Converts offsets in the text of one block.
#[derive(Debug, Default)]
pub(crate) struct OffsetConverter {
    bytes: usize,
    /// Whether a character has more than one byte.
    wide: bool,
    /// The text, unless it is too long.
    text: String,
}

impl OffsetConverter {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, piece: &str) {
        self.bytes = self.bytes.saturating_add(piece.len());
        self.wide |= !piece.is_ascii();
        if self.bytes <= TEXT_BYTES_MAX {
            self.text.push_str(piece);
        }
    }

    /// The number of characters before this byte. `None` if the byte is outside the text or inside a
    /// character, or if the text that the conversion needs was not kept.
    pub(crate) fn characters(&self, byte: u64) -> Option<u64> {
        let at = usize::try_from(byte).ok().filter(|at| *at <= self.bytes)?;
        if !self.wide {
            return Some(byte);
        }
        let before = self.text.get(..at).filter(|_| self.is_kept())?;
        u64::try_from(before.chars().count()).ok()
    }

    /// The number of bytes before this character. `None` if the character is outside the text, or if
    /// the text that the conversion needs was not kept.
    pub(crate) fn bytes(&self, character: u64) -> Option<u64> {
        let at = usize::try_from(character).ok()?;
        if !self.wide {
            return (at <= self.bytes).then_some(character);
        }
        let places = self.text.char_indices().map(|(byte, _)| byte);
        let byte = places.chain([self.text.len()]).nth(at);
        u64::try_from(byte.filter(|_| self.is_kept())?).ok()
    }

    fn is_kept(&self) -> bool {
        self.text.len() == self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_are_converted() {
        let mut offsets = OffsetConverter::new();
        offsets.push("a\u{e9}");
        offsets.push("\u{1f600}b");
        for (byte, character) in [(0, 0), (1, 1), (3, 2), (7, 3), (8, 4)] {
            assert_eq!(offsets.characters(byte), Some(character));
            assert_eq!(offsets.bytes(character), Some(byte));
        }
        // Inside a character, and after the end.
        assert_eq!(offsets.characters(2), None);
        assert_eq!(offsets.characters(9), None);
        assert_eq!(offsets.bytes(5), None);
    }

    #[test]
    fn long_texts_are_not_kept() {
        let mut offsets = OffsetConverter::new();
        for _ in 0..3 {
            offsets.push(&"x".repeat(TEXT_BYTES_MAX / 2));
        }
        let end = u64::try_from(TEXT_BYTES_MAX / 2 * 3).unwrap();
        assert_eq!(offsets.characters(end), Some(end));
        assert_eq!(offsets.bytes(end), Some(end));
        assert_eq!(offsets.bytes(end + 1), None);
        offsets.push("\u{e9}");
        assert_eq!(offsets.characters(1), None);
        assert_eq!(offsets.bytes(1), None);
        assert!(offsets.text.len() <= TEXT_BYTES_MAX);
    }
}
