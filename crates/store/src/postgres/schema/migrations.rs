//! Runs the migrations that are embedded in the program, on one node at a time.

use tokio_postgres::Client;

use super::chain_heads;
use crate::embedded_migrations::{EmbeddedMigrations, embedded_migrations, runner};
use crate::error::OpenError;
use crate::postgres::connection::connect::Target;
use crate::postgres::connection::errors::PgError;
use crate::postgres::transfer::marker;

const MIGRATIONS: EmbeddedMigrations = embedded_migrations!("postgres":
    "V1__ledger",
    "V2__journal",
    "V3__tasks",
    "V4__sessions_are_booked_in_parts",
    "V5__exposure",
    "V6__entries_are_chained",
    "V7__statements",
    "V8__models_windows_and_rotation_of_keys",
    "V9__audit_and_admin_access",
    "V10__cost_and_usage",
    "V11__costs_and_catalogs",
    "V12__alerts",
    "V13__usage_of_earlier_versions",
    "V14__endpoints_of_tasks",
);

/// The advisory lock for migrations of one schema.
const LOCK: &str =
    "SELECT pg_advisory_lock(hashtextextended(current_schema() || ' tollgate migrations', 0))";
const UNLOCK: &str =
    "SELECT pg_advisory_unlock(hashtextextended(current_schema() || ' tollgate migrations', 0))";

/// The first schema version whose nodes store the balances that statements need. Nodes of earlier versions must not
/// write after the migration to this version.
pub(crate) const BALANCES_KEPT_SINCE: i32 = 7;

/// The age of the database's schema, compared with the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaAge {
    Same,
    /// The schema is older. A database without any schema has version 0.
    Older {
        found: i32,
        known: i32,
    },
}

/// Compares the versions. Refuses a newer schema, and a database that an unfinished transfer is filling.
pub(crate) async fn age(on: &Client, target: &Target) -> Result<SchemaAge, OpenError> {
    let marked = marker::exists(on).await;
    if marked.map_err(|error| target.refused(error.into()))? {
        return Err(OpenError::UnfinishedMove {
            place: target.place().to_owned(),
        });
    }
    compare(on, target).await
}

/// Compares the versions. Refuses a newer schema.
pub(crate) async fn compare(on: &Client, target: &Target) -> Result<SchemaAge, OpenError> {
    let known = known();
    let refused = |error: tokio_postgres::Error| target.refused(error.into());
    let mut found = version(on).await.map_err(refused)?;
    // An earlier process was killed between the SQL migrations and the computation that follows them.
    if found == known && chain_heads::are_missing(on).await.map_err(refused)? {
        found -= 1;
    }
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(SchemaAge::Same),
        std::cmp::Ordering::Less => Ok(SchemaAge::Older { found, known }),
        std::cmp::Ordering::Greater => Err(OpenError::NewerSchema {
            place: target.place().to_owned(),
            found,
            known,
        }),
    }
}

/// Migrates the database to the program's schema. All migrations are one transaction, and the computation of heads is
/// another. A node that starts at the same time waits, and then finds nothing left to do.
pub(crate) async fn migrate(on: &mut Client, target: &Target) -> Result<(), OpenError> {
    if age(on, target).await? == SchemaAge::Same {
        return Ok(());
    }
    let refused = |error: tokio_postgres::Error| target.refused(PgError::from(error));
    on.batch_execute(LOCK).await.map_err(refused)?;
    let migrated = migrate_locked(on, target).await;
    on.batch_execute(UNLOCK).await.map_err(refused)?;
    migrated
}

async fn migrate_locked(on: &mut Client, target: &Target) -> Result<(), OpenError> {
    if age(on, target).await? == SchemaAge::Same {
        return Ok(());
    }
    // All migrations and their records are one transaction, so a killed process leaves all of them or none.
    let runner = runner(MIGRATIONS).set_grouped(true);
    let migrated = runner.run_async(on).await;
    migrated.map_err(|error| OpenError::Migrate {
        place: target.place().to_owned(),
        source: Box::new(error),
    })?;
    let filled = chain_heads::fill(on).await;
    filled.map_err(|error| target.refused(error.into()))
}

/// The version of the schema that this program uses.
pub(crate) fn known() -> i32 {
    runner(MIGRATIONS)
        .get_migrations()
        .iter()
        .map(refinery_core::Migration::version)
        .max()
        .unwrap_or(0)
}

async fn version(on: &Client) -> Result<i32, tokio_postgres::Error> {
    let history = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    let there: bool = on.query_one(history, &[]).await?.try_get(0)?;
    if !there {
        return Ok(0);
    }
    let newest = "SELECT coalesce(max(version), 0)::int4 FROM refinery_schema_history";
    on.query_one(newest, &[]).await?.try_get(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded_migrations::assert_lists_all;

    #[test]
    fn every_migration_is_embedded() {
        assert_lists_all(MIGRATIONS, "postgres");
    }
}
