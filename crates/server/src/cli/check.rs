//! `tollgate check`: the problems of a configuration, or its catalog.

use ledger::PriceKey;
use serde_json::{Value, json};

use super::context::Context;
use super::terminal::{CommandError, Side, Table};
use crate::config::{self, Config, Plan};

pub(super) fn run(context: &mut Context) -> Result<(), CommandError> {
    let checked = context
        .config()
        .and_then(|config| Ok((config::resolve(&config)?, config)));
    match checked {
        Ok((plan, config)) if context.json => context.out.json(&plan_json(&plan, &config)),
        Ok((plan, config)) => show(&plan, &config, context),
        Err(CommandError::Problems(problems)) if context.json => {
            context
                .out
                .json(&json!({ "ok": false, "problems": problems }))?;
            Err(CommandError::Reported)
        }
        Err(stop) => Err(stop),
    }
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
    out.line("")?;
    out.table(&channels(plan, config))?;
    out.line("")?;
    out.table(&models(plan))?;
    if !plan.unlisted.is_empty() {
        let mut table = Table::new([("NOT CALLABLE", Side::Left), ("WHY", Side::Left)]);
        for (id, reason) in &plan.unlisted {
            table.row([id.clone(), reason.clone()]);
        }
        out.line("")?;
        out.table(&table)?;
    }
    out.line("")?;
    for (id, note) in notes(plan) {
        out.line(format!("note: {id}: {note}"))?;
    }
    let (listed, unlisted) = (plan.models.len(), plan.unlisted.len());
    out.line(format!("ok: callable {listed}, not callable {unlisted}"))
}

/// What an operator should know about callable models.
fn notes(plan: &Plan) -> Vec<(&str, &'static str)> {
    const TEXT: &str = "text tokens of its realtime sessions have no price (`input`, `output`)";
    const LONG_CACHE: &str =
        "requests for a cache of one hour are refused, as `cache_write_1h` is not set";
    let mut notes = Vec::new();
    for model in &plan.models {
        let is_realtime = model.price.unit_price(PriceKey::RealtimeMinute).is_some();
        if is_realtime && !model.price.prices_text() {
            notes.push((model.id.as_str(), TEXT));
        }
        if model.price.underprices_long_cache_writes() {
            notes.push((model.id.as_str(), LONG_CACHE));
        }
    }
    notes
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
            channel.base_url().to_owned(),
            spoken.join(" "),
            idle.map_or_else(|| "live".to_owned(), |(_, reason)| reason.clone()),
        ]);
    }
    table
}

fn models(plan: &Plan) -> Table {
    let mut table = Table::new([
        ("MODEL", Side::Left),
        ("KIND", Side::Left),
        ("ROUTES", Side::Left),
        ("PRICE", Side::Left),
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
        ]);
    }
    table
}

/// A price card on one line: `input 1.25 output 10 image(default 0.04 high 0.17)`.
fn price_text(card: &Value) -> String {
    match card {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| price_rank(name));
            let members = members.into_iter().map(|(name, value)| match value {
                Value::Object(_) | Value::Array(_) => format!("{name}({})", price_text(value)),
                other => format!("{name} {}", price_text(other)),
            });
            members.collect::<Vec<_>>().join(" ")
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(price_text).collect();
            items.join("; ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The order of price keys: bounds and defaults, then the keys in the order of the ledger, then the rest.
fn price_rank(name: &str) -> usize {
    let known = PriceKey::ALL.iter().position(|key| key.as_str() == name);
    match name {
        "default" | "above_tokens" => 0,
        _ => known.map_or(usize::MAX, |place| place + 1),
    }
}

fn plan_json(plan: &Plan, config: &Config) -> Value {
    let channels = config.channels.iter().map(|channel| {
        let idle = plan.idle.iter().find(|(name, _)| *name == channel.name);
        let spoken: Vec<_> = channel.protocols().iter().map(|it| it.as_str()).collect();
        json!({
            "name": channel.name,
            "preset": channel.preset.as_str(),
            "base_url": channel.base_url(),
            "protocols": spoken,
            "keeps_output_limit": channel.keeps_output_limit(),
            "client_gone_drain_ms": channel
                .client_gone_drain
                .unwrap_or(config.timeouts.client_gone_drain)
                .as_millis(),
            "counts_tokens": channel.counts_tokens(),
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
            })
        });
        json!({
            "id": model.id,
            "kind": model.kind,
            "created": model.created,
            "price": model.price,
            "profile": model.profile,
            "routes": routes.collect::<Vec<_>>(),
        })
    });
    let unlisted = plan.unlisted.iter();
    let unlisted = unlisted.map(|(id, reason)| json!({ "id": id, "reason": reason }));
    let notes = notes(plan).into_iter();
    let notes = notes.map(|(id, note)| json!({ "id": id, "note": note }));
    json!({
        "ok": true,
        "listen": config.server.listen,
        "admin": { "listen": config.admin.listen, "token": plan.admin_token.is_some() },
        "store": config.store.url.shown(),
        "debt_limit": config.ledger.debt_limit.to_string(),
        "channels": channels.collect::<Vec<_>>(),
        "models": models.collect::<Vec<_>>(),
        "unlisted": unlisted.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_told_on_one_line() {
        let card = json!({
            "output": "10",
            "input": "1.25",
            "image": { "2k": "0.07", "default": "0.04", "high": "0.17" },
            "long_context": [{ "above_tokens": 200_000, "input": "2.5" }],
        });
        assert_eq!(
            price_text(&card),
            "input 1.25 output 10 image(default 0.04 2k 0.07 high 0.17) \
             long_context(above_tokens 200000 input 2.5)"
        );
    }
}
