//! `tollgate channel …`: shows the channels, and switches them on and off.

use clap::Subcommand;
use serde_json::{Value, json};

use super::context::{Context, actor};
use super::terminal::{CommandError, Side, Table};
use crate::config::{self, Config, Plan};
use crate::operations::channel_switch::{EntriesInForce, SwitchError};

#[derive(Debug, Subcommand)]
pub(super) enum Channel {
    /// List the channels, with the reason if one cannot be used.
    List,
    /// Take a channel out of use. Running calls and open tasks finish.
    Disable {
        /// The name of the channel.
        name: String,
    },
    /// Put a channel back into use.
    Enable {
        /// The name of the channel.
        name: String,
    },
}

pub(super) async fn run(command: Channel, context: &mut Context) -> Result<(), CommandError> {
    let store = context.store()?;
    let now = EntriesInForce::read(context.config()?, &store).await?;
    let (config, switched) = match command {
        Channel::List => (now.config, None),
        Channel::Disable { name } => {
            let config = now.switch(&name, false, &store, &actor()).await?;
            (config, Some(name))
        }
        Channel::Enable { name } => {
            let config = now.switch(&name, true, &store, &actor()).await?;
            (config, Some(name))
        }
    };
    let plan = config::resolve(&config)?;
    let shown = config.channels.iter();
    let shown = shown.filter(|channel| switched.as_ref().is_none_or(|name| *name == channel.name));
    let shown: Vec<_> = shown.collect();
    if context.json {
        let mut rows = shown.into_iter().map(|it| channel_json(it, &config, &plan));
        return match switched {
            Some(_) => context.out.json(&rows.next()),
            None => context.out.json(&rows.collect::<Vec<_>>()),
        };
    }
    let mut table = Table::new([
        ("CHANNEL", Side::Left),
        ("PRESET", Side::Left),
        ("STATE", Side::Left),
        ("MODELS", Side::Right),
    ]);
    for channel in &shown {
        table.row([
            channel.name.clone(),
            channel.preset.to_string(),
            reason(&plan, &channel.name).unwrap_or("live").to_owned(),
            models(&config, &channel.name).count().to_string(),
        ]);
    }
    context.out.table(&table)?;
    if let Some(name) = switched {
        for id in models_out(&config, &plan, &name) {
            context.out.line(format!("not callable now: {id}"))?;
        }
    }
    Ok(())
}

fn channel_json(channel: &config::Channel, config: &Config, plan: &Plan) -> Value {
    json!({
        "name": channel.name,
        "preset": channel.preset.as_str(),
        "enabled": channel.enabled,
        "live": reason(plan, &channel.name).is_none(),
        "reason": reason(plan, &channel.name),
        "models": models(config, &channel.name).collect::<Vec<_>>(),
        "models_out": models_out(config, plan, &channel.name),
    })
}

fn reason<'p>(plan: &'p Plan, channel: &str) -> Option<&'p str> {
    let idle = plan.idle.iter().find(|(name, _)| name == channel);
    idle.map(|(_, reason)| reason.as_str())
}

fn models<'c>(config: &'c Config, channel: &'c str) -> impl Iterator<Item = &'c str> {
    let there = config.models.iter().filter(move |model| {
        let mut routes = model.routes.iter();
        routes.any(|route| route.channel == channel)
    });
    there.map(|model| model.id.as_str())
}

/// The models that have a route to this channel and cannot be called.
fn models_out<'c>(config: &'c Config, plan: &Plan, channel: &'c str) -> Vec<&'c str> {
    let is_out = |id: &&str| plan.unlisted.iter().any(|(unlisted, _)| unlisted == id);
    models(config, channel).filter(is_out).collect()
}

impl From<SwitchError> for CommandError {
    fn from(error: SwitchError) -> Self {
        match error {
            SwitchError::Problems(problems) => Self::Problems(problems),
            SwitchError::Store(error) => error.into(),
            other => Self::message(other.to_string()),
        }
    }
}
