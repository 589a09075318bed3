//! `tollgate init`: asks questions, creates the files, and prints the next steps.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use engine::ModelSpec;
use ledger::{Markup, Micro, PriceKey};
use protocol::Kind;
use serde_json::json;
use store::{NewWallet, Settings, Store};
use tokio::signal::unix::{SignalKind, signal};

use super::file::NewConfig;
use super::staging::Staging;
use super::vendors::{self, FoundVendor, FoundVendors};
use crate::cli::context::{Context, actor};
use crate::cli::terminal::{CommandError, Side, Table};
use crate::config::{self, Config};
use crate::gateway::local_address;
use crate::known_models::KnownModels;
use crate::operations::keys::{self, KeyDraft};

/// The name of the created wallet and of its key.
const NAME: &str = "main";

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Do not ask questions.
    #[arg(long)]
    yes: bool,
    /// Show the configuration and create nothing.
    #[arg(long)]
    dry_run: bool,
    /// The folder of the data, relative to the configuration.
    #[arg(long, value_name = "FOLDER", default_value = "tollgate-data")]
    data: PathBuf,
    /// The factor between the vendors' list prices and your prices.
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    markup: Markup,
    /// The credits that the first wallet begins with.
    #[arg(long, value_name = "CREDITS", default_value = "10")]
    balance: Micro,
    /// The address at which the gateway will listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The address at which health, metrics and the console will listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin_listen: SocketAddr,
}

pub(crate) async fn run(command: Init, context: &mut Context) -> Result<(), CommandError> {
    let file = context.config_file();
    let folder = file.parent().unwrap_or(Path::new(""));
    let data = folder.join(&command.data);
    refuse_to_overwrite(&file, &data)?;
    if command.balance.is_negative() {
        return Err(CommandError::message("--balance must not be negative"));
    }
    let known = KnownModels::built_in();
    let FoundVendors {
        vendors: mut found,
        incomplete,
    } = vendors::find(known, |name| std::env::var(name).ok());
    if found.is_empty() {
        let mut message = format!(
            "no vendor's key was found in the environment. Set one of {}, or begin with a copy of config/example.toml",
            vendors::usual_variables().join(", ")
        );
        for problem in &incomplete {
            message.push_str(". ");
            message.push_str(problem);
        }
        return Err(CommandError::message(message));
    }
    for problem in &incomplete {
        writeln!(io::stderr(), "{problem}; it is left out.")?;
    }
    if !command.yes && !command.dry_run {
        // No file exists yet, so Ctrl-C may end the program here.
        found = ask(found)?;
    }
    let text = NewConfig {
        listen: command.listen,
        admin_listen: command.admin_listen,
        data: &command.data,
        markup: command.markup,
        vendors: &found,
        catalog: &known.version,
    }
    .text();
    let config = Config::parse(&text, &file)?;
    let plan = config::resolve(&config)?;
    if command.dry_run {
        return show_dry_run(&text, &file, &data, context);
    }
    // From here on Ctrl-C must be caught, because it would otherwise leave files behind.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let staging = Staging::beside(&file)?;
    let staged = staging.data();
    let secret = tokio::select! {
        biased;
        _ = interrupt.recv() => {
            return Err(CommandError::message("stopped; nothing was created"));
        }
        created = create_key(&staged, &config, command.balance) => created?,
    };
    // Ctrl-C is ignored from here on, so that all files appear together.
    staging.publish(&data, &file, &text)?;
    let summary = InitSummary {
        file,
        data,
        secret,
        listen: command.listen,
        balance: command.balance,
        models: plan.models.len(),
        model: first_model(&plan.models),
        channels: found.iter().map(|it| it.preset.as_str()).collect(),
    };
    summary.show(context)
}

fn refuse_to_overwrite(file: &Path, data: &Path) -> Result<(), CommandError> {
    if file.exists() {
        return Err(CommandError::message(format!(
            "{} exists already and is left as it is. Name another file with --config",
            file.display()
        )));
    }
    if data.exists() {
        return Err(CommandError::message(format!(
            "{} exists already and is left as it is. Name another folder with --data",
            data.display()
        )));
    }
    Ok(())
}

/// Asks for each vendor whether to use it.
fn ask(found: Vec<FoundVendor>) -> Result<Vec<FoundVendor>, CommandError> {
    if !io::stdin().is_terminal() {
        return Err(CommandError::message(
            "nobody can be asked, because the input is not a terminal. Say --yes to use all keys that were found, or \
             --dry-run to see what would be written",
        ));
    }
    let mut used = Vec::new();
    for vendor in found {
        let question = format!(
            "Use {} with the key in {} ({} known models)?",
            vendor.preset.title(),
            vendor.credential.variable(),
            vendor.models
        );
        if confirm(&question)? {
            used.push(vendor);
        }
    }
    if used.is_empty() {
        return Err(CommandError::message(
            "no vendor is left; nothing was created",
        ));
    }
    Ok(used)
}

