//! `tollgate check`: reports the problems of a configuration, or shows its catalog.

use clap::Args;
use ledger::PriceKey;
use serde_json::{Value, json};

use super::live;
use crate::cli::context::Context;
use crate::cli::price_text::price_text;
use crate::cli::terminal::{CommandError, Side, Table};
use crate::config::{self, Config, DISABLED, Plan, Source, Sources};
use crate::operations::live_check::{self, LiveReport};

/// The arguments of the command.
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// Fail if an enabled channel or an enabled model cannot be used.
    #[arg(long)]
    strict: bool,
    /// Ask every channel for its models, and test the store and the media storage. Calls no model.
    #[arg(long)]
    live: bool,
}

pub(in crate::cli) async fn run(
    command: &Check,
    context: &mut Context,
) -> Result<(), CommandError> {
    let checked = context
        .config()
        .and_then(|config| Ok((config::resolve(&config)?, config)));
    let (plan, config) = match checked {
        Ok(checked) => checked,
        Err(CommandError::Problems(problems)) if context.json => {
            context
                .out
                .json(&json!({ "ok": false, "problems": problems }))?;
            return Err(CommandError::Reported);
        }
        Err(stop) => return Err(stop),
    };
    let report = if command.live {
        Some(live_check::run(&plan, &config).await)
    } else {
        None
    };
    let is_fine = is_complete(&plan) && report.as_ref().is_none_or(LiveReport::is_ok);
    let fails = command.strict && !is_fine;
    if context.json {
        let mut answer = plan_json(&plan, &config);
        if let Some(report) = &report {
            answer["live"] = live::to_json(report);
        }
        if fails {
            answer["ok"] = json!(false);
        }
        context.out.json(&answer)?;
    } else {
        show(&plan, &config, context)?;
        if let Some(report) = &report {
            live::show(report, &mut context.out)?;
        }
    }
    if !fails {
        Ok(())
    } else if context.json {
        Err(CommandError::Reported)
    } else {
        Err(CommandError::message(
            "not everything in this configuration can be used (--strict)",
        ))
    }
}

/// Whether every enabled channel is live and every enabled model callable.
fn is_complete(plan: &Plan) -> bool {
    let mut unusable = plan.idle.iter().chain(&plan.unlisted);
    unusable.all(|(_, reason)| reason == DISABLED)
}

fn show(plan: &Plan, config: &Config, context: &mut Context) -> Result<(), CommandError> {
    let out = &mut context.out;
    out.line(format!("store   {}", config.store.url.shown()))?;
    out.line(format!("listen  {}", config.server.listen))?;
    let admin = if plan.admin_token.is_some() {
        "with admin API"
    } else {
        "health and metrics only: no admin token"
    };
    out.line(format!("admin   {} ({admin})", config.admin.listen))?;
    let debt_limit = config.ledger.debt_limit;
    out.line(format!(
        "debt    at most {debt_limit} credits below a wallet's credit line"
    ))?;
    let known = config.catalog.known_models();
    if let Ok(known) = known {
        let file = match &config.catalog.file {
            Some(file) => format!(", with {}", file.display()),
            None => String::new(),
        };
        out.line(format!("catalog {} ({}){file}", known.version, known.date))?;
    }
    out.line("")?;
    out.table(&channels(plan, config))?;
    out.line("")?;
    out.table(&models(plan, config))?;
    if !plan.unlisted.is_empty() {
        let mut table = Table::new([("NOT CALLABLE", Side::Left), ("WHY", Side::Left)]);
        for (id, reason) in &plan.unlisted {
            table.row([id.clone(), reason.clone()]);
        }
        out.line("")?;
        out.table(&table)?;
    }
    out.line("")?;
    for (id, note) in notes(plan, config) {
        out.line(format!("note: {id}: {note}"))?;
    }
    let (listed, unlisted) = (plan.models.len(), plan.unlisted.len());
    out.line(format!("ok: callable {listed}, not callable {unlisted}"))
}

/// Notes about callable models, for the operator.
fn notes<'p>(plan: &'p Plan, config: &'p Config) -> Vec<(&'p str, &'p str)> {
    const TEXT: &str = "text tokens of its realtime sessions have no price (`input`, `output`)";
    const LONG_CACHE: &str =
        "requests for a cache of one hour are refused, as `cache_write_1h` is not set";
    const FALLBACK_OUT: &str = "a model that it falls back to cannot be called";
    let mut notes = Vec::new();
    for model in &plan.models {
        let is_realtime = model.price.unit_price(PriceKey::RealtimeMinute).is_some();
        if is_realtime && !model.price.prices_text() {
            notes.push((model.id.as_str(), TEXT));
        }
        if model.price.underprices_long_cache_writes() {
            notes.push((model.id.as_str(), LONG_CACHE));
        }
        let is_out = |id: &&String| plan.unlisted.iter().any(|(unlisted, _)| unlisted == *id);
        if model.routing.fallbacks.iter().any(|id| is_out(&id)) {
            notes.push((model.id.as_str(), FALLBACK_OUT));
        }
        let entry = config.models.iter().find(|entry| entry.id == model.id);
        let own = entry.map_or(&[][..], |entry| &entry.notes);
        notes.extend(own.iter().map(|note| (model.id.as_str(), note.as_str())));
    }
    notes
}

