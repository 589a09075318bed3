//! Where a part of a request stands, in the caller's spelling.

use std::fmt;

/// A place such as `messages[2].content[0]`. Cheap to carry: it is spelt only when it is told.
///
/// The default is nowhere: what stands there is of our own making, and is dropped untold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Path {
    list: &'static str,
    index: usize,
    inner: Option<(&'static str, usize)>,
}

impl Path {
    /// An item of a top-level list: `messages[2]`.
    pub const fn item(list: &'static str, index: usize) -> Self {
        Self {
            list,
            index,
            inner: None,
        }
    }

    /// Whether the caller did not write what stands here.
    pub const fn is_nowhere(self) -> bool {
        self.list.is_empty()
    }

    /// An item of a list inside this item: `messages[2].content[0]`.
    #[must_use]
    pub const fn inner(self, list: &'static str, index: usize) -> Self {
        Self {
            inner: Some((list, index)),
            ..self
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.list, self.index)?;
        match self.inner {
            Some((list, index)) => write!(f, ".{list}[{index}]"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_spelt_as_callers_would() {
        assert_eq!(Path::item("messages", 2).to_string(), "messages[2]");
        let inner = Path::item("messages", 2).inner("content", 0);
        assert_eq!(inner.to_string(), "messages[2].content[0]");
    }
}
