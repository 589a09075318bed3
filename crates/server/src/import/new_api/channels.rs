//! Converts channels, and adds routes for their models.

use std::collections::BTreeMap;

use serde_json::Value;
use store::{ForeignRow, ForeignTable};
use upstream::Preset;

use super::SYSTEM;
use super::presets::{Target, find_preset, target};
use super::tables::{Project, Tables};
use crate::import::draft::{
    ADDRESS_NOT_COPIED, DraftChannel, DraftRoute, may_hold_secret, needs_account,
};
use crate::import::plan::ImportPlan;

/// Maps the priorities of the other system to ours. Its highest priority becomes 0, which is tried first here.
fn priorities(tables: &Tables) -> BTreeMap<i64, u32> {
    let found = tables.channels.rows();
    let mut found: Vec<i64> = found
        .map(|row| row.number("priority").unwrap_or(0))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    found.into_iter().zip(0..).collect()
}

pub(super) fn read(tables: &Tables, project: Project, plan: &mut ImportPlan) {
    let priorities = priorities(tables);
    for row in tables.channels.rows() {
        let priority = row.number("priority").unwrap_or(0);
        let priority = priorities.get(&priority).copied().unwrap_or(0);
        read_channel(row, project, priority, plan);
    }
    for row in tables.abilities.iter().flat_map(ForeignTable::rows) {
        check_ability(row, plan);
    }
}

struct Account {
    preset: Preset,
    base_url: Option<String>,
}

fn read_channel(row: ForeignRow<'_>, project: Project, priority: u32, plan: &mut ImportPlan) {
    let id = row.text("id").unwrap_or_default();
    let origin = format!("channels:{id}");
    if row.number("status") != Some(1) {
        plan.report(&origin, "the channel is switched off");
        return;
    }
    let account = match account(row, project) {
        Ok(account) => account,
        Err(reason) => {
            plan.report(&origin, reason);
            return;
        }
    };
    for column in ["param_override", "header_override"] {
        if row
            .text(column)
            .is_some_and(|it| it != "{}" && it != "null")
        {
            plan.report(&origin, format!("its {column} is not carried"));
        }
    }
    let keys = live_keys(row);
    let weight = row.number("weight").and_then(|it| u32::try_from(it).ok());
    let weight = weight
        .filter(|_| project == Project::NewApi)
        .unwrap_or(0)
        .max(1);
    let mut channels = Vec::new();
    for number in 1..=keys {
        let name = row.text("name").unwrap_or(&origin);
        let name = plan.catalog.channel_name(&match keys {
            1 => name.to_owned(),
            _ => format!("{name}-{number}"),
        });
        let variable = match keys {
            1 => format!("NEW_API_CHANNEL_{id}_KEY"),
            _ => format!("NEW_API_CHANNEL_{id}_KEY_{number}"),
        };
        let place = match keys {
            1 => format!("column key of {origin}"),
            _ => format!("live key {number} in column key of {origin}"),
        };
        plan.catalog.variables.insert(variable.clone(), place);
        plan.catalog.channels.push(DraftChannel {
            name: name.clone(),
            preset: account.preset,
            base_url: account.base_url.clone(),
            variable: Some(variable),
            has_all_models: false,
            comments: vec![format!("{origin} {}", row.text("name").unwrap_or_default())],
        });
        channels.push(name);
    }
    let mapping = mapping(row);
    for public in list(row, "models") {
        let upstream = match mapped_name(&mapping, public) {
            Ok(upstream) => upstream,
            Err(reason) => {
                plan.report(&origin, format!("model {public}: {reason}"));
                continue;
            }
        };
        let id = plan
            .catalog
            .id_for(SYSTEM, public, Some((account.preset, &upstream)));
        let model = plan.catalog.models.entry(id).or_default();
        model
            .routes
            .extend(channels.iter().map(|channel| DraftRoute {
                channel: channel.clone(),
                model: upstream.clone(),
                priority,
                weight,
            }));
    }
}

