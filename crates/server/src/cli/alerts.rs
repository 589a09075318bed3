//! `tollgate alert …`: lists alerts, and manages the rules that send them.

use clap::{Args, Subcommand};
use ledger::Micro;
use store::{AlertKind, AlertQuery, AlertRow, RuleId, RuleRow, Store, WalletId};
use upstream::Guarded;

use super::accounts::wallet::any_credits;
use super::context::{Context, actor};
use super::terminal::{CommandError, Side, Table, time};
use crate::operations::alerts::{self, RuleError, RuleRequest};
use crate::operations::views::{AlertView, NewRuleView, RuleTestView, RuleView};

#[derive(Debug, Subcommand)]
pub(super) enum Alert {
    /// List alerts, newest first.
    List {
        /// Only alerts that have not ended.
        #[arg(long)]
        open: bool,
        /// The maximum number of alerts; the newest are shown.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// List the rules that send alerts.
    Rules,
    /// Add a rule. Its messages are signed with a secret that is shown only now.
    Add(Add),
    /// Remove a rule, with the messages that are not delivered yet.
    Remove {
        /// The id of the rule.
        id: RuleId,
    },
    /// Send a test message to the webhook of a rule.
    Test {
        /// The id of the rule.
        id: RuleId,
    },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The URL to which alerts are sent by POST.
    #[arg(value_name = "URL")]
    url: String,
    /// `low_balance`, `key_limit`, `channel_down`, `error_rate` or `stuck_closes`; several are separated by commas.
    #[arg(long, required = true, value_delimiter = ',', value_parser = kind)]
    kinds: Vec<AlertKind>,
    /// Only alerts about this wallet and its keys.
    #[arg(long, value_name = "NAME_OR_ID")]
    wallet: Option<String>,
    /// The balance below which an alert is sent.
    #[arg(long, value_name = "CREDITS", allow_hyphen_values = true, value_parser = any_credits)]
    below: Option<Micro>,
}

fn kind(text: &str) -> Result<AlertKind, String> {
    text.parse()
        .map_err(|error: store::UnknownAlertKind| error.to_string())
}

pub(super) async fn run(command: Alert, context: &mut Context) -> Result<(), CommandError> {
    let (store, actor) = (context.store()?, actor());
    match command {
        Alert::List { open, limit } => {
            let rows = store.alerts(AlertQuery {
                only_open: open,
                limit,
                ..AlertQuery::default()
            });
            show_alerts(rows.await?, context)
        }
        Alert::Rules => show_rules(store.alert_rules().await?, context),
        Alert::Add(add) => {
            let request = RuleRequest {
                kinds: add.kinds,
                url: add.url,
                wallet: wallet(&store, add.wallet).await?,
                below: add.below,
            };
            let guarded = guarded(context)?;
            let created = alerts::create(&store, &guarded, request, &actor).await;
            let (row, secret) = created.map_err(|error| match error {
                RuleError::Url(error) => {
                    CommandError::message(format!("the address is refused: {error}"))
                }
                RuleError::Store(error) => error.into(),
            })?;
            show_secret_once(row, secret, context)
        }
        Alert::Remove { id } => {
            let row = store.remove_alert_rule(id, &actor).await?;
            show_rules(vec![row], context)
        }
        Alert::Test { id } => {
            let guarded = guarded(context)?;
            let problem = alerts::test(&store, &guarded, id, &actor).await?;
            if context.json {
                let failed = problem.is_some();
                context.out.json(&RuleTestView::from(problem))?;
                return if failed {
                    Err(CommandError::Reported)
                } else {
                    Ok(())
                };
            }
            match problem {
                None => context.out.line("delivered"),
                Some(problem) => Err(CommandError::message(format!("not delivered: {problem}"))),
            }
        }
    }
}

/// A client for webhooks, with the address policy of the configuration.
fn guarded(context: &Context) -> Result<Guarded, CommandError> {
    Ok(Guarded::new(context.config()?.engine_settings().outbound))
}

async fn wallet(
    store: &Store,
    name_or_id: Option<String>,
) -> Result<Option<WalletId>, CommandError> {
    let Some(name_or_id) = name_or_id else {
        return Ok(None);
    };
    let found = store.find_wallet(&name_or_id).await?;
    let missing = || CommandError::message(format!("there is no wallet `{name_or_id}`"));
    Ok(Some(found.ok_or_else(missing)?.id))
}

fn show_alerts(rows: Vec<AlertRow>, context: &mut Context) -> Result<(), CommandError> {
    if context.json {
        let rows: Vec<_> = rows.into_iter().map(AlertView::from).collect();
        return context.out.json(&rows);
    }
    let mut table = Table::new([
        ("ID", Side::Left),
        ("BEGAN", Side::Left),
        ("ENDED", Side::Left),
        ("KIND", Side::Left),
        ("DELIVERY", Side::Left),
        ("MESSAGE", Side::Left),
    ]);
    for row in rows {
        table.row([
            row.id.to_string(),
            time::show(row.at),
            row.ended_at.map_or_else(|| "-".to_owned(), time::show),
            row.kind.to_string(),
            row.delivery.as_str().to_owned(),
            row.message,
        ]);
    }
    context.out.table(&table)
}

fn show_rules(rows: Vec<RuleRow>, context: &mut Context) -> Result<(), CommandError> {
    if context.json {
        let rows: Vec<_> = rows.into_iter().map(RuleView::from).collect();
        return context.out.json(&rows);
    }
    context.out.table(&rule_table(&rows))
}

fn show_secret_once(
    row: RuleRow,
    secret: String,
    context: &mut Context,
) -> Result<(), CommandError> {
    if context.json {
        let rule = RuleView::from(row);
        return context.out.json(&NewRuleView { rule, secret });
    }
    context.out.table(&rule_table(&[row]))?;
    context.out.line("")?;
    context.out.line(format!("secret: {secret}"))?;
    context
        .out
        .line("It signs what the rule sends, and will not be shown again.")
}

fn rule_table(rows: &[RuleRow]) -> Table {
    let mut table = Table::new([
        ("ID", Side::Left),
        ("URL", Side::Left),
        ("KINDS", Side::Left),
        ("WALLET", Side::Left),
        ("BELOW", Side::Right),
        ("LAST DELIVERY", Side::Left),
    ]);
    for row in rows {
        let kinds: Vec<&str> = row.kinds.iter().map(|kind| kind.as_str()).collect();
        let last = row.last_attempt.as_ref();
        table.row([
            row.id.to_string(),
            row.url.clone(),
            kinds.join(","),
            row.wallet_name.clone().unwrap_or_else(|| "all".to_owned()),
            row.below
                .map_or_else(|| "-".to_owned(), |below| below.to_string()),
            last.map_or_else(
                || "-".to_owned(),
                |last| match &last.problem {
                    Some(problem) => format!("{}: {problem}", time::show(last.at)),
                    None => format!("{}: delivered", time::show(last.at)),
                },
            ),
        ]);
    }
    table
}
