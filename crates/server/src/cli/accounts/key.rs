//! `tollgate key …`: the API keys of wallets.

use clap::{Args, Subcommand};
use ledger::{Micro, UnixMs};
use serde_json::json;
use store::{Digest, KeyChange, KeyId, KeyLimits, KeyRow, NewKey, Store};

use super::view::{key_json, key_table};
use super::{secret, wallet};
use crate::cli::context::Context;
use crate::cli::terminal::{Stop, When, when};

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Create a key. Its secret is shown once and never again.
    Create {
        /// The wallet that pays, by name or id.
        #[arg(long, value_name = "NAME_OR_ID")]
        wallet: String,
        /// What people call the key.
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
        /// When it ends: 30d, 12h, 2s, or a time such as 2026-12-31T00:00:00Z.
        #[arg(long, value_name = "WHEN", value_parser = when::parse)]
        expires: Option<When>,
    },
    /// List keys.
    List {
        /// Only the keys of this wallet.
        #[arg(long, value_name = "NAME_OR_ID")]
        wallet: Option<String>,
    },
    /// Show one key.
    Show { id: KeyId },
    /// Change the limits of a key; `none` lifts one.
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

/// At least one of these is wished.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Changes {
    /// What people call the key.
    #[arg(long)]
    name: Option<String>,
    /// What the key may spend in all, or `none`.
    #[arg(long, value_name = "CREDITS", value_parser = wish_for_credits)]
    limit: Option<Wish<Micro>>,
    /// Requests per minute, or `none`.
    #[arg(long, value_parser = wish_for_count)]
    rpm: Option<Wish<u32>>,
    /// Tokens per minute, or `none`.
    #[arg(long, value_parser = wish_for_count)]
    tpm: Option<Wish<u32>>,
    /// Requests in flight, or `none`.
    #[arg(long, value_parser = wish_for_count)]
    concurrency: Option<Wish<u32>>,
    /// When it ends: 30d, 2s, a time such as 2026-12-31T00:00:00Z, or `none`.
    #[arg(long, value_name = "WHEN", value_parser = wish_for_time)]
    expires: Option<Wish<When>>,
}

/// A limit that is set, or lifted by the word `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish<T> {
    Set(T),
    Lift,
}

impl<T> Wish<T> {
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

pub(crate) async fn run(command: Key, context: &mut Context) -> Result<(), Stop> {
    let store = context.store()?;
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
            let (row, secret) = create(&store, &wallet, name, limits).await?;
            return told_once(&row, &secret, context);
        }
        Key::List { wallet } => return list(&store, wallet.as_deref(), context).await,
        Key::Show { id } => find(&store, &id).await?,
        Key::Update { id, changes } => store.update_key(id, changes.read()?).await?,
        Key::Disable { id } => store.set_key_enabled(id, false).await?,
        Key::Enable { id } => store.set_key_enabled(id, true).await?,
    };
    if context.json {
        context.out.json(&key_json(&row))
    } else {
        context.out.table(&key_table([&row]))
    }
}

/// Makes a key; the secret leaves here and is stored nowhere.
pub(crate) async fn create(
    store: &Store,
    wallet: &str,
    name: Option<String>,
    limits: KeyLimits,
) -> Result<(KeyRow, String), Stop> {
    let wallet = wallet::find(store, wallet).await?.id;
    let (secret, shown_prefix) = secret::fresh();
    let key = NewKey {
        wallet,
        name,
        digest: Digest::of(secret.as_bytes()),
        shown_prefix,
        limits,
    };
    Ok((store.create_key(key).await?, secret))
}

fn told_once(row: &KeyRow, secret: &str, context: &mut Context) -> Result<(), Stop> {
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

async fn list(store: &Store, wallet: Option<&str>, context: &mut Context) -> Result<(), Stop> {
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

async fn find(store: &Store, id: &KeyId) -> Result<KeyRow, Stop> {
    let found = store.find_key(id).await?;
    found.ok_or_else(|| Stop::message(format!("no key `{id}`")))
}

impl Changes {
    fn read(self) -> Result<KeyChange, Stop> {
        let expires_at = match self.expires {
            Some(Wish::Set(when)) => Some(Some(expiry(when)?)),
            Some(Wish::Lift) => Some(None),
            None => None,
        };
        Ok(KeyChange {
            name: self.name.map(Some),
            limit: self.limit.map(Wish::into_option),
            rpm: self.rpm.map(Wish::into_option),
            tpm: self.tpm.map(Wish::into_option),
            concurrency: self.concurrency.map(Wish::into_option),
            expires_at,
        })
    }
}

fn expiry(when: When) -> Result<UnixMs, Stop> {
    when.after(when::now())
        .ok_or_else(|| Stop::message("that time lies beyond the calendar"))
}

fn wish_for_credits(text: &str) -> Result<Wish<Micro>, String> {
    Wish::read(text, wallet::credits)
}

fn wish_for_count(text: &str) -> Result<Wish<u32>, String> {
    Wish::read(text, |text| match text.parse::<u32>() {
        Ok(0) => Err("must be above 0, or `none`".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    })
}

fn wish_for_time(text: &str) -> Result<Wish<When>, String> {
    Wish::read(text, when::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_none_lifts_a_limit() {
        assert_eq!(wish_for_count("none"), Ok(Wish::Lift));
        assert_eq!(wish_for_count("7"), Ok(Wish::Set(7)));
        assert_eq!(wish_for_credits("none"), Ok(Wish::Lift));
        assert_eq!(wish_for_credits("0"), Ok(Wish::Set(Micro::ZERO)));
        assert_eq!(wish_for_time("none"), Ok(Wish::Lift));
        for text in ["0", "-1", "many", ""] {
            assert!(wish_for_count(text).is_err(), "{text}");
        }
    }
}
