//! A complete gateway on free ports, with its upstream, wallets and keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sim::Sim;
use tempfile::TempDir;

use super::answer::Answer;
use super::chat_calls::{OUTPUT_RESERVE, micro, with};
use super::connection::Connection;
use super::database::Database;
use super::events::Streaming;
use super::process::{Channel, Output, Running, addresses, run};
use super::request::Request;
use super::wait::eventually;

/// The gateway's credential at its upstream, which no caller may ever see.
pub(crate) const UPSTREAM_KEY: &str = "sk-upstream-secret-4711";

/// The configuration of a test gateway that is not running yet: settings that differ from the defaults.
#[derive(Debug, Default)]
pub(crate) struct GatewayBuilder {
    /// Lines of the configuration by section.
    settings: BTreeMap<String, String>,
    entries: String,
    files: Vec<(String, String)>,
    /// A new database is created if this is `None`.
    database: Option<Database>,
}

impl GatewayBuilder {
    pub(crate) fn database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Adds a line to a section of the configuration: `.setting("timeouts", "upstream_idle_ms = 300")`.
    pub(crate) fn setting(mut self, section: &str, line: &str) -> Self {
        let lines = self.settings.entry(section.to_owned()).or_default();
        lines.push_str(line);
        lines.push('\n');
        self
    }

    /// Adds channels and models. `SIM` stands for the upstream's address.
    pub(crate) fn entries(mut self, toml: &str) -> Self {
        self.entries.push_str(toml);
        self.entries.push('\n');
        self
    }

    /// Adds a file beside the configuration. `http://SIM` stands for the upstream's address.
    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    pub(crate) async fn start(self) -> TestGateway {
        let sim = Sim::start("127.0.0.1:0").await.unwrap();
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("tollgate.toml");
        let database = self
            .database
            .unwrap_or_else(|| Database::fresh(folder.path()));
        let config = config(self.settings, &self.entries, sim.address(), &database);
        std::fs::write(&file, config).unwrap();
        std::fs::write(folder.path().join("upstream-key"), UPSTREAM_KEY).unwrap();
        let upstream = format!("http://{}", sim.address());
        for (name, text) in self.files {
            let text = text.replace("http://SIM", &upstream);
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let node = Node::start(folder.path()).await;
        TestGateway {
            sim,
            node: Some(node),
            other_nodes: Vec::new(),
            database,
            file,
            folder,
        }
    }
}

/// The configuration line with the name of the first node.
const NODE: &str = "node = \"first\"\n";

/// The configuration file: the defaults of a test gateway, overridden by the test's settings.
fn config(
    settings: BTreeMap<String, String>,
    entries: &str,
    upstream: SocketAddr,
    database: &Database,
) -> String {
    let mut server = "listen = \"127.0.0.1:0\"\n".to_owned();
    if database.is_shared() {
        // A node that restarts under the same name immediately closes what its previous run left open.
        server.push_str(NODE);
    }
    let mut sections: BTreeMap<String, String> = [
        ("server", server),
        ("admin", "listen = \"127.0.0.1:0\"\n".to_owned()),
        ("store", database.settings()),
        ("ledger", String::new()),
        ("timeouts", String::new()),
    ]
    .map(|(name, lines)| (name.to_owned(), lines))
    .into();
    let usual = [
        (
            "ledger",
            "output_reserve_tokens",
            OUTPUT_RESERVE.to_string(),
        ),
        // Let calls wait on a slow disk instead of failing. Tests of the failing case set a shorter time.
        ("ledger", "queue_wait_ms", "30000".to_owned()),
        ("timeouts", "shutdown_notice_ms", "0".to_owned()),
        ("timeouts", "shutdown_drain_ms", "5000".to_owned()),
    ];
    for (section, lines) in settings {
        sections.entry(section).or_default().push_str(&lines);
    }
    for (section, key, value) in usual {
        let lines = sections.entry(section.to_owned()).or_default();
        if !lines.lines().any(|line| line.starts_with(key)) {
            let _ = writeln!(lines, "{key} = {value}");
        }
    }
    let mut text = String::new();
    for (section, lines) in sections {
        let _ = writeln!(text, "[{section}]\n{lines}");
    }
    text.push_str(include_str!("test_gateway.toml"));
    text.push_str(entries);
    text.replace("SIM", &upstream.to_string())
}

#[derive(Debug)]
struct Node {
    process: Running,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Node {
    async fn start(folder: &Path) -> Self {
        Self::start_by(folder, "tollgate.toml").await
    }

    async fn start_by(folder: &Path, file: &str) -> Self {
        let arguments = ["serve", "--config", file];
        let mut process = Running::start(&arguments, folder, Channel::Stderr);
        let line = process.line("\"serving\"", |line| line.contains("\"serving\""));
        let (address, admin) = addresses(&line.await);
        Self {
            process,
            address,
            admin,
        }
    }
}

/// An API key that a test has created.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// A running gateway with its upstream and database. It is torn down when dropped.
#[derive(Debug)]
pub(crate) struct TestGateway {
    pub(crate) sim: Sim,
    node: Option<Node>,
    /// Further nodes that share the database.
    other_nodes: Vec<Node>,
    database: Database,
    file: PathBuf,
    // Declared last, so that the gateway has ended when its files are deleted.
    folder: TempDir,
}

impl TestGateway {
    pub(crate) async fn start() -> Self {
        GatewayBuilder::default().start().await
    }

