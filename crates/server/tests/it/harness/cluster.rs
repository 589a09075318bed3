//! `PostgreSQL` servers that a test starts for itself, so that it can stop, kill and promote them.
//!
//! `scripts/with-postgres` provides the path of the programs and the user to run them as. The servers listen on free
//! ports of the loopback interface.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::wait::eventually;

/// The password of the role `tollgate` on every server.
pub(crate) const DB_PASSWORD: &str = "p@ss word/4711";

const ROLE: &str = "tollgate";

/// A running server, killed when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    postmaster: Option<Child>,
    data: PathBuf,
    port: u16,
    // A primary and its standby share the folder. It is deleted with the last of them.
    folder: std::sync::Arc<TempDir>,
}

impl Cluster {
    /// Starts a server that requires a password and TLS, with a certificate for `localhost`. Returns `None` where
    /// `PostgreSQL` or openssl is not available.
    pub(crate) async fn start() -> Option<Self> {
        if programs().is_none() || !runs(Command::new("openssl").arg("version")) {
            eprintln!("not played: run it by scripts/with-postgres, and with openssl");
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("tollgate-cluster.")
            .tempdir_in("/tmp")
            .unwrap();
        // The server runs as another user, who must be able to write here.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        make_certificates(folder.path());
        let (data, secret) = (folder.path().join("primary"), folder.path().join("secret"));
        std::fs::write(&secret, DB_PASSWORD).unwrap();
        let mut initdb = program("initdb", folder.path());
        initdb.arg("-D").arg(&data).arg("--pwfile").arg(&secret);
        initdb.args([
            "-U",
            ROLE,
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]);
        assert!(runs(&mut initdb), "initdb");
        let settings = format!(
            "\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nssl = on\n\
             ssl_cert_file = '{0}/server.crt'\nssl_key_file = '{0}/server.key'\n\
             wal_level = replica\nmax_connections = 100\nshared_buffers = 32MB\n",
            folder.path().display()
        );
        append(&data.join("postgresql.conf"), &settings);
        std::fs::write(
            data.join("pg_hba.conf"),
            "hostssl all all 127.0.0.1/32 scram-sha-256\n\
             hostssl replication all 127.0.0.1/32 scram-sha-256\n",
        )
        .unwrap();
        let mut cluster = Self {
            postmaster: None,
            data,
            port: free_port(),
            folder: std::sync::Arc::new(folder),
        };
        cluster.resume().await;
        Some(cluster)
    }

    /// Creates a standby. From then on, this server confirms commits only after the standby has them.
    pub(crate) async fn synchronous_standby(&self) -> Self {
        let data = self.folder.path().join("standby");
        let mut copy = program("pg_basebackup", self.folder.path());
        copy.args([
            "-d",
            &self.url("sslmode=require"),
            "-X",
            "stream",
            "-c",
            "fast",
        ]);
        copy.arg("-D").arg(&data).env("PGPASSWORD", DB_PASSWORD);
        assert!(runs(&mut copy), "pg_basebackup");
        let primary = format!(
            "\nprimary_conninfo = 'host=localhost port={} user={ROLE} password=''{DB_PASSWORD}'' sslmode=verify-full \
             sslrootcert={} application_name=standby'\n",
            self.port,
            self.ca_file().display(),
        );
        append(&data.join("postgresql.conf"), &primary);
        std::fs::write(data.join("standby.signal"), "").unwrap();
        let mut standby = Self {
            postmaster: None,
            data,
            port: free_port(),
            folder: std::sync::Arc::clone(&self.folder),
        };
        standby.resume().await;
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
        self.sql("SELECT pg_reload_conf()");
        eventually("the standby to be synchronous", async || {
            let state = self.sql("SELECT sync_state FROM pg_stat_replication");
            (state.trim() == "sync").then_some(())
        })
        .await;
        standby
    }

    /// Starts the server again and waits until it accepts connections.
    pub(crate) async fn resume(&mut self) {
        let log = self.data.with_extension("log");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let mut postgres = program("postgres", self.folder.path());
        postgres.arg("-D").arg(&self.data);
        postgres.args(["-p", &self.port.to_string()]);
        postgres.stdout(Stdio::null()).stderr(log);
        self.postmaster = Some(postgres.spawn().unwrap());
        eventually("the server", async || {
            self.try_sql("SELECT 1").is_ok().then_some(())
        })
        .await;
    }

    /// Stops the server in order, and ends all its sessions.
    pub(crate) fn stop(&mut self) {
        let mut stop = program("pg_ctl", self.folder.path());
        stop.arg("-D").arg(&self.data);
        assert!(runs(stop.args(["-m", "fast", "-w", "stop"])), "pg_ctl stop");
        self.kill();
    }

    /// Sends `kill -9`: the server loses everything that it has not written.
    pub(crate) fn kill(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            // The process may have ended already.
            let _ = postmaster.kill();
            let _ = postmaster.wait();
        }
    }

    pub(crate) fn promote(&self) {
        let mut promote = program("pg_ctl", self.folder.path());
        promote.arg("-D").arg(&self.data);
        assert!(runs(promote.args(["-w", "promote"])), "pg_ctl promote");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority that has signed the server's certificate.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// Runs a statement and returns the first column of its rows.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap()
    }

    fn try_sql(&self, sql: &str) -> Result<String, String> {
        let run = Command::new("psql")
            .args([&self.url("sslmode=require"), "-qAt", "-c", sql])
            .env("PGPASSWORD", DB_PASSWORD)
            .output()
            .unwrap();
        if run.status.success() {
            return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
        }
        Err(String::from_utf8_lossy(&run.stderr).into_owned())
    }

    fn url(&self, options: &str) -> String {
        format!(
            "postgres://{ROLE}@localhost:{}/postgres?{options}",
            self.port
        )
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

fn programs() -> Option<PathBuf> {
    std::env::var_os("TOLLGATE_TEST_POSTGRES_PROGRAMS").map(PathBuf::from)
}

/// A command that runs a `PostgreSQL` program as the configured user.
fn program(name: &str, folder: &Path) -> Command {
    let path = programs().unwrap().join(name);
    as_user(&path, folder)
}

fn as_user(path: &Path, folder: &Path) -> Command {
    let words = std::env::var("TOLLGATE_TEST_POSTGRES_AS").unwrap_or_default();
    let mut words = words.split_whitespace();
    let mut command = match words.next() {
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(path);
            command
        }
        None => Command::new(path),
    };
    // `psql` looks for certificates in the home folder, where the real user may have some.
    command.current_dir(folder).env("HOME", folder);
    command.stdin(Stdio::null());
    command
}

fn runs(command: &mut Command) -> bool {
    let Ok(output) = command.output() else {
        return false;
    };
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

/// Creates a certificate authority, and a certificate for `localhost` signed by it.
fn make_certificates(folder: &Path) {
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for line in [
        format!("req -x509 {key} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority"),
        format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"),
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -set_serial 1 -days 2 -extfile names -out server.crt"
            .to_owned(),
    ] {
        let mut openssl = as_user(Path::new("openssl"), folder);
        assert!(runs(openssl.args(line.split(' '))), "openssl {line}");
    }
}

fn append(path: &Path, text: &str) {
    let mut whole = std::fs::read_to_string(path).unwrap();
    whole.push_str(text);
    std::fs::write(path, whole).unwrap();
}

/// Returns a port that is free now. Another program could get it before the server listens. This is unlikely, because
/// the system chooses such ports from thousands.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
