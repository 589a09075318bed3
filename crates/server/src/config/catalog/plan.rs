//! The catalog of a configuration: live channels and callable models.

use std::collections::BTreeMap;

use engine::{ModelSpec, RouteSpec};
use upstream::{ChannelSpec, Preset, Secret};

use super::billable;
use super::channel::Channel;
use super::model::Model;
use crate::config::admin_token::AdminToken;
use crate::config::document::{Environment, Found, Place, Problem, process_environment};
use crate::config::load::Config;

/// The channels and models that can be used now, with their secrets.
#[derive(Debug)]
pub struct Plan {
    /// The live channels only.
    pub channels: Vec<ChannelSpec>,
    pub timeouts: upstream::Timeouts,
    /// The callable models, with their routes to live channels.
    pub models: Vec<ModelSpec>,
    /// Models of the file that cannot be called, and why.
    pub unlisted: Vec<(String, String)>,
    /// Channels of the file that cannot be used, and why.
    pub idle: Vec<(String, String)>,
    /// Without one, the admin API and the console are off.
    pub admin_token: Option<AdminToken>,
}

/// Looks up the secrets and builds the catalog.
pub fn resolve(config: &Config) -> Result<Plan, Vec<Problem>> {
    resolve_in(config, &process_environment)
}

pub(crate) fn resolve_in(
    config: &Config,
    environment: Environment<'_>,
) -> Result<Plan, Vec<Problem>> {
    let mut secrets = secrets(config, environment)?;
    let mut plan = Plan {
        channels: Vec::new(),
        timeouts: upstream::Timeouts {
            connect: config.timeouts.upstream_connect,
            first_byte: config.timeouts.upstream_first_byte,
            idle: config.timeouts.upstream_idle,
            total: config.timeouts.upstream_total,
        },
        models: Vec::new(),
        unlisted: Vec::new(),
        idle: Vec::new(),
        admin_token: secrets.admin_token,
    };
    for channel in &config.channels {
        match secrets.credentials.remove(channel.name.as_str()) {
            Some(Ok(credential)) => plan.channels.push(spec_of(channel, credential)),
            Some(Err(reason)) => plan.idle.push((channel.name.clone(), reason)),
            None => {}
        }
    }
    for model in &config.models {
        match listed(model, &plan.idle) {
            Ok(spec) => plan.models.push(spec),
            Err(reason) => plan.unlisted.push((model.id.clone(), reason)),
        }
    }
    Ok(plan)
}

/// The secrets of a configuration.
#[derive(Debug)]
pub(crate) struct Secrets<'c> {
    admin_token: Option<AdminToken>,
    /// By channel: its credential, if it needs one, or why the channel is not live.
    credentials: BTreeMap<&'c str, Result<Option<Secret>, String>>,
}

/// Looks up every secret. A secret that cannot be used is a problem; an absent one is not.
pub(crate) fn secrets<'c>(
    config: &'c Config,
    environment: Environment<'_>,
) -> Result<Secrets<'c>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut report = |place: Place, key: String, message: String| {
        let file = config.file.clone().unwrap_or_default();
        problems.push(Problem {
            file,
            place: Some(place),
            key,
            message,
        });
    };
    let mut secrets = Secrets {
        admin_token: None,
        credentials: BTreeMap::new(),
    };
    if let Some(token) = &config.admin.token {
        // An absent token turns the admin API off, which is safe. An empty one is a mistake (K8).
        match token.look(environment) {
            Ok(Found::Text(text)) => secrets.admin_token = Some(AdminToken::new(&text)),
            Ok(Found::Absent(_)) => {}
            Ok(Found::Empty(fault)) | Err(fault) => {
                report(token.place, "admin.token".to_owned(), fault);
            }
        }
    }
    // The database and the bucket cannot be used without these.
    for (key, source) in [
        ("store.password", &config.store.password),
        ("media.access_key_id", &config.media.access_key_id),
        ("media.secret_access_key", &config.media.secret_access_key),
    ] {
        let Some(source) = source else { continue };
        match source.look(environment) {
            Ok(Found::Text(_)) => {}
            Ok(Found::Absent(fault) | Found::Empty(fault)) | Err(fault) => {
                report(source.place, key.to_owned(), fault);
            }
        }
    }
    for channel in &config.channels {
        let credential = match &channel.credential {
            None if channel.preset.needs_credential() => Err("no credential is named".to_owned()),
            // Simulated upstreams require a key like real ones, and accept any.
            None if channel.preset == Preset::Sim => Ok(Some(Secret::new("sim"))),
            None => Ok(None),
            Some(named) => match named.look(environment) {
                Ok(Found::Text(text)) => Ok(Some(Secret::new(&text))),
                Ok(Found::Absent(reason) | Found::Empty(reason)) => Err(reason),
                Err(fault) => {
                    report(named.place, format!("{}.credential", channel.key), fault);
                    continue;
                }
            },
        };
        secrets.credentials.insert(&channel.name, credential);
    }
    if problems.is_empty() {
        Ok(secrets)
    } else {
        Err(problems)
    }
}

fn spec_of(channel: &Channel, credential: Option<Secret>) -> ChannelSpec {
    ChannelSpec {
        name: channel.name.clone(),
        preset: channel.preset,
        base_url: channel.base_url.clone(),
        credential,
        protocols: channel.protocols.clone(),
        private_network: channel.private_network,
        keeps_output_limit: channel.keeps_output_limit,
        client_gone_drain: channel.client_gone_drain,
        counts_tokens: channel.counts_tokens,
    }
}

/// The model as the engine takes it, or why it cannot be called (N2).
fn listed(model: &Model, idle: &[(String, String)]) -> Result<ModelSpec, String> {
    if !model.enabled {
        return Err("disabled".to_owned());
    }
    let price = model.price.as_ref().ok_or("no price")?;
    billable::check(model.kind, price, &model.profile)?;
    if model.routes.is_empty() {
        return Err("no route".to_owned());
    }
    let why_idle = |route: &RouteSpec| idle.iter().find(|(name, _)| *name == route.channel);
    let live: Vec<_> = model
        .routes
        .iter()
        .filter(|route| why_idle(route).is_none())
        .cloned()
        .collect();
    if live.is_empty() {
        let reasons = model.routes.iter().filter_map(why_idle);
        let mut reasons: Vec<_> = reasons
            .map(|(name, reason)| format!("channel {name}: {reason}"))
            .collect();
        reasons.dedup();
        return Err(format!("no live channel ({})", reasons.join("; ")));
    }
    Ok(ModelSpec {
        id: model.id.clone(),
        kind: model.kind,
        enabled: true,
        created: model.created,
        routes: live,
        price: price.clone(),
        profile: model.profile.clone().over_base(),
    })
}
