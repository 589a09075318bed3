//! Builds the live channels and callable models of a configuration.

use std::collections::BTreeMap;

use engine::{ModelSpec, RouteSpec};
use upstream::{Account, ChannelSpec, Secret};

use super::account;
use super::billable;
use super::channel::Channel;
use super::model::Model;
use crate::config::admin_token::AdminToken;
use crate::config::document::{
    Environment, FilePosition, Problem, SecretLookup, SecretSource, Tls, process_environment,
};
use crate::config::load::Config;
use crate::config::settings::read_headers;

/// The channels and models that can be used now, with their secrets.
#[derive(Debug)]
pub struct Plan {
    /// The live channels. Includes disabled channels whose credentials were found, because their open tasks are still
    /// polled.
    pub channels: Vec<ChannelSpec>,
    pub timeouts: upstream::Timeouts,
    /// The callable models, with their routes to live channels.
    pub models: Vec<ModelSpec>,
    /// Configured models that cannot be called, each with the reason.
    pub unlisted: Vec<(String, String)>,
    /// Configured channels that cannot be used, each with the reason.
    pub idle: Vec<(String, String)>,
    /// The configured admin token. Without it, only tokens in the store are valid.
    pub admin_token: Option<AdminToken>,
}

/// The reason given for models and channels with `enabled = false`.
pub(crate) const DISABLED: &str = "disabled";

impl Plan {
    pub(crate) fn disabled_channels(&self) -> impl Iterator<Item = &str> {
        let disabled = self.idle.iter().filter(|(_, reason)| reason == DISABLED);
        disabled.map(|(name, _)| name.as_str())
    }
}

/// Looks up the secrets and builds the catalog.
pub fn resolve(config: &Config) -> Result<Plan, Vec<Problem>> {
    let certificates = certificate_problems(config);
    match resolve_in(config, &process_environment) {
        Ok(plan) if certificates.is_empty() => Ok(plan),
        Ok(_) => Err(certificates),
        Err(problems) => Err([certificates, problems].concat()),
    }
}

/// Problems of listeners whose certificate or key cannot be used.
fn certificate_problems(config: &Config) -> Vec<Problem> {
    let listeners = [
        ("server.tls", &config.server.tls),
        ("admin.tls", &config.admin.tls),
    ];
    let problem = |(key, tls): (&str, &Option<Tls>)| {
        let tls = tls.as_ref()?;
        let message = http_server::load_certificate(&tls.files).err()?;
        Some(Problem {
            file: config.file.clone().unwrap_or_default(),
            position: Some(tls.position),
            key: key.to_owned(),
            message,
        })
    };
    listeners.into_iter().filter_map(problem).collect()
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
            Some(Ok(found)) => {
                plan.channels.push(channel_spec_of(channel, found));
                if !channel.enabled {
                    plan.idle.push((channel.name.clone(), DISABLED.to_owned()));
                }
            }
            Some(Err(_)) if !channel.enabled => {
                plan.idle.push((channel.name.clone(), DISABLED.to_owned()));
            }
            Some(Err(reason)) => plan.idle.push((channel.name.clone(), reason)),
            None => {}
        }
    }
    let problems = channel_problems(config, &plan.channels);
    if !problems.is_empty() {
        return Err(problems);
    }
    for model in &config.models {
        match model_spec_of(model, &plan.idle) {
            Ok(spec) => plan.models.push(spec),
            Err(reason) => plan.unlisted.push((model.id.clone(), reason)),
        }
    }
    Ok(plan)
}

/// Problems of channels whose credential or account cannot be used.
fn channel_problems(config: &Config, specs: &[ChannelSpec]) -> Vec<Problem> {
    let problem = |spec: &ChannelSpec| {
        let fault = spec.check().err()?;
        let mut channels = config.channels.iter();
        let channel = channels.find(|channel| channel.name == spec.name)?;
        Some(Problem {
            file: config.file.clone().unwrap_or_default(),
            position: channel.credential.as_ref().map(|it| it.position),
            key: channel.key.clone(),
            message: fault.to_string(),
        })
    };
    specs.iter().filter_map(problem).collect()
}

#[derive(Debug)]
struct FoundSecrets {
    credential: Option<Secret>,
    account: Account,
}

/// The looked-up secrets of a configuration.
#[derive(Debug)]
pub(crate) struct Secrets<'c> {
    admin_token: Option<AdminToken>,
    /// The credential and account of each channel, or the reason why the channel is not live.
    credentials: BTreeMap<&'c str, Result<FoundSecrets, String>>,
}

