//! Reads a `PostgreSQL` database of another program.

use tokio_postgres::Client;

use super::error::ForeignError;
use super::table::ForeignTable;
use crate::postgres::{Role, Target};
use crate::settings::Server;

const COLUMNS: &str = "SELECT column_name::text, data_type::text FROM information_schema.columns
    WHERE table_name = $1 AND table_schema = current_schema()";

/// A connection in a read-only transaction.
pub struct ForeignServer {
    place: String,
    client: Client,
}

impl ForeignServer {
    pub(super) async fn connect(url: &str) -> Result<Self, ForeignError> {
        let (url, schema) = without_schema(url);
        let server = Server::at(url);
        let place = server.shown();
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| ForeignError::Database {
            place: place.clone(),
            source: error,
        };
        let target = Target::of(&server).map_err(|error| failed(Box::new(error)))?;
        let connected = target.connect(Role::Verify).await;
        let client = connected.map_err(|error| failed(Box::new(error)))?;
        if let Some(schema) = schema {
            let chosen = "SELECT set_config('search_path', quote_ident($1), false)";
            let chosen = client.execute(chosen, &[&schema]).await;
            chosen.map_err(|error| failed(Box::new(error)))?;
        }
        // All tables are read in one snapshot, even while the other program runs.
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let begun = client.batch_execute(snapshot).await;
        begun.map_err(|error| failed(Box::new(error)))?;
        Ok(Self { place, client })
    }

    pub(super) async fn table(
        &self,
        name: &str,
        columns: &[&str],
    ) -> Result<Option<ForeignTable>, ForeignError> {
        let read = self.read(name, columns).await;
        read.map_err(|error| ForeignError::Database {
            place: self.place.clone(),
            source: Box::new(error),
        })
    }

    async fn read(
        &self,
        name: &str,
        columns: &[&str],
    ) -> Result<Option<ForeignTable>, tokio_postgres::Error> {
        let existing = self.client.query(COLUMNS, &[&name]).await?;
        if existing.is_empty() {
            return Ok(None);
        }
        let mut types = Vec::with_capacity(existing.len());
        for row in &existing {
            types.push((row.try_get::<_, &str>(0)?, row.try_get::<_, &str>(1)?));
        }
        let (mut found, mut values) = (Vec::new(), Vec::new());
        for column in columns {
            if let Some((_, kind)) = types.iter().find(|(it, _)| it == column) {
                found.push(*column);
                // An array is read as JSON, which is easier to parse.
                values.push(match *kind {
                    "ARRAY" => format!("to_json(\"{column}\")::text"),
                    _ => format!("\"{column}\"::text"),
                });
            }
        }
        let mut table = ForeignTable::new(&found);
        if found.is_empty() {
            return Ok(Some(table));
        }
        let select = format!("SELECT {} FROM \"{name}\"", values.join(", "));
        for row in self.client.query(&select, &[]).await? {
            let values = (0..found.len()).map(|at| row.try_get(at));
            table.push(values.collect::<Result<_, _>>()?);
        }
        Ok(Some(table))
    }
}

impl std::fmt::Debug for ForeignServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ForeignServer({})", self.place)
    }
}

/// The URL without the parameters of Prisma, and the schema that they name.
fn without_schema(url: &str) -> (String, Option<String>) {
    const OF_PRISMA: [&str; 6] = [
        "schema",
        "connection_limit",
        "pool_timeout",
        "pgbouncer",
        "socket_timeout",
        "statement_cache_size",
    ];
    let Some((place, parameters)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let name_of = |parameter: &str| parameter.split('=').next().unwrap_or_default().to_owned();
    let (theirs, ours): (Vec<&str>, Vec<&str>) = parameters
        .split('&')
        .partition(|it| OF_PRISMA.contains(&&*name_of(it)));
    let schema = theirs.iter().find_map(|it| it.strip_prefix("schema="));
    let url = if ours.is_empty() {
        place.to_owned()
    } else {
        format!("{place}?{}", ours.join("&"))
    };
    (url, schema.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_prisma_are_taken_out() {
        for (url, expected, schema) in [
            ("postgres://h/d", "postgres://h/d", None),
            (
                "postgres://h/d?schema=llm&sslmode=require",
                "postgres://h/d?sslmode=require",
                Some("llm"),
            ),
            ("postgres://h/d?connection_limit=5", "postgres://h/d", None),
        ] {
            let (url, found) = without_schema(url);
            assert_eq!((&*url, found.as_deref()), (expected, schema));
        }
    }
}
