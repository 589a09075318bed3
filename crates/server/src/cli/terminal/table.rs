//! Tables with aligned columns.

use std::io::{self, Write};

/// Rows under a heading. Every column is as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Column {
    title: &'static str,
    side: Side,
    width_min: usize,
}

/// The alignment of a column: words left, numbers right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [(&'static str, Side); N]) -> Self {
        Self::of(columns)
    }

    /// Creates a table whose columns depend on the arguments of the command.
    pub(crate) fn of(columns: impl IntoIterator<Item = (&'static str, Side)>) -> Self {
        let columns = columns.into_iter().map(|(title, side)| Column {
            title,
            side,
            width_min: title.chars().count(),
        });
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// Sets minimum widths, for tables that are continued later.
    pub(crate) fn at_least<const N: usize>(mut self, widths: [usize; N]) -> Self {
        for (column, width) in self.columns.iter_mut().zip(widths) {
            column.width_min = column.width_min.max(width);
        }
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(one_line).collect());
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let widths = self.widths();
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.to_owned()).collect();
        self.write_line(&titles, &widths, out)?;
        let mut rows = self.rows.iter();
        rows.try_for_each(|row| self.write_line(row, &widths, out))
    }

    /// Writes the rows without their heading.
    pub(crate) fn write_rows(&self, out: &mut impl Write) -> io::Result<()> {
        let widths = self.widths();
        let mut rows = self.rows.iter();
        rows.try_for_each(|row| self.write_line(row, &widths, out))
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widest = cells.map(|cell| cell.chars().count()).max();
            widest.unwrap_or(0).max(column.width_min)
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    fn write_line(
        &self,
        line: &[String],
        widths: &[usize],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut text = String::new();
        for ((cell, column), width) in line.iter().zip(&self.columns).zip(widths) {
            if !text.is_empty() {
                text.push_str("  ");
            }
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match column.side {
                Side::Left => text.extend([cell.as_str(), &padding]),
                Side::Right => text.extend([padding.as_str(), cell]),
            }
        }
        writeln!(out, "{}", text.trim_end())
    }
}

/// Replaces control characters: a name may contain line breaks and escape sequences, which must not reach the terminal.
fn one_line(cell: String) -> String {
    if cell.chars().any(char::is_control) {
        cell.chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect()
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("name", Side::Left), ("balance", Side::Right)]);
        table.row(["a".to_owned(), "1.5".to_owned()]);
        table.row(["größer".to_owned(), "1234567.25".to_owned()]);
        table.row(["b\n\u{1b}[31m".to_owned(), "0".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "\
name        balance
a               1.5
größer   1234567.25
b\u{fffd}\u{fffd}[31m           0
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_table_that_goes_on_keeps_its_columns() {
        let columns = [("a", Side::Left), ("b", Side::Right)];
        let mut first = Table::new(columns).at_least([4, 3]);
        first.row(["x".to_owned(), "1".to_owned()]);
        let mut next = Table::new(columns).at_least([4, 3]);
        next.row(["long".to_owned(), "123".to_owned()]);
        let mut out = Vec::new();
        first.write(&mut out).unwrap();
        next.write_rows(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a       b\nx       1\nlong  123\n"
        );
    }
}
