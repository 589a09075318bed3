//! Writes results: tables for people, JSON for programs.

use std::fmt;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::error::CommandError;
use super::table::Table;

/// Writes the results of a command to standard output, or in tests to a buffer.
pub(crate) struct Output {
    out: BufWriter<Box<dyn Write>>,
}

impl Output {
    pub(crate) fn to(writer: impl Write + 'static) -> Self {
        Self {
            out: BufWriter::new(Box::new(writer)),
        }
    }

    /// Writes a JSON value on one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), CommandError> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        self.out.write_all(b"\n")?;
        Ok(self.out.flush()?)
    }

    pub(crate) fn table(&mut self, table: &Table) -> Result<(), CommandError> {
        table.write(&mut self.out)?;
        Ok(self.out.flush()?)
    }

    /// Writes the rows without a heading, to continue a table that was written before.
    pub(crate) fn rows(&mut self, table: &Table) -> Result<(), CommandError> {
        table.write_rows(&mut self.out)?;
        Ok(self.out.flush()?)
    }

    /// Writes a text unchanged, with its own line breaks.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), CommandError> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), CommandError> {
        writeln!(self.out, "{}", text.as_ref())?;
        Ok(self.out.flush()?)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}
