//! A separate schema for each test, on the server that `TOLLGATE_TEST_POSTGRES` names.

use store::{Server, WalletId};

/// A schema, which is dropped with everything in it.
pub(crate) struct Schema {
    url: String,
    name: String,
}

impl Schema {
    pub(crate) fn new() -> Option<Self> {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            eprintln!("not tested on PostgreSQL: run it by scripts/with-postgres");
            return None;
        };
        let name = format!("story_{}", WalletId::random()).to_lowercase();
        run_on(&url, &format!("CREATE SCHEMA {name}")).unwrap();
        Some(Self { url, name })
    }

    pub(crate) fn server(&self) -> Server {
        Server::at(self.url())
    }

    pub(crate) fn url(&self) -> String {
        // The schema comes before the built-in functions, so that a test can replace the clock.
        format!(
            "{}&options=-csearch_path%3D{}%2Cpg_catalog",
            self.url, self.name
        )
    }

    /// Sets the database's clock to a fixed time.
    pub(crate) fn set_clock(&self, ms: i64) {
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS test_clock (ms bigint);
             CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
                 AS 'SELECT to_timestamp(ms / 1000.0) FROM test_clock';
             BEGIN; DELETE FROM test_clock; INSERT INTO test_clock VALUES ({ms}); COMMIT"
        );
        self.run(&sql).unwrap();
    }

    pub(crate) fn run(&self, sql: &str) -> Result<(), String> {
        run_on(&self.url(), sql)
    }

    /// Every row of every table, except rows that a start writes.
    pub(crate) fn rows(&self) -> Vec<String> {
        let url = self.url();
        let schema = self.name.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
                let (client, driver) = connected.unwrap();
                tokio::spawn(driver);
                let tables = "SELECT c.relname::text FROM pg_class c WHERE c.relkind IN ('r', 'p')
                    AND NOT c.relispartition AND c.relnamespace = $1::text::regnamespace
                    AND c.relname NOT IN ('refinery_schema_history', 'nodes')";
                let mut found = Vec::new();
                for row in client.query(tables, &[&schema]).await.unwrap() {
                    let table: String = row.get(0);
                    let rows = format!("SELECT '{table} ' || t::text FROM {table} t");
                    let rows = client.query(&rows, &[]).await.unwrap();
                    found.extend(rows.iter().map(|row| row.get::<_, String>(0)));
                }
                found.sort();
                found
            })
        });
        thread.join().unwrap()
    }
}

/// A role whose rights a test can change. It is deleted when dropped.
pub(crate) struct Guest<'s> {
    schema: &'s Schema,
    name: String,
}

impl Schema {
    pub(crate) fn guest(&self) -> Guest<'_> {
        let name = format!("guest_{}", WalletId::random()).to_lowercase();
        let schema = &self.name;
        let made = format!("CREATE ROLE {name} LOGIN; GRANT ALL ON SCHEMA {schema} TO {name}");
        run_on(&self.url, &made).unwrap();
        Guest { schema: self, name }
    }
}

impl Guest<'_> {
    pub(crate) fn server(&self) -> Server {
        let url = self.schema.url();
        Server::at(url.replace("tollgate@", &format!("{}@", self.name)))
    }

    /// Changes the role, and ends its sessions, so that new sessions see the change.
    pub(crate) fn alter(&self, change: &str) {
        let name = &self.name;
        let sql = format!(
            "ALTER ROLE {name} {change};
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'"
        );
        run_on(&self.schema.url, &sql).unwrap();
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        // The role's own objects are deleted first. Errors are ignored, because the server is stopped soon anyway.
        drop(run_on(
            &self.schema.url,
            &format!("SET lock_timeout = 2000; DROP OWNED BY {name} CASCADE; DROP ROLE {name}"),
        ));
    }
}

/// A transaction that holds its locks until this is dropped.
pub(crate) struct LockHolder {
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Schema {
    pub(crate) fn hold_lock(&self, sql: &str) -> LockHolder {
        let (url, sql) = (self.url(), sql.to_owned());
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (locked, has_lock) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
                let (client, driver) = connected.unwrap();
                let driver = tokio::spawn(driver);
                client.batch_execute("BEGIN").await.unwrap();
                client.batch_execute(&sql).await.unwrap();
                locked.send(()).unwrap();
                // Waits until the other end is dropped.
                let _gone = stopped.recv();
                client.batch_execute("ROLLBACK").await.unwrap();
                drop(client);
                drop(driver.await);
            });
        });
        has_lock.recv().unwrap();
        LockHolder {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // A store that was leaked on purpose may still hold locks. Errors are ignored, because the server is stopped
        // soon anyway.
        drop(run_on(
            &self.url,
            &format!("SET lock_timeout = 2000; DROP SCHEMA {} CASCADE", self.name),
        ));
    }
}

/// Runs statements on another thread, because tests call this from inside a runtime.
fn run_on(url: &str, sql: &str) -> Result<(), String> {
    let (url, sql) = (url.to_owned(), sql.to_owned());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
            let (client, driver) = connected.map_err(|error| error.to_string())?;
            tokio::spawn(driver);
            let done = client.batch_execute(&sql).await;
            done.map_err(|error| {
                error
                    .as_db_error()
                    .map_or(error.to_string(), ToString::to_string)
            })
        })
    });
    thread.join().unwrap()
}
