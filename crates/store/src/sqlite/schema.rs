//! Migrations, embedded in the program.

use std::path::Path;

use refinery::Runner;
use rusqlite::{Connection, OptionalExtension as _};

use super::connect::refusal;
use crate::error::OpenError;

mod ledger {
    refinery::embed_migrations!("migrations/ledger");
}

mod journal {
    refinery::embed_migrations!("migrations/journal");
}

/// Which of the two files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Schema {
    Ledger,
    Journal,
}

/// How the schema of a file compares with the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Same,
    /// Also a file without any schema, which is version 0.
    Older {
        found: i32,
        known: i32,
    },
}

impl Schema {
    fn runner(self) -> Runner {
        match self {
            Self::Ledger => ledger::migrations::runner(),
            Self::Journal => journal::migrations::runner(),
        }
    }

    /// Compares; a newer schema is refused.
    pub(super) fn age(self, on: &Connection, path: &Path) -> Result<Age, OpenError> {
        let known = self
            .runner()
            .get_migrations()
            .iter()
            .map(refinery::Migration::version)
            .max()
            .unwrap_or(0);
        let found = version(on).map_err(|error| refusal(path, error))?;
        match found.cmp(&known) {
            std::cmp::Ordering::Equal => Ok(Age::Same),
            std::cmp::Ordering::Less => Ok(Age::Older { found, known }),
            std::cmp::Ordering::Greater => Err(OpenError::NewerSchema {
                place: path.display().to_string(),
                found,
                known,
            }),
        }
    }

    /// Brings the file to the program's schema; each step is one transaction.
    pub(super) fn migrate(self, on: &mut Connection, path: &Path) -> Result<(), OpenError> {
        if self.age(on, path)? == Age::Same {
            return Ok(());
        }
        let migrated = self.runner().run(on);
        migrated.map(drop).map_err(|error| OpenError::Migrate {
            place: path.display().to_string(),
            source: Box::new(error),
        })
    }
}

fn version(on: &Connection) -> rusqlite::Result<i32> {
    let history =
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'refinery_schema_history'";
    if on.query_row(history, [], |_| Ok(())).optional()?.is_none() {
        return Ok(0);
    }
    on.query_row(
        "SELECT coalesce(max(version), 0) FROM refinery_schema_history",
        [],
        |row| row.get(0),
    )
}
