//! Problems of a configuration, and their positions in the file.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// One problem that an operator has to fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: PathBuf,
    /// Absent if the problem has no single position, such as a missing file.
    #[serde(flatten)]
    pub position: Option<FilePosition>,
    /// The path of the setting, such as `model[2].price.input`; empty for the file as a whole.
    pub key: String,
    /// Never contains a secret: values of credentials are not repeated.
    pub message: String,
}

/// A position in the file; both numbers start at 1, columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FilePosition {
    pub line: usize,
    pub column: usize,
}

impl Problem {
    /// A problem of entries that are in the store.
    pub(crate) fn of_store(message: String) -> Self {
        Self {
            file: PathBuf::from("store"),
            position: None,
            key: String::new(),
            message,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(FilePosition { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Problem {}

/// Converts byte offsets to lines and columns.
#[derive(Debug)]
pub(crate) struct LineIndex<'t> {
    text: &'t str,
    /// The offset at which each line begins.
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after_newlines).collect(),
        }
    }

    pub(crate) fn position(&self, offset: usize) -> FilePosition {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied()
            .unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or("");
        FilePosition {
            line: line.max(1),
            column: before.chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns_in_characters() {
        let lines = LineIndex::of("ab\né = 1\n");
        for (offset, line, column) in [(0, 1, 1), (1, 1, 2), (3, 2, 1), (5, 2, 2), (10, 3, 1)] {
            assert_eq!(
                lines.position(offset),
                FilePosition { line, column },
                "{offset}"
            );
        }
    }

    #[test]
    fn a_problem_reads_like_a_compiler_message() {
        let mut problem = Problem {
            file: "t.toml".into(),
            position: Some(FilePosition { line: 3, column: 5 }),
            key: "server.listen".to_owned(),
            message: "must be an address".to_owned(),
        };
        assert_eq!(
            problem.to_string(),
            "t.toml:3:5: server.listen: must be an address"
        );
        problem.position = None;
        problem.key.clear();
        assert_eq!(problem.to_string(), "t.toml: must be an address");
    }
}
