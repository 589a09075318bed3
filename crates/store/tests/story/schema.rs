//! A schema of its own for each place, on the server that `TOLLGATE_TEST_POSTGRES` names.

use store::{Server, WalletId};

/// Dropped with everything in it when the place goes.
pub(crate) struct Schema {
    url: String,
    name: String,
}

impl Schema {
    pub(crate) fn new() -> Option<Self> {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            eprintln!("not told on PostgreSQL: run it by scripts/with-postgres");
            return None;
        };
        let name = format!("story_{}", WalletId::random()).to_lowercase();
        run_on(&url, &format!("CREATE SCHEMA {name}")).unwrap();
        Some(Self { url, name })
    }

    pub(crate) fn server(&self) -> Server {
        Server::at(self.url())
    }

    fn url(&self) -> String {
        format!("{}&options=-csearch_path%3D{}", self.url, self.name)
    }

    pub(crate) fn run(&self, sql: &str) -> Result<(), String> {
        run_on(&self.url(), sql)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // A store that was forgotten on purpose may still hold locks; the server goes soon anyway.
        drop(run_on(
            &self.url,
            &format!("SET lock_timeout = 2000; DROP SCHEMA {} CASCADE", self.name),
        ));
    }
}

/// Runs statements on a thread of its own: tests call this from inside a runtime.
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
