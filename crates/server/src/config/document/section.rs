//! Walks the parsed file, returns typed values and collects all problems.
//!
//! A getter takes a value and also records its name as known, so the list of known settings always agrees with the code
//! that reads them. [`Section::end`] reports all other names.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::problem::{FilePosition, LineIndex, Problem};

/// The problems of a file, collected while it is read.
#[derive(Debug)]
pub(crate) struct Log<'t> {
    file: &'t Path,
    lines: LineIndex<'t>,
    pub(crate) problems: Vec<Problem>,
    /// The path of every setting that was asked for, even if the file lacks it, such as `channel[].name`.
    pub(crate) known: BTreeSet<String>,
}

impl<'t> Log<'t> {
    pub(crate) fn new(file: &'t Path, text: &'t str) -> Self {
        Self {
            file,
            lines: LineIndex::of(text),
            problems: Vec::new(),
            known: BTreeSet::new(),
        }
    }

    pub(crate) fn report(
        &mut self,
        span: Option<Range<usize>>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.problems.push(Problem {
            file: self.file.to_owned(),
            position: span.map(|span| self.lines.position(span.start)),
            key: key.into(),
            message: message.into(),
        });
    }

    /// The folder of the file. Relative paths in the file are relative to it.
    pub(crate) fn folder(&self) -> &'t Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    pub(crate) fn position(&self, span: &Range<usize>) -> FilePosition {
        self.lines.position(span.start)
    }
}

/// A value and its position, for problems that are found later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
    pub(crate) key: String,
}

/// One table of the file; an absent table reads like an empty one.
#[derive(Debug)]
pub(crate) struct Section<'s, 't, 'd> {
    table: Option<&'d DeTable<'d>>,
    path: String,
    span: Option<Range<usize>>,
    known: Vec<&'static str>,
    pub(crate) log: &'s mut Log<'t>,
}

impl<'s, 't, 'd> Section<'s, 't, 'd> {
    pub(crate) fn root(table: &'d DeTable<'d>, log: &'s mut Log<'t>) -> Self {
        Self {
            table: Some(table),
            path: String::new(),
            span: None,
            known: Vec::new(),
            log,
        }
    }

    /// An inline table, such as `{ env = "NAME" }`.
    pub(crate) fn of(value: &'d Spanned<DeValue<'d>>, path: String, log: &'s mut Log<'t>) -> Self {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let message = format!("must be a table, found {}", kind_of(value.get_ref()));
            log.report(Some(value.span()), path.as_str(), message);
        }
        Self {
            table,
            path,
            span: Some(value.span()),
            known: Vec::new(),
            log,
        }
    }

    /// Reads the table of this name and reports unknown settings in it.
    pub(crate) fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, 't, 'd>) -> T,
    ) -> T {
        let mut section = self.section(key);
        let table = read(&mut section);
        section.end();
        table
    }

    fn section(&mut self, key: &'static str) -> Section<'_, 't, 'd> {
        let path = self.path_of(key);
        match self.raw(key) {
            Some(value) => Section::of(value, path, self.log),
            None => Section {
                table: None,
                path,
                span: None,
                known: Vec::new(),
                log: self.log,
            },
        }
    }

    /// Reads each table of a list, such as all `[[channel]]`.
    pub(crate) fn each<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'_, 't, 'd>) -> T,
    ) -> Vec<T> {
        let path = self.path_of(key);
        let Some(value) = self.raw(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            let found = kind_of(value.get_ref());
            let message = format!("must be a list of tables ([[{key}]]), found {found}");
            self.log.report(Some(value.span()), path, message);
            return Vec::new();
        };
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let mut section = Section::of(item, format!("{path}[{index}]"), self.log);
            out.push(read(&mut section));
            section.end();
        }
        out
    }

    /// Takes a value, or reports why it is invalid.
    pub(crate) fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'d>) -> Result<T, String>,
    ) -> Option<At<T>> {
        let value = self.raw(key)?;
        let path = self.path_of(key);
        match read(value.get_ref()) {
            Ok(taken) => Some(At {
                value: taken,
                span: value.span(),
                key: path,
            }),
            Err(message) => {
                self.log.report(Some(value.span()), path, message);
                None
            }
        }
    }

    /// Like `take`, but also reports an absent value.
    pub(crate) fn require<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'d>) -> Result<T, String>,
    ) -> Option<At<T>> {
        if self.has(key) {
            return self.take(key, read);
        }
        self.learn(key);
        // Nothing is required of an absent table. If the section is not a table, that has already been reported.
        if self.table.is_some() {
            let path = self.path_of(key);
            self.log.report(self.span.clone(), path, "is missing");
        }
        None
    }

    /// Like `take`, but returns the value without its position.
    pub(crate) fn value<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'d>) -> Result<T, String>,
    ) -> Option<T> {
        self.take(key, read).map(|at| at.value)
    }

    /// Takes a list, and reports every invalid item.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'d>) -> Result<T, String>,
    ) -> Option<Vec<At<T>>> {
        let path = self.path_of(key);
        let value = self.raw(key)?;
        let Some(items) = value.get_ref().as_array() else {
            let message = format!("must be a list, found {}", kind_of(value.get_ref()));
            self.log.report(Some(value.span()), path, message);
            return None;
        };
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let key = format!("{path}[{index}]");
            match read(item.get_ref()) {
                Ok(value) => out.push(At {
                    value,
                    span: item.span(),
                    key,
                }),
                Err(message) => self.log.report(Some(item.span()), key, message),
            }
        }
        Some(out)
    }

    /// Returns the value unread, and marks its name as known.
    pub(crate) fn raw(&mut self, key: &'static str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.learn(key);
        self.table.and_then(|table| table.get(key))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    pub(crate) fn is_empty_list(&self, key: &str) -> bool {
        let value = self.table.and_then(|table| table.get(key));
        value
            .and_then(|value| value.get_ref().as_array())
            .is_some_and(|items| items.is_empty())
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The folder of the file. Relative paths in the file are relative to it.
    pub(crate) fn folder(&self) -> &'t Path {
        self.log.folder()
    }

    pub(crate) fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// Reports a problem of the table as a whole.
    pub(crate) fn report(&mut self, message: impl Into<String>) {
        self.log
            .report(self.span.clone(), self.path.as_str(), message);
    }

    pub(crate) fn end(self) {
        let Some(table) = self.table else { return };
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let hint = match nearest(name, self.known.iter().copied()) {
                Some(meant) => format!("unknown setting; did you mean `{meant}`?"),
                None => format!("unknown setting; known here: {}", self.known.join(", ")),
            };
            let path = self.path_of(name);
            self.log.report(Some(key.span()), path, hint);
        }
    }

    fn learn(&mut self, key: &'static str) {
        self.known.push(key);
        let path = without_indices(&self.path_of(key));
        self.log.known.insert(path);
    }
}

/// The type of a value, for messages. The value itself is not shown, because it may be a secret.
pub(crate) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// `model[12].routes[0].channel` becomes `model[].routes[].channel`.
fn without_indices(path: &str) -> String {
    path.split('[')
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join("[")
}