    /// A test gateway with the default settings, a wallet of 100 credits and a key without limits.
    pub(crate) async fn funded() -> (Self, Key) {
        GatewayBuilder::default().funded().await
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The database, for direct access without the gateway.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Starts another node on the same database and returns its public address.
    pub(crate) async fn another_node(&mut self) -> SocketAddr {
        let number = self.other_nodes.len() + 2;
        let file = format!("tollgate-{number}.toml");
        let text = std::fs::read_to_string(&self.file).unwrap();
        let text = text.replace(NODE, &format!("node = \"node-{number}\"\n"));
        std::fs::write(self.folder.path().join(&file), text).unwrap();
        let node = Node::start_by(self.folder.path(), &file).await;
        let address = node.address;
        self.other_nodes.push(node);
        address
    }

    /// The additional node that was started last.
    pub(crate) fn last_node(&self) -> &Running {
        &self.other_nodes.last().expect("another node runs").process
    }

    /// Sends `kill -9` to the additional node that was started last.
    pub(crate) fn kill_last_node(&mut self) {
        self.other_nodes
            .pop()
            .expect("another node runs")
            .process
            .kill();
    }

    pub(crate) fn config_file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running().address
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.running().admin
    }

    /// The admin addresses of all nodes.
    pub(crate) fn admins(&self) -> Vec<SocketAddr> {
        let other_nodes = self.other_nodes.iter().map(|node| node.admin);
        std::iter::once(self.admin()).chain(other_nodes).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running().process.pid()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.running().process.lines()
    }

    /// Waits for the first log line that satisfies `wanted`. Lines may be logged after the answer to their call.
    pub(crate) async fn logged(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        eventually(what, async || {
            self.log().into_iter().find(|line| wanted(line))
        })
        .await
    }

    pub(crate) fn process(&mut self) -> &mut Running {
        &mut self.node.as_mut().expect("the gateway runs").process
    }

    fn running(&self) -> &Node {
        self.node.as_ref().expect("the gateway runs")
    }

    /// Sends `kill -9` to the gateway.
    pub(crate) fn kill(&mut self) {
        self.node.take().expect("the gateway runs").process.kill();
    }

    /// Starts the gateway again on the same data.
    pub(crate) async fn restart(&mut self) {
        self.node = None;
        self.node = Some(Node::start(self.folder.path()).await);
    }

    /// Runs a command of the program with the gateway's configuration. The gateway may be running or not.
    pub(crate) async fn cli(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["--config", "tollgate.toml"];
        all.extend_from_slice(arguments);
        run(&all, self.folder()).await
    }

    /// Runs a command that must succeed and print JSON.
    pub(crate) async fn cli_json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let output = self.cli(&all).await;
        assert!(output.status.success(), "{arguments:?}: {}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    }

    /// Creates a wallet: `gateway.wallet("w", &["--balance", "100"])`.
    pub(crate) async fn wallet(&self, name: &str, options: &[&str]) -> Value {
        let mut arguments = vec!["wallet", "create", name];
        arguments.extend_from_slice(options);
        self.cli_json(&arguments).await
    }

    /// Creates a key of a wallet: `gateway.key("w", &["--rpm", "3"])`.
    pub(crate) async fn key(&self, wallet: &str, options: &[&str]) -> Key {
        let mut arguments = vec!["key", "create", "--wallet", wallet];
        arguments.extend_from_slice(options);
        let made = self.cli_json(&arguments).await;
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Key {
            id: text("id"),
            secret: text("secret"),
        }
    }

    /// Asserts that `tollgate ledger verify` finds no error.
    pub(crate) async fn verify(&self) {
        let output = self.cli(&["ledger", "verify"]).await;
        assert!(
            output.status.success(),
            "ledger verify:\n{}{}",
            output.stdout,
            output.stderr
        );
    }

    pub(crate) async fn send(&self, request: &Request) -> Answer {
        let mut connection = Connection::open(self.address()).await;
        connection.send(request).await;
        connection.answer().await
    }

    pub(crate) async fn get(&self, key: &Key, target: &str) -> Answer {
        self.send(&Request::get(target).bearer(&key.secret)).await
    }

    pub(crate) async fn chat(&self, key: &Key, body: &Value) -> Answer {
        self.send(&Request::chat(body).bearer(&key.secret)).await
    }

    /// Sends a streamed chat call and reads the head of the answer.
    pub(crate) async fn stream(&self, key: &Key, body: &Value) -> Streaming {
        let body = with(body.clone(), &serde_json::json!({ "stream": true }));
        let mut connection = Connection::open(self.address()).await;
        let request = Request::chat(&body).bearer(&key.secret);
        connection.send(&request).await;
        let head = connection.head().await.expect("an answer");
        Streaming::new(head, connection)
    }

    /// The balance of the key and its wallet, as the caller sees it.
    pub(crate) async fn balance(&self, key: &Key) -> Value {
        self.get(key, "/v1/balance").await.ok().json()
    }

    /// The credits that the key has spent, in micro-credits.
    pub(crate) async fn usage(&self, key: &Key) -> u64 {
        micro(&self.balance(key).await["key"], "usage")
    }

    /// The credits that are frozen in the wallet, in micro-credits.
    pub(crate) async fn frozen(&self, key: &Key) -> u64 {
        micro(&self.balance(key).await["wallet"], "frozen")
    }

    pub(crate) fn upstream_calls(&self) -> u64 {
        self.sim.stats().received
    }

    pub(crate) async fn admin_get(&self, target: &str) -> Answer {
        self.admin_send(&Request::get(target)).await
    }

    pub(crate) async fn admin_send(&self, request: &Request) -> Answer {
        let mut connection = Connection::open(self.admin()).await;
        connection.send(request).await;
        connection.answer().await
    }
}

impl GatewayBuilder {
    /// A test gateway with a wallet of 100 credits and a key without limits.
    pub(crate) async fn funded(self) -> (TestGateway, Key) {
        let gateway = self.start().await;
        gateway.wallet("w", &["--balance", "100"]).await;
        let key = gateway.key("w", &[]).await;
        (gateway, key)
    }
}
