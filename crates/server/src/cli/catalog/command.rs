//! Lists and shows known models, and compares them with other catalogs.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{import, source};
use crate::cli::context::Context;
use crate::cli::price_text::price_text;
use crate::cli::terminal::{CommandError, Output, Side, Table};
use crate::config::Config;
use crate::known_models::import::{Change, Form, Merged, merge, read};
use crate::known_models::{KnownModel, KnownModels, Origin};

#[derive(Debug, Subcommand)]
pub(crate) enum Catalog {
    /// List the known models.
    List {
        /// Only models that channels of this preset serve.
        #[arg(long)]
        preset: Option<upstream::Preset>,
    },
    /// Show everything that is known about one model.
    Show {
        /// The id of the model, as `tollgate catalog list` shows it.
        #[arg(value_name = "MODEL")]
        id: String,
    },
    /// Show what an import from another catalog would change, and change nothing.
    Diff(Compared),
    /// Show the prices and limits of another catalog that differ, and import them.
    Import {
        #[command(flatten)]
        compared: Compared,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// The catalog to compare with.
#[derive(Debug, Args)]
pub(crate) struct Compared {
    /// A file or URL: a catalog in our format, `LiteLLM`'s model prices, or models.dev's api.json.
    #[arg(value_name = "FILE_OR_URL")]
    place: String,
    /// The format, if it cannot be detected from the text.
    #[arg(long)]
    form: Option<Form>,
    /// Add models that are not known yet.
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(command: Catalog, context: &mut Context) -> Result<(), CommandError> {
    let config = context.config_or_default()?;
    let known = config
        .catalog
        .known_models()
        .map_err(CommandError::message)?;
    match command {
        Catalog::List { preset } => list(&known, preset, context),
        Catalog::Show { id } => show(&known, &id, context),
        Catalog::Diff(compared) => {
            let merged = compare(&compared, &known, &config).await?;
            show_comparison(&merged, false, context)
        }
        Catalog::Import { compared, yes } => {
            let merged = compare(&compared, &known, &config).await?;
            let is_wanted = !merged.entries.is_empty() && {
                if !context.json {
                    show_changes(&merged, &mut context.out)?;
                }
                yes || import::confirm(merged.entries.len())?
            };
            if is_wanted {
                import::write(&merged.entries, &config, context)?;
            }
            if context.json {
                show_comparison(&merged, is_wanted, context)
            } else if merged.entries.is_empty() {
                show_changes(&merged, &mut context.out)
            } else {
                Ok(())
            }
        }
    }
}

async fn compare(
    compared: &Compared,
    known: &KnownModels,
    config: &Config,
) -> Result<Merged, CommandError> {
    let text = source::read(&compared.place, config).await?;
    let (form, proposals) = read(&text, compared.form)
        .map_err(|fault| CommandError::message(format!("{}: {fault}", compared.place)))?;
    let source = match form {
        Form::Tollgate => compared.place.clone(),
        Form::Litellm => format!("LiteLLM price map: {}", compared.place),
        Form::ModelsDev => format!("models.dev: {}", compared.place),
    };
    Ok(merge(known, proposals, compared.all, &source))
}

fn list(
    known: &KnownModels,
    preset: Option<upstream::Preset>,
    context: &mut Context,
) -> Result<(), CommandError> {
    let fits = |model: &KnownModel| preset.is_none_or(|preset| model.offer(preset).is_some());
    let models: Vec<_> = known.iter().filter(|(model, _)| fits(model)).collect();
    if context.json {
        let models: Vec<_> = models.iter().map(|it| model_json(*it)).collect();
        return context.out.json(&json!({
            "version": known.version,
            "date": known.date,
            "models": models,
        }));
    }
    let mut table = Table::new([
        ("MODEL", Side::Left),
        ("KIND", Side::Left),
        ("PRESETS", Side::Left),
        ("PRICE", Side::Left),
        ("NOTE", Side::Left),
    ]);
    for (model, _) in &models {
        let presets: Vec<_> = model.vendors.iter().map(|it| it.preset.as_str()).collect();
        table.row([
            model.id.clone(),
            model.kind.as_str().to_owned(),
            presets.join(" "),
            price_text(&json!(model.price)),
            model
                .unsure
                .as_ref()
                .map_or_else(String::new, |it| format!("unsure: {it}")),
        ]);
    }
    context.out.table(&table)?;
    let (version, date, count) = (&known.version, known.date, models.len());
    context
        .out
        .line(format!("\n{count} models, catalog {version} ({date})"))
}

fn model_json((model, origin): (&KnownModel, Origin)) -> Value {
    let mut value = json!(model);
    value["origin"] = json!(match origin {
        Origin::BuiltIn => "catalog",
        Origin::File => "catalog-file",
    });
    value
}

fn show(known: &KnownModels, id: &str, context: &mut Context) -> Result<(), CommandError> {
    let Some(found) = known.find(id) else {
        return Err(CommandError::message(format!(
            "the catalog knows no model {id}; `tollgate catalog list` shows those it knows"
        )));
    };
    if context.json {
        return context.out.json(&model_json(found));
    }
    let (model, origin) = found;
    let mut table = Table::new([("VALUE", Side::Left), ("", Side::Left)]);
    for Change { what, after, .. } in crate::known_models::import::changes(None, model) {
        table.row([what, after.unwrap_or_default()]);
    }
    table.row(["source".to_owned(), model.source.clone()]);
    context.out.table(&table)?;
    let from = match origin {
        Origin::BuiltIn => "the catalog of this program",
        Origin::File => "the file that [catalog] names",
    };
    context.out.line(format!("\nfrom {from}"))
}

fn show_comparison(
    merged: &Merged,
    is_written: bool,
    context: &mut Context,
) -> Result<(), CommandError> {
    if !context.json {
        return show_changes(merged, &mut context.out);
    }
    let changes = merged.changes.iter().map(|change| {
        json!({
            "id": change.id,
            "what": change.what,
            "before": change.before,
            "after": change.after,
            "direction": change.direction.as_str(),
        })
    });
    let unmapped = merged.unmapped.iter();
    let unmapped = unmapped.map(|(name, reason)| json!({ "name": name, "reason": reason }));
    context.out.json(&json!({
        "changes": changes.collect::<Vec<_>>(),
        "unmapped": unmapped.collect::<Vec<_>>(),
        "unchanged": merged.unchanged,
        "unknown": merged.unknown,
        "written": is_written,
    }))
}

fn show_changes(merged: &Merged, out: &mut Output) -> Result<(), CommandError> {
    let mut changes = Table::new([
        ("MODEL", Side::Left),
        ("VALUE", Side::Left),
        ("BEFORE", Side::Right),
        ("AFTER", Side::Right),
        ("", Side::Left),
    ]);
    for change in &merged.changes {
        changes.row([
            change.id.clone(),
            change.what.clone(),
            change.before.clone().unwrap_or_default(),
            change.after.clone().unwrap_or_default(),
            change.direction.as_str().to_owned(),
        ]);
    }
    if !merged.changes.is_empty() {
        out.table(&changes)?;
        out.line("")?;
    }
    if !merged.unmapped.is_empty() {
        let mut table = Table::new([("NOT MAPPED", Side::Left), ("WHY", Side::Left)]);
        for (name, reason) in &merged.unmapped {
            table.row([name.clone(), reason.clone()]);
        }
        out.table(&table)?;
        out.line("")?;
    }
    out.line(format!(
        "models that change: {}, as they are known: {}, not known and left out (--all adds them): {}, not mapped: {}",
        merged.entries.len(),
        merged.unchanged,
        merged.unknown,
        merged.unmapped.len()
    ))
}
