//! `tollgate key …`: creates, changes and shows API keys.

use clap::{Args, Subcommand};
use ledger::{Micro, UnixMs};
use store::{
    Calendar, KeyChange, KeyId, KeyLimits, KeyQuery, KeyRow, KeyWindow, ModelList, PeriodLength,
    Store,
};

use super::limit_change::LimitChange;
use super::view::key_table;
use super::wallet;
use crate::cli::context::{Context, actor};
use crate::cli::terminal::{CommandError, TimeArg, time};
use crate::operations::keys::{self, KeyDraft};
use crate::operations::views::{KeyView, NewKeyView};

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
        /// The total amount that the key may spend.
        #[arg(long, value_name = "CREDITS", value_parser = wallet::credits)]
        limit: Option<Micro>,
        /// The amount that the key may spend in each period: 10/day, 50/week or 200/month.
        #[arg(long, value_name = "CREDITS/PERIOD", value_parser = window_arg)]
        window: Option<WindowArg>,
        /// The time zone whose midnight begins a period, such as Europe/Berlin; UTC if left out.
        #[arg(long, value_name = "ZONE", requires = "window")]
        time_zone: Option<String>,
        /// Models that the key may call: ids and maker/*, separated by commas; all if left out.
        #[arg(long, value_name = "MODELS", value_delimiter = ',')]
        models: Vec<String>,
        /// A label by which people find the key; may be repeated.
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
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
        /// Only keys with this text in their name or their wallet's name, or whose id or secret begins with it.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only keys with this tag.
        #[arg(long)]
        tag: Option<String>,
    },
    /// Show one key.
    Show {
        /// The id of the key.
        id: KeyId,
    },
    /// Change the limits of a key; `none` removes a limit.
    Update {
        /// The id of the key.
        id: KeyId,
        #[command(flatten)]
        changes: Changes,
    },
    /// Give the key a new secret, which is shown once and never again.
    Rotate {
        /// The id of the key.
        id: KeyId,
        /// How long the old secret works beside the new one: 30m, 1h, 7d; if left out, it stops working within 5 seconds.
        #[arg(long, value_name = "DURATION", value_parser = time::parse)]
        overlap: Option<TimeArg>,
    },
    /// Refuse the key from now on; open streams finish.
    Disable {
        /// The id of the key.
        id: KeyId,
    },
    /// Accept the key again.
    Enable {
        /// The id of the key.
        id: KeyId,
    },
}

/// At least one of these is required.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Changes {
    /// A name for people.
    #[arg(long)]
    name: Option<String>,
    /// The total amount that the key may spend, or `none`.
    #[arg(long, value_name = "CREDITS", value_parser = credits_or_none)]
    limit: Option<LimitChange<Micro>>,
    /// The amount that the key may spend in each period: 10/day, 50/week, 200/month, or `none`.
    #[arg(long, value_name = "CREDITS/PERIOD", value_parser = window_or_none)]
    window: Option<LimitChange<WindowArg>>,
    /// The time zone whose midnight begins a period; UTC if left out.
    #[arg(long, value_name = "ZONE", requires = "window")]
    time_zone: Option<String>,
    /// Models that the key may call: ids and maker/*, separated by commas, or `none` for all.
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// A label by which people find the key; may be repeated. The given labels replace all tags; `none` removes them.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Option<Vec<String>>,
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

pub(crate) async fn run(command: Key, context: &mut Context) -> Result<(), CommandError> {
    let (store, actor) = (context.store()?, actor());
    let row = match command {
        Key::Create {
            wallet,
            name,
            limit,
            window,
            time_zone,
            models,
            tags,
            rpm,
            tpm,
            concurrency,
            expires,
        } => {
            let window = window.map(|window| window.on(time_zone.as_deref()));
            let limits = KeyLimits {
                limit,
                window: window.transpose()?,
                models: model_list(models)?,
                rpm,
                tpm,
                concurrency,
                expires_at: expires.map(expiry).transpose()?,
            };
            let draft = KeyDraft {
                wallet: wallet::find(&store, &wallet).await?.id,
                name,
                limits,
                tags,
            };
            let (row, secret) = keys::create(&store, draft, &actor).await?;
            return show_secret_once(&row, secret, context);
        }
        Key::List {
            wallet,
            search,
            tag,
        } => {
            let wallet = match wallet {
                Some(name_or_id) => Some(wallet::find(&store, &name_or_id).await?.id),
                None => None,
            };
            let query = KeyQuery {
                wallet,
                text: search,
                tag,
                ..KeyQuery::default()
            };
            return list(&store, query, context).await;
        }
        Key::Rotate { id, overlap } => {
            let until = overlap.map(expiry).transpose()?;
            let (row, secret) = keys::rotate(&store, id, until, &actor).await?;
            return show_secret_once(&row, secret, context);
        }
        Key::Show { id } => find(&store, &id).await?,
        Key::Update { id, changes } => store.update_key(id, changes.read()?, &actor).await?,
        Key::Disable { id } => store.set_key_enabled(id, false, &actor).await?,
        Key::Enable { id } => store.set_key_enabled(id, true, &actor).await?,
    };
    if context.json {
        context.out.json(&KeyView::from(&row))
    } else {
        context.out.table(&key_table([&row]))
    }
}

