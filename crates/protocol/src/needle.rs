//! Searches many texts for the same string.

use std::sync::OnceLock;

use memchr::memmem::Finder;

/// A string to search for. The search is prepared once, because preparing costs more than most
/// searches.
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

    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        let finder = self.finder.get_or_init(|| Finder::new(self.text));
        finder.find(bytes).is_some()
    }
}
