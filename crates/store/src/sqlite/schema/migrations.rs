//! Runs the migrations that are embedded in the program.

use std::path::Path;

use refinery_core::Runner;
use rusqlite::{Connection, OptionalExtension as _};

use super::chain_heads;
use crate::embedded_migrations::{EmbeddedMigrations, embedded_migrations, runner};
use crate::error::OpenError;
use crate::sqlite::connection::connect::open_error;
use crate::sqlite::transfer::marker;

const LEDGER: EmbeddedMigrations = embedded_migrations!("ledger":
    "V1__ledger",
    "V2__entries_stand_in_one_order",
    "V3__tasks",
    "V4__sessions_are_booked_in_parts",
    "V5__what_calls_change_of_keys",
    "V6__exposure",
    "V7__entries_are_chained",
    "V8__statements",
    "V9__models_windows_and_rotation_of_keys",
    "V10__audit_and_admin_access",
    "V11__costs_and_catalogs",
    "V12__alerts",
    "V13__endpoints_of_tasks",
);

const JOURNAL: EmbeddedMigrations = embedded_migrations!("journal":
    "V1__journal",
    "V2__holds_and_seen_names",
    "V3__cost_and_usage",
    "V4__usage_of_earlier_versions",
    "V5__pending_usage",
);

/// One of the two database files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Schema {
    Ledger,
    Journal,
}

/// The age of a file's schema, compared with the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaAge {
    Same,
    /// The schema is older. A file without any schema has version 0.
    Older {
        found: i32,
        known: i32,
    },
}

impl Schema {
    fn runner(self) -> Runner {
        match self {
            Self::Ledger => runner(LEDGER),
            Self::Journal => runner(JOURNAL),
        }
    }

    /// The version of the schema that this program uses.
    pub(crate) fn known(self) -> i32 {
        let runner = self.runner();
        let versions = runner.get_migrations().iter();
        versions
            .map(refinery_core::Migration::version)
            .max()
            .unwrap_or(0)
    }

    /// Compares the versions. Refuses a newer schema, and a file that an unfinished transfer is filling.
    pub(crate) fn age(self, on: &Connection, path: &Path) -> Result<SchemaAge, OpenError> {
        if marker::exists(on).map_err(|error| open_error(path, error))? {
            return Err(OpenError::UnfinishedMove {
                place: path.display().to_string(),
            });
        }
        self.compare(on, path)
    }

    /// Compares the versions. Refuses a newer schema.
    pub(crate) fn compare(self, on: &Connection, path: &Path) -> Result<SchemaAge, OpenError> {
        let known = self.known();
        let mut found = version(on).map_err(|error| open_error(path, error))?;
        if found == known
            && self
                .is_unfinished(on)
                .map_err(|error| open_error(path, error))?
        {
            found -= 1;
        }
        match found.cmp(&known) {
            std::cmp::Ordering::Equal => Ok(SchemaAge::Same),
            std::cmp::Ordering::Less => Ok(SchemaAge::Older { found, known }),
            std::cmp::Ordering::Greater => Err(OpenError::NewerSchema {
                place: path.display().to_string(),
                found,
                known,
            }),
        }
    }

    /// Migrates the file in one transaction. Otherwise a step would be written before its record, and if the process
    /// were killed between the two writes, the next start would repeat the step.
    pub(crate) fn migrate(self, on: &mut Connection, path: &Path) -> Result<(), OpenError> {
        if self.age(on, path)? == SchemaAge::Same {
            return Ok(());
        }
        let migrated = self.runner().set_grouped(true).run(on);
        migrated.map_err(|error| OpenError::Migrate {
            place: path.display().to_string(),
            source: Box::new(error),
        })?;
        match self {
            Self::Ledger => chain_heads::fill(on).map_err(|error| open_error(path, error)),
            Self::Journal => Ok(()),
        }
    }

    /// Whether an earlier process was killed between the SQL migrations and the computation that follows them.
    fn is_unfinished(self, on: &Connection) -> rusqlite::Result<bool> {
        match self {
            Self::Ledger => chain_heads::are_missing(on),
            Self::Journal => Ok(false),
        }
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

#[cfg(test)]
mod tests {
    use refinery_core::Target;

    use super::*;
    use crate::embedded_migrations::assert_lists_all;

    #[test]
    fn every_migration_is_embedded() {
        assert_lists_all(LEDGER, "ledger");
        assert_lists_all(JOURNAL, "journal");
    }

    #[test]
    fn entries_of_earlier_versions_stay_as_they_were() {
        let mut on = Connection::open_in_memory().unwrap();
        let before = Schema::Ledger.runner().set_target(Target::Version(2));
        before.run(&mut on).unwrap();
        on.execute_batch(
            "INSERT INTO entries (n, wallet, seq, kind, at, closes, key, held, charge, balance_delta, gift_delta,
                 credit_delta, opened_at, request_id, meter, price_version, basis, note)
             VALUES (3, 1, 1, 'top_up', 7, NULL, NULL, NULL, 0, 9, 0, 0, NULL, NULL, NULL, NULL, NULL, 'hello'),
                    (5, 1, 2, 'settled', 8, 77, 4, 6, 5, -5, 0, 0, 7, 'req', '{}', 1, 'counted', NULL)",
        )
        .unwrap();
        let columns = "SELECT n, wallet, seq, kind, at, closes, key, held, charge, balance_delta, gift_delta,
            credit_delta, opened_at, request_id, meter, price_version, basis, note FROM entries ORDER BY n";
        let rows = |on: &Connection| -> Vec<Vec<rusqlite::types::Value>> {
            let mut select = on.prepare(columns).unwrap();
            let rows = select.query_map([], |row| (0..18).map(|n| row.get(n)).collect());
            rows.unwrap().map(Result::unwrap).collect()
        };
        let old = rows(&on);
        assert_eq!(old.len(), 2);
        let path = Path::new("memory");
        Schema::Ledger.migrate(&mut on, path).unwrap();
        assert_eq!(rows(&on), old);
        assert_eq!(Schema::Ledger.age(&on, path).unwrap(), SchemaAge::Same);
        // The migration has recreated the triggers that protect the rows.
        for change in [
            "UPDATE entries SET charge = 0",
            "DELETE FROM entries",
            "INSERT INTO entries (wallet, seq, kind, at, closes, charge, balance_delta, gift_delta, credit_delta)
             VALUES (1, 3, 'released', 9, 77, 0, 0, 0, 0)",
        ] {
            assert!(on.execute(change, []).is_err(), "{change}");
        }
    }
}
