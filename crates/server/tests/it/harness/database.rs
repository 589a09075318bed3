//! The database of a test gateway: a `SQLite` file, or a schema on a `PostgreSQL` test server.
//!
//! With `TOLLGATE_TEST_STORE=postgres`, all tests run on the server that `TOLLGATE_TEST_POSTGRES` names
//! (`scripts/with-postgres`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cluster::Cluster;
use super::faulty_proxy::FaultyProxy;

#[derive(Debug, Clone)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    Postgres { server: String, schema: String },
}

impl Database {
    /// A new database of the configured kind.
    pub(crate) fn fresh(folder: &Path) -> Self {
        match std::env::var("TOLLGATE_TEST_STORE").as_deref() {
            Ok("postgres") => Self::shared().expect("TOLLGATE_TEST_POSTGRES names the server"),
            _ => Self::Sqlite(folder.join("data/tollgate.db")),
        }
    }

    /// A new database that several nodes can share, or `None` if there is no server.
    pub(crate) fn shared() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("TOLLGATE_TEST_POSTGRES").ok()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let schema = format!("it_{}_{count}", std::process::id());
        psql(&server, &format!("CREATE SCHEMA {schema}")).unwrap();
        Some(Self::Postgres { server, schema })
    }

    /// A new database on servers that the test has started, one of which is the primary.
    pub(crate) fn on(servers: &[&Cluster], primary: &Cluster) -> Self {
        let schema = "it".to_owned();
        primary.sql(&format!("CREATE SCHEMA {schema}"));
        let hosts: Vec<String> = servers
            .iter()
            .map(|server| format!("localhost:{}", server.port()))
            .collect();
        let hosts = hosts.join(",");
        let server = format!("postgres://tollgate@{hosts}/postgres?sslmode=verify-full");
        Self::Postgres { server, schema }
    }

    /// The same database, used through a separate role whose permissions a test can revoke.
    pub(crate) fn with_own_role(self) -> (Self, DatabaseRole) {
        let Self::Postgres { server, schema } = self else {
            panic!("a server is needed");
        };
        let role = DatabaseRole {
            name: format!("guest_of_{schema}"),
            server: server.clone(),
        };
        let name = &role.name;
        let made = format!("CREATE ROLE {name} LOGIN; GRANT ALL ON SCHEMA {schema} TO {name}");
        psql(&server, &made).unwrap();
        let server = server.replace("tollgate@", &format!("{name}@"));
        (Self::Postgres { server, schema }, role)
    }

    /// The same database, reached through a new proxy.
    pub(crate) async fn behind_a_proxy(self) -> (Self, FaultyProxy) {
        let Self::Postgres { server, schema } = self else {
            panic!("a server is needed");
        };
        let host = server.split(['@', '/']).nth(3).unwrap().to_owned();
        let proxy = FaultyProxy::before(host.parse().unwrap()).await;
        let server = server.replace(&host, &proxy.address().to_string());
        (Self::Postgres { server, schema }, proxy)
    }

    /// The settings of the section `[store]`.
    pub(crate) fn settings(&self) -> String {
        match self {
            Self::Sqlite(_) => {
                "url = \"sqlite:data/tollgate.db\"\ndisk_floor_bytes = 0\n".to_owned()
            }
            Self::Postgres { .. } => format!("url = \"{}\"\n", self.url()),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres { server, schema } => {
                format!("{server}&options=-csearch_path%3D{schema}")
            }
        }
    }

    /// Runs a statement directly, without the gateway.
    pub(crate) fn run(&self, sql: &str) {
        self.try_run(sql).unwrap();
    }

    /// Like `run`, but returns the error if the database refuses.
    pub(crate) fn try_run(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(path) => {
                let database = rusqlite::Connection::open(path).unwrap();
                database
                    .busy_timeout(std::time::Duration::from_secs(5))
                    .unwrap();
                database
                    .execute_batch(sql)
                    .map_err(|error| error.to_string())
            }
            Self::Postgres { .. } => psql(&self.url(), sql),
        }
    }

    /// Blocks all other writers until the returned lock is dropped. On `PostgreSQL`, blocks only writers of wallet
    /// rows.
    pub(crate) fn lock(&self) -> Lock {
        match self {
            Self::Sqlite(path) => {
                let database = rusqlite::Connection::open(path).unwrap();
                database.execute_batch("BEGIN IMMEDIATE").unwrap();
                Lock::Sqlite(database)
            }
            Self::Postgres { .. } => {
                use std::io::{BufRead as _, BufReader, Write as _};
                let mut child = Command::new("psql")
                    .args([&self.url(), "-qAt"])
                    .stdin(std::process::Stdio::piped())
                    .stdout(std::process::Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut words = child.stdin.take().unwrap();
                words
                    .write_all(b"BEGIN; SELECT 'locked' FROM wallets FOR UPDATE;\n")
                    .unwrap();
                let mut line = String::new();
                let mut answers = BufReader::new(child.stdout.take().unwrap());
                answers.read_line(&mut line).unwrap();
                assert_eq!(line.trim(), "locked");
                // Keep the input of `psql` open: at the end of its input, `psql` exits and releases the lock.
                child.stdin = Some(words);
                Lock::Postgres(child)
            }
        }
    }
}

/// A role with which a gateway connects to its database.
#[derive(Debug)]
pub(crate) struct DatabaseRole {
    name: String,
    server: String,
}

impl DatabaseRole {
    /// Changes the role; its open sessions continue.
    pub(crate) fn alter(&self, change: &str) {
        psql(&self.server, &format!("ALTER ROLE {} {change}", self.name)).unwrap();
    }

    pub(crate) fn end_sessions(&self) {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename";
        psql(&self.server, &format!("{end} = '{}'", self.name)).unwrap();
    }
}

/// A connection that keeps the database locked.
#[derive(Debug)]
pub(crate) enum Lock {
    Sqlite(rusqlite::Connection),
    Postgres(std::process::Child),
}

impl Drop for Lock {
    fn drop(&mut self) {
        match self {
            Self::Sqlite(database) => database.execute_batch("ROLLBACK").unwrap(),
            Self::Postgres(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn psql(url: &str, sql: &str) -> Result<(), String> {
    let run = Command::new("psql")
        .args([url, "-q", "-v", "ON_ERROR_STOP=1", "-c", sql])
        .output()
        .unwrap();
    if run.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&run.stderr).into_owned())
}
