//! `tollgate demo`: runs the gateway with a simulated upstream and invented data, without any setup.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http::Method;
use ledger::Micro;
use serde_json::{Value, json};
use sim::Sim;
use store::{NewWallet, OpenError, Role, Store};
use tracing_subscriber::filter::LevelFilter;

use super::demo_config::{Listeners, config, write_file};
use super::traffic::{self, Traffic};
use super::{customers, fetch};
use crate::cli::context::{Context, actor};
use crate::cli::terminal::{CommandError, with_sources};
use crate::gateway::{Gateway, StartError};
use crate::logging;
use crate::operations::keys::{self, KeyDraft};
use crate::operations::sign_in;
use crate::serve::until_stopped;

/// The name of the demo's wallet and of its keys.
const NAME: &str = "demo";
pub(super) const MODEL: &str = "sim/chat";
/// The initial balance of the demo's wallet.
const BALANCE: Micro = Micro::new(100_000_000);
const GIFT: Micro = Micro::new(5_000_000);
/// The delay between the pieces of a stream, so that people can watch it.
const PACE: Duration = Duration::from_millis(25);

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The address at which the gateway listens; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The address at which health, metrics and the console listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin_listen: SocketAddr,
    /// The folder of the data; a second start uses the same data again.
    #[arg(long, value_name = "FOLDER", default_value = "tollgate-data")]
    data: PathBuf,
    /// Leave out the invented customers: their past day, and the calls that they make while the demo runs.
    #[arg(long)]
    no_customers: bool,
}

pub(crate) async fn run(command: Demo, context: &mut Context) -> Result<(), CommandError> {
    let stopped = until_stopped();
    logging::start(LevelFilter::WARN, None);
    let settings = sim::Settings {
        pace: Some(PACE),
        ..sim::Settings::default()
    };
    let upstream = Sim::start_with((Ipv4Addr::LOCALHOST, 0), settings).await?;
    let listeners = Listeners {
        upstream: upstream.address(),
        gateway: command.listen,
        admin: command.admin_listen,
    };
    let config = config(listeners, &command.data)?;
    let gateway = Gateway::start(&config)
        .await
        .map_err(|error| explained(error, &command))?;
    // Write the file only after the start, because another demo may be using this data.
    write_file(&config)?;
    let secret = fresh_key(gateway.engine().store()).await?;
    let secrets = if command.no_customers {
        Vec::new()
    } else {
        customers::prepare(gateway.engine(), engine::clock::now()).await?
    };
    let code = sign_in::create_code(gateway.engine().store(), Role::Owner, &actor()).await?;
    let summary = StartSummary {
        console: sign_in::link(&format!("http://{}", gateway.admin_address()), &code),
        address: gateway.address(),
        admin: gateway.admin_address(),
        secret,
        data: std::path::absolute(&command.data)?,
        has_customers: !command.no_customers,
    };
    let sample = Sample::take(&summary).await.map_err(|fault| {
        let why = with_sources(fault.as_ref());
        CommandError::message(format!("the sample call failed: {why}"))
    })?;
    if context.json {
        context.out.json(&summary.json(&sample))?;
    } else {
        context.out.line(summary.text(&sample))?;
    }
    let traffic = Traffic::start(gateway.address(), secrets);
    stopped.await;
    traffic.stop().await;
    gateway.stop().await;
    upstream.stop().await;
    Ok(())
}

/// Creates a new key and disables the previous one, whose secret can no longer be shown.
async fn fresh_key(store: &Store) -> Result<String, CommandError> {
    let actor = actor();
    let wallet = if let Some(wallet) = store.find_wallet(NAME).await? {
        wallet
    } else {
        let wallet = NewWallet {
            name: NAME.to_owned(),
            balance: BALANCE,
            gift: GIFT,
            credit_limit: Micro::ZERO,
        };
        store.create_wallet(wallet, &actor).await?
    };
    for old in store.keys(Some(wallet.id)).await? {
        if old.key.enabled && old.name.as_deref() == Some(NAME) {
            store.set_key_enabled(old.id, false, &actor).await?;
        }
    }
    let draft = KeyDraft::named(wallet.id, NAME);
    let (_, secret) = keys::create(store, draft, &actor).await?;
    Ok(secret)
}

/// A call that the demo itself makes over HTTP, to show its cost.
#[derive(Debug)]
struct Sample {
    before: String,
    after: String,
    answer: String,
    usage: Value,
}

impl Sample {
    async fn take(summary: &StartSummary) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let before = summary.balance().await?;
        let answer = fetch::json(
            summary.address,
            Method::POST,
            CHAT,
            &summary.secret,
            QUESTION,
        )
        .await?;
        let after = summary.balance().await?;
        let text = answer.pointer("/choices/0/message/content");
        Ok(Self {
            before,
            after,
            answer: text.and_then(Value::as_str).unwrap_or_default().to_owned(),
            usage: answer.get("usage").cloned().unwrap_or_default(),
        })
    }
}

/// The body of the sample call, in the form in which a person would write it.
const QUESTION: &str =
    r#"{"model":"sim/chat","messages":[{"role":"user","content":"Say hello to Tollgate."}]}"#;
const QUESTION_STREAMED: &str = r#"{"model":"sim/chat","stream":true,"messages":[{"role":"user","content":"Say hello to Tollgate."}]}"#;

