//! The position of a part in the client's request.

use std::fmt;

/// A path such as `messages[2].content[0]`. It is cheap to copy and formatted only when it is
/// reported.
///
/// The default path points nowhere. It marks parts that the gateway made. Dropping them is not reported.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Path {
    /// The names of the lists, the outer one first. Empty for unused levels.
    lists: [&'static str; 2],
    /// The index in each list, and in the list inside a tool result.
    indexes: [u32; 3],
    in_result: bool,
}

impl Path {
    /// The first item of a top-level list, or the value that the client sent instead of the list.
    pub const fn first(list: &'static str) -> Self {
        Self {
            lists: [list, ""],
            indexes: [0; 3],
            in_result: false,
        }
    }

    /// An item of a top-level list: `messages[2]`.
    pub fn item(list: &'static str, index: usize) -> Self {
        Self {
            indexes: [short(index), 0, 0],
            ..Self::first(list)
        }
    }

    /// Whether the gateway made the part at this path.
    pub(crate) const fn is_nowhere(self) -> bool {
        let [list, _] = self.lists;
        list.is_empty()
    }

    /// The index in the top-level list.
    pub const fn index(self) -> u32 {
        let [index, ..] = self.indexes;
        index
    }

    /// Whether this is an item of this top-level list.
    pub fn is_in(self, list: &str) -> bool {
        self.lists[0] == list
    }

    /// An item of a list inside this item: `messages[2].content[0]`.
    #[must_use]
    pub fn inner(self, list: &'static str, index: usize) -> Self {
        Self {
            lists: [self.lists[0], list],
            indexes: [self.indexes[0], short(index), 0],
            in_result: false,
        }
    }

    /// A part of the tool result at this path: `messages[2].content[0].content[1]`.
    #[must_use]
    pub(crate) fn in_result(self, index: usize) -> Self {
        let [outer, inner, _] = self.indexes;
        Self {
            indexes: [outer, inner, short(index)],
            in_result: true,
            ..self
        }
    }
}

/// An index as `u32`, which is large enough for every request.
fn short(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [list, inner] = self.lists;
        let [index, inner_index, result_index] = self.indexes;
        write!(f, "{list}[{index}]")?;
        if !inner.is_empty() {
            write!(f, ".{inner}[{inner_index}]")?;
        }
        match (self.in_result, inner) {
            (false, _) => Ok(()),
            (true, "parts") => write!(f, ".functionResponse.parts[{result_index}]"),
            (true, _) => write!(f, ".content[{result_index}]"),
        }
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nowhere() {
            return f.write_str("nowhere");
        }
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_spelt_as_callers_would() {
        let item = Path::item("messages", 2);
        let inner = item.inner("content", 1);
        for (path, expected) in [
            (item, "messages[2]"),
            (inner, "messages[2].content[1]"),
            (inner.in_result(3), "messages[2].content[1].content[3]"),
            (
                Path::first("contents").inner("parts", 4).in_result(0),
                "contents[0].parts[4].functionResponse.parts[0]",
            ),
        ] {
            assert_eq!(path.to_string(), expected);
        }
    }
}
