//! Reads a dump of `MySQL`: the columns and rows of the requested tables.
//!
//! Other tables may make a dump large, so the dump is read statement by statement, and the statements of other tables
//! are skipped.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::dump_values::{Scanner, columns_of, rows_of};
use super::error::ForeignError;
use super::table::ForeignTable;

/// Every statement names its table within this many bytes.
const HEAD_BYTES: usize = 512;
/// The maximum size of a statement of a requested table. `MySQL` itself refuses more than a gigabyte.
const STATEMENT_BYTES_MAX: usize = 1 << 30;

/// The requested tables of a dump.
#[derive(Debug, Default)]
pub struct Dump {
    tables: HashMap<String, DumpedTable>,
}

#[derive(Debug, Default)]
struct DumpedTable {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

impl Dump {
    pub(super) fn read(path: &Path, tables: &[&'static str]) -> Result<Self, ForeignError> {
        let failed = |source| ForeignError::File {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let mut dump = Self::default();
        let read = statements(BufReader::new(file), tables, |statement| {
            dump.take(statement)
        });
        match read {
            Ok(()) if dump.tables.is_empty() => Err(ForeignError::Form {
                path: path.to_owned(),
                reason: format!(
                    "it is neither a SQLite database nor a dump of MySQL with one of the tables {}",
                    tables.join(", ")
                ),
            }),
            Ok(()) => Ok(dump),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(ForeignError::Form {
                path: path.to_owned(),
                reason: error.to_string(),
            }),
            Err(error) => Err(failed(error)),
        }
    }

    pub(super) fn table(&self, name: &str, columns: &[&str]) -> Option<ForeignTable> {
        let dumped = self.tables.get(name)?;
        let places = columns.iter().filter_map(|column| {
            let at = dumped.columns.iter().position(|it| it == column)?;
            Some((*column, at))
        });
        let (found, places): (Vec<&str>, Vec<usize>) = places.unzip();
        let mut table = ForeignTable::new(&found);
        for row in &dumped.rows {
            let values = places.iter();
            table.push(values.map(|at| row.get(*at).cloned().flatten()).collect());
        }
        Some(table)
    }

    fn take(&mut self, statement: &[u8]) -> Result<(), String> {
        let mut scanner = Scanner::new(statement);
        match head(&mut scanner) {
            Some((Verb::Create, name)) => {
                // The table occurs twice, so the dump contains two databases, whose rows must not be mixed.
                if self.tables.contains_key(&name) {
                    return Err(format!("{name}: the dump has several databases; dump one"));
                }
                let table = self.tables.entry(name).or_default();
                table.columns = columns_of(&mut scanner)?;
                Ok(())
            }
            Some((Verb::Insert, name)) => {
                let table = self.tables.entry(name.clone()).or_default();
                let (named, rows) = rows_of(&mut scanner).map_err(|it| format!("{name}: {it}"))?;
                match named {
                    // The first statement determines the order of the columns. The rows of later statements are
                    // reordered.
                    Some(named) if table.columns.is_empty() => table.columns = named,
                    Some(named) if named != table.columns => {
                        let order = table.columns.iter();
                        let order: Vec<_> = order
                            .map(|column| named.iter().position(|it| it == column))
                            .collect();
                        for row in rows {
                            let values = order.iter().map(|at| row.get((*at)?).cloned().flatten());
                            table.rows.push(values.collect());
                        }
                        return Ok(());
                    }
                    _ => {}
                }
                let width = table.columns.len();
                if let Some(row) = rows.iter().find(|row| row.len() != width) {
                    let count = row.len();
                    return Err(format!(
                        "{name}: a row has {count} values, but the table has {width} columns"
                    ));
                }
                table.rows.extend(rows);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Insert,
}

/// The verb and the table of a statement that creates a table or inserts into it.
fn head(scanner: &mut Scanner<'_>) -> Option<(Verb, String)> {
    let verb = match scanner.word()?.to_ascii_uppercase().as_str() {
        "CREATE" => Verb::Create,
        "INSERT" | "REPLACE" => Verb::Insert,
        _ => return None,
    };
    loop {
        let name = scanner.name()?;
        let is_keyword = !name.is_quoted
            && ["TABLE", "IF", "NOT", "EXISTS", "IGNORE", "INTO"]
                .contains(&name.text.to_ascii_uppercase().as_str());
        if is_keyword {
            continue;
        }
        // A schema name may precede the table name.
        if scanner.takes(b'.') {
            return Some((verb, scanner.name()?.text));
        }
        return Some((verb, name.text));
    }
}

/// The lexical state within a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    /// Inside a text or a quoted name.
    Quoted(u8),
    Escaped(u8),
    LineComment,
    BlockComment,
}

/// Calls `take` with each statement of a requested table, with comments removed.
fn statements(
    mut from: impl BufRead,
    tables: &[&str],
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> io::Result<()> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut statement = Vec::new();
    let (mut state, mut is_wanted) = (State::Plain, None);
    let mut before = 0;
    loop {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        for &byte in bytes {
            let (next, is_kept) = step(state, before, byte);
            let ends = state == State::Plain && next == State::Plain && byte == b';';
            match (state, next) {
                // The first character of the comment was already added to the statement.
                (State::Plain, State::LineComment | State::BlockComment) if byte != b'#' => {
                    statement.pop();
                }
                _ => {}
            }
            before = if state == State::BlockComment && next == State::Plain {
                0
            } else {
                byte
            };
            state = next;
            if ends {
                if is_wanted.unwrap_or_else(|| wants(&statement, tables)) {
                    take(&statement).map_err(invalid)?;
                }
                statement.clear();
                is_wanted = None;
                continue;
            }
            if is_kept && is_wanted != Some(false) {
                statement.push(byte);
                if statement.len() == HEAD_BYTES {
                    is_wanted = Some(wants(&statement, tables));
                }
                if statement.len() > STATEMENT_BYTES_MAX {
                    return Err(invalid("a statement has no end".to_owned()));
                }
            }
        }
        let length = bytes.len();
        from.consume(length);
    }
    if is_wanted == Some(true) || wants(&statement, tables) {
        return Err(invalid("the last statement is not complete".to_owned()));
    }
    Ok(())
}

fn wants(statement: &[u8], tables: &[&str]) -> bool {
    head(&mut Scanner::new(statement)).is_some_and(|(_, name)| tables.contains(&&*name))
}

/// The state after a byte, and whether the byte belongs to the statement.
fn step(state: State, before: u8, byte: u8) -> (State, bool) {
    match (state, byte) {
        (State::Plain, b'\'' | b'"' | b'`') => (State::Quoted(byte), true),
        (State::Plain, b'#') => (State::LineComment, false),
        (State::Plain, b'-') if before == b'-' => (State::LineComment, false),
        (State::Plain, b'*') if before == b'/' => (State::BlockComment, false),
        (State::Plain, _) | (State::LineComment, b'\n') => (State::Plain, true),
        (State::Quoted(quote), b'\\') if quote != b'`' => (State::Escaped(quote), true),
        // A doubled quote is read as the end of one text and the start of another, which has the same effect.
        (State::Quoted(quote), _) if byte == quote => (State::Plain, true),
        (State::Quoted(_), _) => (state, true),
        (State::Escaped(quote), _) => (State::Quoted(quote), true),
        (State::BlockComment, b'/') if before == b'*' => (State::Plain, false),
        (State::LineComment | State::BlockComment, _) => (state, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, tables: &[&'static str]) -> Result<Dump, String> {
        let mut dump = Dump::default();
        statements(text.as_bytes(), tables, |statement| dump.take(statement))
            .map_err(|error| error.to_string())?;
        Ok(dump)
    }

    const DUMP: &str = r"-- MySQL dump 10.13
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `tokens`;
CREATE TABLE `tokens` (
  `id` bigint NOT NULL AUTO_INCREMENT,
  `key` varchar(128) DEFAULT NULL COMMENT 'it''s a key; not a name',
  `note` longtext,
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_tokens_key` (`key`)
) ENGINE=InnoDB;
INSERT INTO `logs` VALUES (1,'don\'t; read');
INSERT INTO `tokens` VALUES (1,'a-b','x\\y\n\'z\'; -- no comment'),(-2,NULL,'it''s /* text */');
INSERT INTO `tokens` (`key`, `id`) VALUES ('ü',3);
";

    #[test]
    fn rows_are_read_whatever_their_texts_contain() {
        let dump = read(DUMP, &["tokens"]).unwrap();
        assert!(dump.table("logs", &["id"]).is_none());
        let table = dump
            .table("tokens", &["note", "id", "key", "absent"])
            .unwrap();
        assert!(!table.has("absent"));
        let rows: Vec<_> = table
            .rows()
            .map(|row| (row.number("id"), row.get("key"), row.get("note")))
            .collect();
        assert_eq!(
            rows,
            [
                (Some(1), Some("a-b"), Some("x\\y\n'z'; -- no comment")),
                (Some(-2), None, Some("it's /* text */")),
                (Some(3), Some("ü"), None),
            ]
        );
    }

    #[test]
    fn a_broken_dump_is_refused() {
        for (text, word) in [
            ("INSERT INTO `tokens` VALUES (1,'a", "not complete"),
            (
                "CREATE TABLE `tokens` (`a` int);INSERT INTO `tokens` VALUES (1,2);",
                "2 values",
            ),
            (
                "CREATE TABLE `tokens` (`a` int);INSERT INTO `tokens` VALUES (1",
                "not complete",
            ),
            (
                "CREATE TABLE `tokens` (`a` int);INSERT INTO `tokens` VALUES (x);",
                "tokens",
            ),
            (
                "USE `a`;CREATE TABLE `tokens` (`a` int);INSERT INTO `tokens` VALUES (1);
                 USE `b`;CREATE TABLE `tokens` (`b` int);INSERT INTO `tokens` VALUES (2);",
                "several databases",
            ),
        ] {
            let error = read(text, &["tokens"]).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
