//! `tollgate key …`: the API keys of wallets.

use clap::{Args, Subcommand};
use ledger::{Micro, UnixMs};
use serde_json::json;
use store::{Actor, Digest, KeyChange, KeyId, KeyLimits, KeyRow, NewKey, Store};

use super::view::{key_json, key_table};
use super::{secret, wallet};
use crate::cli::context::{Context, actor};
use crate::cli::terminal::{CommandError, TimeArg, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Create a key. Its secret is shown once and never again.
    Create {
        /// The wallet that pays, by name or id.
        #[arg(long, value_name = "NAME_OR_ID")]
        wallet: String,
        /// A name for people.
        #[arg(long)]
        name: Option<String>,
        /// What the key may spend in all.
        #[arg(long, value_name = "CREDITS", value_parser = wallet::credits)]
        limit: Option<Micro>,
        /// Requests per minute.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        rpm: Option<u32>,
        /// Tokens per minute.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        tpm: Option<u32>,
        /// Requests in flight.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        concurrency: Option<u32>,
        /// When the key expires: 30d, 12h, 2s, or a time such as 2026-12-31T00:00:00Z.
        #[arg(long, value_name = "WHEN", value_parser = time::parse)]
        expires: Option<TimeArg>,
    },
    /// List keys.
    List {
        /// Only the keys of this wallet.
        #[arg(long, value_name = "NAME_OR_ID")]
        wallet: Option<String>,
    },
    /// Show one key.
    Show { id: KeyId },
    /// Change the limits of a key; `none` removes a limit.
    Update {
        id: KeyId,
        #[command(flatten)]
        changes: Changes,
    },
    /// Refuse the key from now on; open streams finish.
    Disable { id: KeyId },
    /// Accept the key again.
    Enable { id: KeyId },
}

/// At least one of these is required.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Changes {
    /// A name for people.
    #[arg(long)]
    name: Option<String>,
    /// What the key may spend in all, or `none`.
    #[arg(long, value_name = "CREDITS", value_parser = credits_or_none)]
    limit: Option<LimitChange<Micro>>,
    /// Requests per minute, or `none`.
    #[arg(long, value_parser = count_or_none)]
    rpm: Option<LimitChange<u32>>,
    /// Tokens per minute, or `none`.
    #[arg(long, value_parser = count_or_none)]
    tpm: Option<LimitChange<u32>>,
    /// Requests in flight, or `none`.
    #[arg(long, value_parser = count_or_none)]
    concurrency: Option<LimitChange<u32>>,
    /// When the key expires: 30d, 2s, a time such as 2026-12-31T00:00:00Z, or `none`.
    #[arg(long, value_name = "WHEN", value_parser = time_or_none)]
    expires: Option<LimitChange<TimeArg>>,
}

/// A new value for a limit; the word `none` removes the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitChange<T> {
    Set(T),
    Lift,
}

impl<T> LimitChange<T> {
    fn read(text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Lift),
            value => read(value).map(Self::Set),
        }
    }

    fn into_option(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Lift => None,
        }
    }
}

pub(crate) async fn run(command: Key, context: &mut Context) -> Result<(), CommandError> {
    let (store, actor) = (context.store()?, actor());
    let row = match command {
        Key::Create {
            wallet,
            name,
            limit,
            rpm,
            tpm,
            concurrency,
            expires,
        } => {
            let limits = KeyLimits {
                limit,
                rpm,
                tpm,
                concurrency,
                expires_at: expires.map(expiry).transpose()?,
            };
            let (row, secret) = create(&store, &wallet, name, limits, &actor).await?;
            return show_secret_once(&row, &secret, context);
        }
        Key::List { wallet } => return list(&store, wallet.as_deref(), context).await,
        Key::Show { id } => find(&store, &id).await?,
        Key::Update { id, changes } => store.update_key(id, changes.read()?, &actor).await?,
        Key::Disable { id } => store.set_key_enabled(id, false, &actor).await?,
        Key::Enable { id } => store.set_key_enabled(id, true, &actor).await?,
    };
    if context.json {
        context.out.json(&key_json(&row))
    } else {
        context.out.table(&key_table([&row]))
    }
}