const CHAT: &str = "/v1/chat/completions";
const SPEECH: &str = r#"{"model":"sim/voice","text":"Hello from Tollgate.","language":"en","output_format":{"codec":"wav"}}"#;

/// The values that are printed after the start.
#[derive(Debug)]
struct StartSummary {
    address: SocketAddr,
    admin: SocketAddr,
    secret: String,
    data: PathBuf,
    has_customers: bool,
    /// A link that opens the console and works once.
    console: String,
}

impl StartSummary {
    async fn balance(&self) -> Result<String, Box<dyn Error + Send + Sync>> {
        let answer =
            fetch::json(self.address, Method::GET, "/v1/balance", &self.secret, "").await?;
        let available = answer.get("available").and_then(Value::as_str);
        Ok(available.ok_or("a balance without `available`")?.to_owned())
    }

    fn curl(&self, options: &str, path: &str, body: &str) -> String {
        format!(
            "curl {options}http://{}{path} \\\n  \
             -H 'Authorization: Bearer {}' \\\n  \
             -H 'Content-Type: application/json' \\\n  \
             -d '{body}'",
            self.address, self.secret
        )
    }

    fn text(&self, sample: &Sample) -> String {
        let Self {
            address,
            admin,
            secret,
            data,
            console,
            ..
        } = self;
        let Sample {
            before,
            after,
            answer,
            ..
        } = sample;
        format!(
            "Tollgate is running, with a simulated upstream behind it.

  console   {console}
            (signs you in once, within ten minutes)
  API key   {secret}
  gateway   http://{address}/v1
  health    http://{admin}/healthz
  metrics   http://{admin}/metrics
  data      {data}

A sample call was made:

  balance before   {before} credits
  {MODEL} says    {answer}
  balance after    {after} credits

Try it:

{plain}

As a stream:

{stream}

Speech, saved to a file:

{speech}

A realtime session, with any WebSocket client:

  websocat -H 'Authorization: Bearer {secret}' 'ws://{address}/v1/realtime?model=sim/voice'

{customers}The key works until the demo is started again. Ctrl-C stops it; the data stays.",
            data = data.display(),
            plain = self.curl("", CHAT, QUESTION),
            stream = self.curl("-N ", CHAT, QUESTION_STREAMED),
            speech = self.curl("-o hello.wav ", "/v1/tts", SPEECH),
            customers = self.customers(),
        )
    }

    /// Explains the origin of the calls that the user of the demo has not made.
    fn customers(&self) -> String {
        if !self.has_customers {
            return String::new();
        }
        format!(
            "Three invented customers have made calls for a day, and make one every {} seconds now, {} at most.\n\
             To start without them: tollgate demo --no-customers, with another --data.\n\n",
            traffic::PAUSE.as_secs(),
            traffic::CALLS_MAX,
        )
    }

    fn json(&self, sample: &Sample) -> Value {
        json!({
            "api_key": self.secret,
            "base_url": format!("http://{}/v1", self.address),
            "address": self.address,
            "admin_address": self.admin,
            "console_url": self.console,
            "model": MODEL,
            "data": self.data,
            "balance_before": sample.before,
            "balance_after": sample.after,
            "answer": sample.answer,
            "usage": sample.usage,
        })
    }
}

/// Explains common problems of a first start, and how to solve them.
fn explained(error: StartError, command: &Demo) -> CommandError {
    match error {
        StartError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
            let option = if address == command.listen {
                "--listen"
            } else {
                "--admin-listen"
            };
            CommandError::message(format!(
                "{address} is in use by another program. Stop it, or take another port: \
                 tollgate demo {option} {}:0",
                address.ip()
            ))
        }
        StartError::Store(OpenError::Locked { .. }) => CommandError::message(format!(
            "a gateway already runs on the data in {}. Stop it, or use another folder: \
             tollgate demo --data FOLDER",
            folder(&command.data)
        )),
        other => other.into(),
    }
}

fn folder(path: &Path) -> String {
    std::path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Demo {
        Demo {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            admin_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 2)),
            data: PathBuf::from("some/where"),
            no_customers: false,
        }
    }

    #[tokio::test]
    async fn a_second_start_keeps_the_wallet_and_ends_the_last_key() {
        let folder = tempfile::tempdir().unwrap();
        let settings = store::Settings::at(folder.path().join("t.db"));
        let store = Store::attach(&settings).unwrap();
        let first = fresh_key(&store).await.unwrap();
        let second = fresh_key(&store).await.unwrap();
        assert_ne!(first, second);
        let wallets = store.wallets().await.unwrap();
        let names: Vec<_> = wallets.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, [NAME]);
        let keys = store.keys(Some(wallets[0].id)).await.unwrap();
        let enabled: Vec<_> = keys.iter().map(|row| row.key.enabled).collect();
        assert_eq!(enabled, [false, true]);
    }

    #[test]
    fn a_busy_port_is_told_with_the_way_out() {
        for (address, option) in [
            (command().listen, "--listen"),
            (command().admin_listen, "--admin-listen"),
        ] {
            let error = StartError::Listen {
                address,
                source: io::Error::from(io::ErrorKind::AddrInUse),
            };
            let text = explained(error, &command()).to_string();
            assert!(
                text.contains(&format!("demo {option} 127.0.0.1:0")),
                "{text}"
            );
        }
    }
}
