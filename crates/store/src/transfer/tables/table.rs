//! Describes a table and its columns, and where the databases store a column differently.

#[derive(Debug)]
pub(crate) struct Table {
    /// The name in `PostgreSQL` and in messages.
    pub(crate) name: &'static str,
    pub(crate) file: File,
    /// The FROM clause that reads the rows in `SQLite`. The table itself has the alias `t`.
    pub(crate) sqlite_from: &'static str,
    /// The columns, beginning with those of the key.
    pub(crate) columns: &'static [Column],
    /// The number of columns of the key, which determines the order in which rows are read.
    pub(crate) key: usize,
    /// The number of rows that are copied in one transaction. It is lower for large rows, to limit the memory.
    pub(crate) batch_rows: usize,
}

/// One of `SQLite`'s two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Ledger,
    Journal,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) sqlite: InSqlite,
    pub(crate) postgres: InPostgres,
}

/// The type of a column in `PostgreSQL`. `SQLite` has fewer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    BigInt,
    Integer,
    SmallInt,
    Boolean,
    Text,
    Bytes,
}

/// How `SQLite` stores a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InSqlite {
    Column,
    /// The column is not stored, but computed when it is read.
    Computed(&'static str),
    /// The column is a number that refers to the journal's table `names`.
    Name,
    /// The column is in `key_states`, which has no row for a key that was never used.
    State(&'static str),
}

/// How `PostgreSQL` stores a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InPostgres {
    Column,
    /// The column is not stored, but computed when it is read.
    Computed(&'static str),
    /// The column is read by this expression.
    ReadAs(&'static str),
}

impl Column {
    pub(super) const fn of(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            sqlite: InSqlite::Column,
            postgres: InPostgres::Column,
        }
    }

    pub(super) const fn sqlite(mut self, sqlite: InSqlite) -> Self {
        self.sqlite = sqlite;
        self
    }

    pub(super) const fn postgres(mut self, postgres: InPostgres) -> Self {
        self.postgres = postgres;
        self
    }
}

pub(super) const fn int(name: &'static str) -> Column {
    Column::of(name, Kind::BigInt)
}

pub(super) const fn text(name: &'static str) -> Column {
    Column::of(name, Kind::Text)
}

pub(super) const fn bytes(name: &'static str) -> Column {
    Column::of(name, Kind::Bytes)
}

pub(super) const fn truth(name: &'static str) -> Column {
    Column::of(name, Kind::Boolean)
}

/// A text column that `SQLite`'s journal stores in `names`.
pub(super) const fn named(name: &'static str) -> Column {
    text(name).sqlite(InSqlite::Name)
}

/// A column that `SQLite` stores in `key_states`.
pub(super) const fn state(name: &'static str, read: &'static str) -> Column {
    int(name).sqlite(InSqlite::State(read))
}

/// The batch size for rows of a few hundred bytes.
const SMALL: usize = 5_000;
/// The batch size for rows with documents or bodies, which may have some hundred kilobytes.
const LARGE: usize = 250;

pub(super) const fn table(
    name: &'static str,
    sqlite_from: &'static str,
    key: usize,
    columns: &'static [Column],
) -> Table {
    Table {
        name,
        file: File::Ledger,
        sqlite_from,
        columns,
        key,
        batch_rows: SMALL,
    }
}

impl Table {
    pub(crate) fn sqlite_name(&self) -> &'static str {
        let mut words = self.sqlite_from.split(' ');
        words.next().unwrap_or(self.name)
    }

    pub(super) const fn in_journal(mut self) -> Self {
        self.file = File::Journal;
        self
    }

    pub(super) const fn with_large_rows(mut self) -> Self {
        self.batch_rows = LARGE;
        self
    }

    pub(crate) fn key_columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().take(self.key)
    }
}