/// Describes the catalog of known models that the configuration uses.
fn catalog_json(config: &Config) -> Value {
    let known = config.catalog.known_models().ok();
    json!({
        "version": known.as_ref().map(|known| known.version.as_str()),
        "date": known.as_ref().map(|known| known.date),
        "file": config.catalog.file,
    })
}

fn channels(plan: &Plan, config: &Config) -> Table {
    let mut table = Table::new([
        ("CHANNEL", Side::Left),
        ("PRESET", Side::Left),
        ("ADDRESS", Side::Left),
        ("SPEAKS", Side::Left),
        ("STATE", Side::Left),
    ]);
    for channel in &config.channels {
        let idle = plan.idle.iter().find(|(name, _)| *name == channel.name);
        let spoken: Vec<_> = channel.protocols().iter().map(|it| it.as_str()).collect();
        table.row([
            channel.name.clone(),
            channel.preset.to_string(),
            channel.base_url(),
            spoken.join(" "),
            idle.map_or_else(|| "live".to_owned(), |(_, reason)| reason.clone()),
        ]);
    }
    table
}

fn models(plan: &Plan, config: &Config) -> Table {
    let mut table = Table::new([
        ("MODEL", Side::Left),
        ("KIND", Side::Left),
        ("ROUTES", Side::Left),
        ("PRICE", Side::Left),
        ("FROM", Side::Left),
    ]);
    for model in &plan.models {
        let routes: Vec<_> = model
            .routes
            .iter()
            .map(|route| format!("{}:{}", route.channel, route.model))
            .collect();
        table.row([
            model.id.clone(),
            model.kind.as_str().to_owned(),
            routes.join(" "),
            price_text(&json!(model.price)),
            sources_of(&model.id, config).map_or_else(String::new, source_text),
        ]);
    }
    table
}

fn sources_of<'c>(id: &str, config: &'c Config) -> Option<&'c Sources> {
    let entry = config.models.iter().find(|model| model.id == id);
    entry.map(|model| &model.sources)
}

/// The values that do not come from the file, by source: `catalog: kind price*1.2 profile`.
fn source_text(sources: &Sources) -> String {
    let mut parts = Vec::new();
    for source in [
        Source::Channel,
        Source::Catalog,
        Source::CatalogFile,
        Source::Default,
    ] {
        let from_there = sources
            .by_name()
            .into_iter()
            .filter(|(_, it)| *it == source);
        let names: Vec<_> = from_there
            .map(|(name, _)| match sources.markup {
                Some(markup) if name == "price" => format!("price*{markup}"),
                _ => name.to_owned(),
            })
            .collect();
        if !names.is_empty() {
            parts.push(format!("{}: {}", source.as_str(), names.join(" ")));
        }
    }
    if parts.is_empty() {
        parts.push(Source::File.as_str().to_owned());
    }
    parts.join("; ")
}

fn plan_json(plan: &Plan, config: &Config) -> Value {
    let channels = config.channels.iter().map(|channel| {
        let idle = plan.idle.iter().find(|(name, _)| *name == channel.name);
        let spoken: Vec<_> = channel.protocols().iter().map(|it| it.as_str()).collect();
        json!({
            "name": channel.name,
            "preset": channel.preset.as_str(),
            "enabled": channel.enabled,
            "base_url": channel.base_url(),
            "protocols": spoken,
            "keeps_output_limit": channel.keeps_output_limit(),
            "client_gone_drain_ms": channel
                .client_gone_drain
                .unwrap_or(config.timeouts.client_gone_drain)
                .as_millis(),
            "counts_tokens": channel.counts_tokens(),
            "sends_traceparent": channel.sends_traceparent,
            "live": idle.is_none(),
            "reason": idle.map(|(_, reason)| reason),
        })
    });
    let models = plan.models.iter().map(|model| {
        let routes = model.routes.iter().map(|route| {
            json!({
                "channel": route.channel,
                "model": route.model,
                "priority": route.priority,
                "weight": route.weight,
                "dialect": route.dialect,
                "rpm": route.limits.rpm,
                "tpm": route.limits.tpm,
                "cost": route.cost,
            })
        });
        json!({
            "id": model.id,
            "kind": model.kind,
            "created": model.created,
            "price": model.price,
            "profile": model.profile,
            "routes": routes.collect::<Vec<_>>(),
            "order": model.routing.order.as_str(),
            "sticky": model.routing.sticky,
            "fallbacks": model.routing.fallbacks,
            "source": sources_of(&model.id, config),
        })
    });
    let unlisted = plan.unlisted.iter();
    let unlisted = unlisted.map(|(id, reason)| json!({ "id": id, "reason": reason }));
    let notes = notes(plan, config).into_iter();
    let notes = notes.map(|(id, note)| json!({ "id": id, "note": note }));
    json!({
        "ok": true,
        "listen": config.server.listen,
        "admin": { "listen": config.admin.listen, "token": plan.admin_token.is_some() },
        "store": config.store.url.shown(),
        "debt_limit": config.ledger.debt_limit.to_string(),
        "channels": channels.collect::<Vec<_>>(),
        "catalog": catalog_json(config),
        "models": models.collect::<Vec<_>>(),
        "unlisted": unlisted.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
    })
}