fn account(row: ForeignRow<'_>, project: Project) -> Result<Account, String> {
    let number = row.number("type").unwrap_or(0);
    let entered = row.text("base_url").map(|url| url.trim_end_matches('/'));
    let (name, ending) = match target(project, number) {
        Target::None(reason) => return Err(format!("type {number}: {reason}")),
        Target::Preset(name, ending) => (name, ending),
        Target::OpenAi => match entered {
            Some(url) if !url.contains("api.openai.com") => ("openai-compatible", "/v1"),
            _ => ("openai", "/v1"),
        },
    };
    let preset =
        find_preset(name).ok_or_else(|| format!("type {number}: no preset {name} here"))?;
    if needs_account(preset) {
        return Err(format!(
            "an account of {name} has more settings than a key; write its channel by hand"
        ));
    }
    if entered.is_some_and(|url| url.contains("{model}")) {
        return Err("its address contains the model, which no preset allows".to_owned());
    }
    if entered.is_some_and(may_hold_secret) {
        return Err(ADDRESS_NOT_COPIED.to_owned());
    }
    let base_url = entered.map(|url| {
        let ending = if url.ends_with(ending) { "" } else { ending };
        format!("{url}{ending}")
    });
    if base_url.is_none() && preset.base_url().is_none() {
        return Err(format!(
            "type {number} needs an address, and the channel has none"
        ));
    }
    Ok(Account { preset, base_url })
}

/// The number of keys of a channel that are in use.
fn live_keys(row: ForeignRow<'_>) -> usize {
    let info = row.text("channel_info").unwrap_or("{}");
    let info: Value = serde_json::from_str(info).unwrap_or_default();
    if info["is_multi_key"] != Value::Bool(true) {
        return 1;
    }
    let text = row.text("key").unwrap_or_default();
    let count = match serde_json::from_str::<Vec<Value>>(text) {
        Ok(keys) => keys.len(),
        Err(_) => text.lines().filter(|line| !line.trim().is_empty()).count(),
    };
    let is_off = |number: usize| {
        let status = &info["multi_key_status_list"][number.to_string()];
        matches!(status.as_i64(), Some(2 | 3))
    };
    (0..count).filter(|number| !is_off(*number)).count().max(1)
}

fn list<'r>(row: ForeignRow<'r>, column: &str) -> impl Iterator<Item = &'r str> {
    let names = row.text(column).unwrap_or_default().split(',');
    names.map(str::trim).filter(|name| !name.is_empty())
}

fn mapping(row: ForeignRow<'_>) -> BTreeMap<String, String> {
    let text = row.text("model_mapping").unwrap_or("{}");
    serde_json::from_str(text).unwrap_or_default()
}

/// The upstream's name for a model. The mapping is followed until a name has no entry.
fn mapped_name(mapping: &BTreeMap<String, String>, public: &str) -> Result<String, String> {
    let mut name = public;
    for _ in 0..=mapping.len() {
        match mapping.get(name) {
            Some(next) if next == name => return Ok(name.to_owned()),
            Some(next) => name = next,
            None => return Ok(name.to_owned()),
        }
    }
    Err("its model_mapping goes in a circle".to_owned())
}

/// Reports a model that the other system has enabled for a channel, if no imported channel lists it. If the channel is
/// already reported, nothing is added.
fn check_ability(row: ForeignRow<'_>, plan: &mut ImportPlan) {
    let (Some(model), Some(channel)) = (row.text("model"), row.text("channel_id")) else {
        return;
    };
    if !row.flag("enabled") || plan.catalog.ids.contains_key(model) {
        return;
    }
    let origin = format!("channels:{channel}");
    let is_reported = plan.leftovers.iter().any(|it| it.origin == origin);
    if !is_reported {
        plan.report(
            &origin,
            format!("model {model} is enabled there, but the channel does not list it"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_followed_to_its_end_and_never_in_a_circle() {
        let mapping: BTreeMap<String, String> =
            [("a", "b"), ("b", "c"), ("x", "y"), ("y", "x"), ("s", "s")]
                .map(|(from, to)| (from.to_owned(), to.to_owned()))
                .into();
        for (name, expected) in [
            ("a", Some("c")),
            ("d", Some("d")),
            ("s", Some("s")),
            ("x", None),
        ] {
            assert_eq!(
                mapped_name(&mapping, name).ok().as_deref(),
                expected,
                "{name}"
            );
        }
    }
}