/// Looks up every secret. `Err` lists the secrets whose problems prevent the use of the configuration. If a channel's
/// credential is absent or empty, or one of its account settings cannot be looked up, only this channel is not live.
pub(crate) fn secrets<'c>(
    config: &'c Config,
    environment: Environment<'_>,
) -> Result<Secrets<'c>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut report = |position: FilePosition, key: String, message: String| {
        let file = config.file.clone().unwrap_or_default();
        problems.push(Problem {
            file,
            position: Some(position),
            key,
            message,
        });
    };
    let mut secrets = Secrets {
        admin_token: None,
        credentials: BTreeMap::new(),
    };
    if let Some(token) = &config.admin.token {
        // Without a configured token, only tokens in the store are valid, which is safe. An empty token is an
        // error (K8).
        match token.look_up(environment) {
            Ok(SecretLookup::Text(text)) => secrets.admin_token = Some(AdminToken::new(&text)),
            Ok(SecretLookup::Absent(_)) => {}
            Ok(SecretLookup::Empty(fault)) | Err(fault) => {
                report(token.position, "admin.token".to_owned(), fault);
            }
        }
    }
    if let Some(source) = &config.telemetry.headers {
        let fault = match source.look_up(environment) {
            Ok(SecretLookup::Text(text)) => read_headers(&text).err(),
            Ok(SecretLookup::Absent(fault) | SecretLookup::Empty(fault)) | Err(fault) => {
                Some(fault)
            }
        };
        if let Some(fault) = fault {
            report(source.position, "telemetry.headers".to_owned(), fault);
        }
    }
    for channel in &config.channels {
        let credential = match &channel.credential {
            None if channel.preset.needs_credential() => Err("no credential is named".to_owned()),
            None => Ok(channel.preset.default_credential().map(Secret::new)),
            Some(named) => match named.look_up(environment) {
                Ok(SecretLookup::Text(text)) => Ok(Some(Secret::new(&text))),
                Ok(SecretLookup::Absent(reason) | SecretLookup::Empty(reason)) => Err(reason),
                Err(fault) => {
                    report(named.position, format!("{}.credential", channel.key), fault);
                    continue;
                }
            },
        };
        let found = credential.and_then(|credential| {
            let account = account::look_up(&channel.account, environment)?;
            Ok(FoundSecrets {
                credential,
                account,
            })
        });
        secrets.credentials.insert(&channel.name, found);
    }
    problems.extend(storage_secret_problems(config, environment));
    if problems.is_empty() {
        Ok(secrets)
    } else {
        Err(problems)
    }
}

/// Problems of the secrets of the database and the bucket. An absent secret is a problem too, because the database and
/// the bucket cannot be used without it.
pub(crate) fn storage_secret_problems(
    config: &Config,
    environment: Environment<'_>,
) -> Vec<Problem> {
    let problem = |(key, source): (&str, &Option<SecretSource>)| {
        let source = source.as_ref()?;
        let message = match source.look_up(environment) {
            Ok(SecretLookup::Text(_)) => return None,
            Ok(SecretLookup::Absent(fault) | SecretLookup::Empty(fault)) | Err(fault) => fault,
        };
        Some(Problem {
            file: config.file.clone().unwrap_or_default(),
            position: Some(source.position),
            key: key.to_owned(),
            message,
        })
    };
    let secrets = [
        ("store.password", &config.store.password),
        ("media.access_key_id", &config.media.access_key_id),
        ("media.secret_access_key", &config.media.secret_access_key),
    ];
    secrets.into_iter().filter_map(problem).collect()
}

fn channel_spec_of(channel: &Channel, found: FoundSecrets) -> ChannelSpec {
    ChannelSpec {
        name: channel.name.clone(),
        preset: channel.preset,
        base_url: channel.base_url.clone(),
        credential: found.credential,
        account: found.account,
        protocols: channel.protocols.clone(),
        private_network: channel.private_network,
        keeps_output_limit: channel.keeps_output_limit,
        client_gone_drain: channel.client_gone_drain,
        counts_tokens: channel.counts_tokens,
        sends_traceparent: channel.sends_traceparent,
    }
}

/// Converts the model for the engine, or returns the reason why it cannot be called (N2).
fn model_spec_of(model: &Model, idle: &[(String, String)]) -> Result<ModelSpec, String> {
    if !model.enabled {
        return Err(DISABLED.to_owned());
    }
    let price = model.price.as_ref().ok_or("no price")?;
    billable::check(model.kind, price, &model.profile)?;
    if model.routes.is_empty() {
        return Err(match &model.unfit_channels[..] {
            [] => "no route".to_owned(),
            reasons => reasons.join("; "),
        });
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
        routing: model.routing.clone(),
        price: price.clone(),
        profile: model.profile.clone().over_base(),
    })
}