fn show_secret_once(
    row: &KeyRow,
    secret: String,
    context: &mut Context,
) -> Result<(), CommandError> {
    if context.json {
        let key = KeyView::from(row);
        return context.out.json(&NewKeyView { key, secret });
    }
    context.out.table(&key_table([row]))?;
    context.out.line("")?;
    context.out.line(format!("secret: {secret}"))?;
    context
        .out
        .line("It is not stored and will not be shown again.")
}

/// Lists keys in the order of their creation.
async fn list(store: &Store, query: KeyQuery, context: &mut Context) -> Result<(), CommandError> {
    let mut rows = store.search_keys(query).await?;
    rows.reverse();
    if context.json {
        let rows: Vec<_> = rows.iter().map(KeyView::from).collect();
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
        let zone = self.time_zone.as_deref();
        let window = match self.window {
            Some(LimitChange::Set(window)) => Some(Some(window.on(zone)?)),
            Some(LimitChange::Lift) => Some(None),
            None => None,
        };
        let models = self.models.map(unless_none).map(model_list).transpose()?;
        Ok(KeyChange {
            enabled: None,
            window,
            models,
            tags: self.tags.map(unless_none),
            name: self.name.map(Some),
            limit: self.limit.map(LimitChange::into_option),
            rpm: self.rpm.map(LimitChange::into_option),
            tpm: self.tpm.map(LimitChange::into_option),
            concurrency: self.concurrency.map(LimitChange::into_option),
            expires_at,
        })
    }
}

/// An amount of credits and the length of the periods, such as `10/day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowArg {
    amount: Micro,
    per: PeriodLength,
}

impl WindowArg {
    /// The spending window, whose periods begin at midnight of this time zone.
    fn on(self, zone: Option<&str>) -> Result<KeyWindow, CommandError> {
        let calendar = Calendar::new(self.per, zone.unwrap_or("UTC"));
        let calendar = calendar.map_err(|error| CommandError::message(error.to_string()))?;
        Ok(KeyWindow {
            amount: self.amount,
            calendar,
        })
    }
}

fn model_list(models: Vec<String>) -> Result<Option<ModelList>, CommandError> {
    ModelList::new(models).map_err(|error| CommandError::message(error.to_string()))
}

/// The items of a list argument. The single word `none` stands for an empty list.
fn unless_none(words: Vec<String>) -> Vec<String> {
    match words.as_slice() {
        [word] if word == "none" => Vec::new(),
        _ => words,
    }
}

fn window_arg(text: &str) -> Result<WindowArg, String> {
    let form = || "write an amount and a period, such as 10/day, 50/week or 200/month".to_owned();
    let (amount, per) = text.split_once('/').ok_or_else(form)?;
    let per = per.trim().parse().map_err(|_| form())?;
    Ok(WindowArg {
        amount: wallet::credits(amount.trim())?,
        per,
    })
}

fn window_or_none(text: &str) -> Result<LimitChange<WindowArg>, String> {
    LimitChange::read(text, window_arg)
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
        assert_eq!(window_or_none("none"), Ok(LimitChange::Lift));
        assert_eq!(unless_none(vec!["none".to_owned()]), Vec::<String>::new());
        for text in ["0", "-1", "many", ""] {
            assert!(count_or_none(text).is_err(), "{text}");
        }
    }
    #[test]
    fn a_window_is_an_amount_and_a_period() {
        let amount = |credits: i64| Micro::new(credits * 1_000_000);
        for (text, amount, per) in [
            ("10/day", amount(10), PeriodLength::Day),
            ("0/week", amount(0), PeriodLength::Week),
            (" 200 / month ", amount(200), PeriodLength::Month),
        ] {
            assert_eq!(window_arg(text), Ok(WindowArg { amount, per }), "{text}");
        }
        for text in [
            "",
            "10",
            "10/year",
            "/day",
            "-1/day",
            "ten/day",
            "10/day/week",
        ] {
            assert!(window_arg(text).is_err(), "{text}");
        }
    }
}
