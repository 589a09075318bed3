//! Words that texts are searched for, call after call.

use std::sync::OnceLock;

use memchr::memmem::Finder;

/// A word to search for. What the search needs is made once: that costs more than most searches.
#[derive(Debug)]
pub(crate) struct Needle {
    text: &'static str,
    finder: OnceLock<Finder<'static>>,
}

impl Needle {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self {
            text,
            finder: OnceLock::new(),
        }
    }

    /// Whether it stands anywhere in these bytes.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        let finder = self.finder.get_or_init(|| Finder::new(self.text));
        finder.find(bytes).is_some()
    }
}
