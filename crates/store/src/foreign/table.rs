//! A table of another program, with every value as text.

use std::collections::HashMap;

/// The requested columns that exist, and all rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignTable {
    columns: HashMap<String, usize>,
    rows: Vec<Vec<Option<String>>>,
}

impl ForeignTable {
    pub(super) fn new(columns: &[&str]) -> Self {
        let columns = columns.iter().enumerate();
        Self {
            columns: columns.map(|(at, name)| ((*name).to_owned(), at)).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: Vec<Option<String>>) {
        self.rows.push(row);
    }

    /// Whether the table has a column.
    pub fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// All rows, in the order of the database.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = ForeignRow<'_>> {
        self.rows.iter().map(|values| ForeignRow {
            columns: &self.columns,
            values,
        })
    }
}

/// A row. Its debug form hides the values, because they may contain secrets.
#[derive(Clone, Copy)]
pub struct ForeignRow<'t> {
    columns: &'t HashMap<String, usize>,
    values: &'t [Option<String>],
}

impl<'t> ForeignRow<'t> {
    /// The value of a column. `None` if it is null, or if there is no such column.
    pub fn get(&self, column: &str) -> Option<&'t str> {
        self.values.get(*self.columns.get(column)?)?.as_deref()
    }

    /// The trimmed value of a column. `None` if it is empty.
    pub fn text(&self, column: &str) -> Option<&'t str> {
        self.get(column).map(str::trim).filter(|it| !it.is_empty())
    }

    /// Whether a column is true, in the notation of any database.
    pub fn flag(&self, column: &str) -> bool {
        matches!(self.get(column), Some("1" | "t" | "true"))
    }

    /// The value of a column as an integer.
    pub fn number(&self, column: &str) -> Option<i64> {
        self.get(column)?.trim().parse().ok()
    }
}

impl std::fmt::Debug for ForeignRow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForeignRow(..)")
    }
}