/// Creates a key. The secret is returned and stored nowhere.
pub(crate) async fn create(
    store: &Store,
    wallet: &str,
    name: Option<String>,
    limits: KeyLimits,
    actor: &Actor,
) -> Result<(KeyRow, String), CommandError> {
    let wallet = wallet::find(store, wallet).await?.id;
    let (secret, shown_prefix) = secret::fresh();
    let key = NewKey {
        wallet,
        name,
        digest: Digest::of(secret.as_bytes()),
        shown_prefix,
        limits,
    };
    Ok((store.create_key(key, actor).await?, secret))
}

fn show_secret_once(row: &KeyRow, secret: &str, context: &mut Context) -> Result<(), CommandError> {
    if context.json {
        let mut answer = key_json(row);
        answer["secret"] = json!(secret);
        return context.out.json(&answer);
    }
    context.out.table(&key_table([row]))?;
    context.out.line("")?;
    context.out.line(format!("secret: {secret}"))?;
    context
        .out
        .line("It is not stored and will not be shown again.")
}

async fn list(
    store: &Store,
    wallet: Option<&str>,
    context: &mut Context,
) -> Result<(), CommandError> {
    let wallet = match wallet {
        Some(name_or_id) => Some(wallet::find(store, name_or_id).await?.id),
        None => None,
    };
    let rows = store.keys(wallet).await?;
    if context.json {
        let rows: Vec<_> = rows.iter().map(key_json).collect();
        context.out.json(&rows)
    } else {
        context.out.table(&key_table(&rows))
    }
}

async fn find(store: &Store, id: &KeyId) -> Result<KeyRow, CommandError> {
    let found = store.find_key(id).await?;
    found.ok_or_else(|| CommandError::message(format!("no key `{id}`")))
}

impl Changes {
    fn read(self) -> Result<KeyChange, CommandError> {
        let expires_at = match self.expires {
            Some(LimitChange::Set(when)) => Some(Some(expiry(when)?)),
            Some(LimitChange::Lift) => Some(None),
            None => None,
        };
        Ok(KeyChange {
            name: self.name.map(Some),
            limit: self.limit.map(LimitChange::into_option),
            rpm: self.rpm.map(LimitChange::into_option),
            tpm: self.tpm.map(LimitChange::into_option),
            concurrency: self.concurrency.map(LimitChange::into_option),
            expires_at,
        })
    }
}

fn expiry(when: TimeArg) -> Result<UnixMs, CommandError> {
    when.after(time::now())
        .ok_or_else(|| CommandError::message("that time lies beyond the calendar"))
}

fn credits_or_none(text: &str) -> Result<LimitChange<Micro>, String> {
    LimitChange::read(text, wallet::credits)
}

fn count_or_none(text: &str) -> Result<LimitChange<u32>, String> {
    LimitChange::read(text, |text| match text.parse::<u32>() {
        Ok(0) => Err("must be above 0, or `none`".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    })
}

fn time_or_none(text: &str) -> Result<LimitChange<TimeArg>, String> {
    LimitChange::read(text, time::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_none_lifts_a_limit() {
        assert_eq!(count_or_none("none"), Ok(LimitChange::Lift));
        assert_eq!(count_or_none("7"), Ok(LimitChange::Set(7)));
        assert_eq!(credits_or_none("none"), Ok(LimitChange::Lift));
        assert_eq!(credits_or_none("0"), Ok(LimitChange::Set(Micro::ZERO)));
        assert_eq!(time_or_none("none"), Ok(LimitChange::Lift));
        for text in ["0", "-1", "many", ""] {
            assert!(count_or_none(text).is_err(), "{text}");
        }
    }
}