/// Asks a question. The end of the input and an answer that begins with `n` mean no. Every other answer means yes.
fn confirm(question: &str) -> Result<bool, CommandError> {
    let mut prompt = io::stderr();
    write!(prompt, "{question} [Y/n] ")?;
    prompt.flush()?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim().to_ascii_lowercase();
    Ok(read > 0 && !answer.starts_with('n'))
}

/// Creates the store with a wallet and a key, and returns the key's secret.
async fn create_key(data: &Path, config: &Config, balance: Micro) -> Result<String, CommandError> {
    std::fs::create_dir(data)?;
    let settings = Settings {
        location: Settings::at(data.join("tollgate.db")).location,
        ..config.store_settings()
    };
    let store = Store::attach(&settings)?;
    let actor = actor();
    let wallet = NewWallet {
        name: NAME.to_owned(),
        balance,
        gift: Micro::ZERO,
        credit_limit: Micro::ZERO,
    };
    let wallet = store.create_wallet(wallet, &actor).await?;
    let draft = KeyDraft::named(wallet.id, NAME);
    let (_, secret) = keys::create(&store, draft, &actor).await?;
    Ok(secret)
}

/// The text model with the cheapest output, because a first call should cost next to nothing.
fn first_model(models: &[ModelSpec]) -> Option<String> {
    let texts = models.iter().filter(|model| model.kind == Kind::Text);
    let cheapest = texts.min_by_key(|model| model.price.unit_price(PriceKey::Output));
    cheapest.map(|model| model.id.clone())
}

fn show_dry_run(
    text: &str,
    file: &Path,
    data: &Path,
    context: &mut Context,
) -> Result<(), CommandError> {
    if context.json {
        return context.out.json(&json!({
            "config": file,
            "data": data,
            "text": text,
            "dry_run": true,
        }));
    }
    context.out.text(text)?;
    context.out.line(format!(
        "\n# Nothing was created. Without --dry-run, this would be {}, with a wallet and a key in {}.",
        file.display(),
        data.display()
    ))
}

/// The created files, the key's secret and a model to call.
struct InitSummary {
    file: PathBuf,
    data: PathBuf,
    secret: String,
    listen: SocketAddr,
    balance: Micro,
    models: usize,
    model: Option<String>,
    channels: Vec<&'static str>,
}

impl InitSummary {
    fn base_url(&self) -> String {
        format!("http://{}/v1", local_address(self.listen))
    }

    /// The command for a first call, if there is a text model.
    fn curl(&self) -> Option<String> {
        let body = json!({
            "model": self.model.as_ref()?,
            "messages": [{ "role": "user", "content": "Say hello to Tollgate." }],
        });
        Some(format!(
            "curl {}/chat/completions \\\n  -H 'Authorization: Bearer {}' \\\n  \
             -H 'Content-Type: application/json' \\\n  -d '{body}'",
            self.base_url(),
            self.secret
        ))
    }

    fn show(&self, context: &mut Context) -> Result<(), CommandError> {
        if context.json {
            return context.out.json(&json!({
                "config": self.file,
                "data": self.data,
                "channels": self.channels,
                "models": self.models,
                "wallet": NAME,
                "balance": self.balance.to_string(),
                "api_key": self.secret,
                "base_url": self.base_url(),
                "model": self.model,
                "curl": self.curl(),
            }));
        }
        let mut table = Table::new([("CREATED", Side::Left), ("", Side::Left)]);
        for (what, value) in [
            ("configuration", self.file.display().to_string()),
            ("data", self.data.display().to_string()),
            ("channels", self.channels.join(" ")),
            ("models", self.models.to_string()),
            ("wallet", format!("{NAME}, {} credits", self.balance)),
            ("API key", self.secret.clone()),
        ] {
            table.row([what.to_owned(), value]);
        }
        context.out.table(&table)?;
        context.out.line(
            "\nThe key is shown this once. `tollgate check` explains the models and prices; `tollgate serve` starts the \
             gateway.",
        )?;
        match self.curl() {
            Some(curl) => context.out.line(format!("\nThe first call:\n\n{curl}")),
            None => context.out.line("\nAdd a [[model]] to make a first call."),
        }
    }
}
