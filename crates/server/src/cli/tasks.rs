//! `tollgate tasks`: shows the video tasks of all wallets.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use store::{Store, TaskId, TaskListed, TaskQuery};

use super::accounts::wallet;
use super::context::Context;
use super::terminal::{CommandError, Side, StoreRetry, Table, time};

/// The delay between two lookups of followed tasks.
const FOLLOW_PAUSE: Duration = Duration::from_millis(500);
/// The number of characters of a full progress bar.
const BAR_CELLS: usize = 20;
/// The escape sequence that clears the screen and moves the cursor to the upper left corner.
const FRESH_SCREEN: &str = "\u{1b}[H\u{1b}[2J";

#[derive(Debug, Subcommand)]
pub(super) enum Tasks {
    /// List tasks, newest first.
    List(Filter),
    /// Show everything about one task.
    Show {
        /// The id of the task.
        #[arg(value_name = "ID")]
        id: TaskId,
    },
    /// Keep running and show the progress of tasks.
    Follow {
        #[command(flatten)]
        filter: Filter,
        /// Exit when no task is open any more.
        #[arg(long)]
        drain: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct Filter {
    /// Only tasks of this wallet.
    #[arg(long, value_name = "NAME_OR_ID")]
    wallet: Option<String>,
    /// Only tasks of this model.
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Only tasks of this protocol: video-a, omni, predict or content-task.
    #[arg(long)]
    protocol: Option<String>,
    /// Only tasks with this status, in the words of their protocol.
    #[arg(long)]
    status: Option<String>,
    /// Only tasks that have not ended.
    #[arg(long)]
    open: bool,
    /// The maximum number of tasks; the newest are shown.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) async fn run(command: Tasks, context: &mut Context) -> Result<(), CommandError> {
    let store = context.store()?;
    match command {
        Tasks::List(filter) => {
            let query = query(&store, &filter).await?;
            let page = store.tasks(query).await?;
            print(&page.tasks, context)
        }
        Tasks::Show { id } => show(&store, id, context).await,
        Tasks::Follow { filter, drain } => {
            let query = query(&store, &filter).await?;
            follow(&store, &query, drain, context).await
        }
    }
}

async fn query(store: &Store, filter: &Filter) -> Result<TaskQuery, CommandError> {
    let wallet = match &filter.wallet {
        Some(name_or_id) => Some(wallet::find(store, name_or_id).await?.id),
        None => None,
    };
    Ok(TaskQuery {
        wallet,
        protocol: filter.protocol.as_deref().map(Into::into),
        statuses: filter.status.iter().cloned().collect(),
        model: filter.model.as_deref().map(Into::into),
        only_open: filter.open,
        with_hidden: true,
        limit: filter.limit,
        ..TaskQuery::default()
    })
}

/// Shows tasks repeatedly: the whole table on a terminal without `--json`, otherwise only changes. Waits while the
/// database is unavailable.
async fn follow(
    store: &Store,
    query: &TaskQuery,
    drain: bool,
    context: &mut Context,
) -> Result<(), CommandError> {
    let is_live = !context.json && std::io::stdout().is_terminal();
    let open = TaskQuery {
        only_open: true,
        limit: 1,
        ..query.clone()
    };
    let mut retry = StoreRetry::default();
    let mut seen: HashMap<TaskId, (Box<str>, Option<u8>)> = HashMap::new();
    loop {
        let look = async || {
            // Check for open tasks before reading the table, so that the last table shows how the last open tasks
            // ended.
            let is_drained = drain && store.tasks(open.clone()).await?.total == 0;
            Ok((is_drained, store.tasks(query.clone()).await?.tasks))
        };
        let (is_drained, tasks) = retry.ask(look).await?;
        if is_live {
            context.out.line(FRESH_SCREEN)?;
            print(&tasks, context)?;
        } else {
            let mut changed = tasks;
            changed.retain(|task| {
                let now = (task.status.clone(), task.progress);
                seen.insert(task.id, now.clone()) != Some(now)
            });
            if !changed.is_empty() {
                print(&changed, context)?;
            }
        }
        if is_drained {
            return Ok(());
        }
        tokio::time::sleep(FOLLOW_PAUSE).await;
    }
}

async fn show(store: &Store, id: TaskId, context: &mut Context) -> Result<(), CommandError> {
    let query = TaskQuery {
        ids: vec![id],
        with_hidden: true,
        limit: 1,
        ..TaskQuery::default()
    };
    let task = store.tasks(query).await?.tasks.into_iter().next();
    let task = task.ok_or_else(|| CommandError::message(format!("no task `{id}`")))?;
    let snapshot = String::from_utf8_lossy(&task.snapshot).into_owned();
    if context.json {
        let mut whole: Value = members(&task)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        whole["snapshot"] = serde_json::from_str(&snapshot).unwrap_or(json!(snapshot));
        return context.out.json(&whole);
    }
    let mut table = Table::new([("MEMBER", Side::Left), ("VALUE", Side::Left)]);
    for (name, value) in members(&task) {
        let shown = match (name, value) {
            (_, Value::Null) => continue,
            ("created_at", _) => time::show(task.created_at),
            ("next_at", _) => task.next_at.map(time::show).unwrap_or_default(),
            ("ended_at", _) => task.ended_at.map(time::show).unwrap_or_default(),
            (_, Value::String(text)) => text,
            (_, other) => other.to_string(),
        };
        table.row([name.to_owned(), shown]);
    }
    table.row(["snapshot".to_owned(), snapshot]);
    context.out.table(&table)
}

fn print(tasks: &[TaskListed], context: &mut Context) -> Result<(), CommandError> {
    if context.json {
        let row = |task: &TaskListed| -> Value {
            let members = members(task).into_iter();
            members
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        };
        return tasks
            .iter()
            .try_for_each(|task| context.out.json(&row(task)));
    }
    let mut table = Table::new([
        ("CREATED", Side::Left),
        ("TASK", Side::Left),
        ("PROTOCOL", Side::Left),
        ("MODEL", Side::Left),
        ("STATUS", Side::Left),
        ("PROGRESS", Side::Left),
        ("POLLS", Side::Right),
        ("CHANNEL", Side::Left),
        ("CALLBACK", Side::Left),
    ]);
    for task in tasks {
        table.row([
            time::show(task.created_at),
            task.id.to_string(),
            task.protocol.to_string(),
            task.model.to_string(),
            task.status.to_string(),
            progress(task),
            task.polls.to_string(),
            task.channel.as_deref().unwrap_or("-").to_owned(),
            callback(task),
        ]);
    }
    context.out.table(&table)
}

/// All members of one task, most important first.
fn members(task: &TaskListed) -> Vec<(&'static str, Value)> {
    vec![
        ("id", json!(task.id.to_string())),
        ("wallet", json!(task.wallet)),
        ("protocol", json!(task.protocol)),
        ("model", json!(task.model)),
        ("status", json!(task.status)),
        ("progress", json!(task.progress)),
        ("channel", json!(task.channel)),
        ("polls", json!(task.polls)),
        ("created_at", json!(task.created_at)),
        ("next_at", json!(task.next_at)),
        ("ended_at", json!(task.ended_at)),
        ("callback_attempts", json!(task.callback_attempts)),
        ("callback_outcome", json!(task.callback_outcome)),
    ]
}

/// A progress bar with its percentage, or `-` if the task has ended or has no known progress.
fn progress(task: &TaskListed) -> String {
    match task.progress {
        Some(percent) if task.ended_at.is_none() => {
            let full = usize::from(percent.min(100)) * BAR_CELLS / 100;
            let (full, empty) = ("#".repeat(full), ".".repeat(BAR_CELLS - full));
            format!("[{full}{empty}] {percent} %")
        }
        _ => "-".to_owned(),
    }
}

fn callback(task: &TaskListed) -> String {
    match (task.callback_attempts, task.callback_outcome.as_deref()) {
        (None, _) => "-".to_owned(),
        (Some(attempts), None) => format!("waits, tried {attempts}"),
        (Some(attempts), Some(outcome)) => {
            format!("{}, tried {attempts}", outcome.replace('_', " "))
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger::UnixMs;
    use store::WalletId;

    use super::*;

    #[test]
    fn a_row_shows_how_far_a_task_is_and_whether_its_end_was_told() {
        let mut task = TaskListed {
            id: TaskId::random(UnixMs::new(0)),
            wallet: WalletId::random(),
            key: None,
            protocol: "video-a".into(),
            model: "a/b".into(),
            status: "pending".into(),
            progress: Some(50),
            channel: None,
            polls: 3,
            created_at: UnixMs::new(0),
            next_at: Some(UnixMs::new(1)),
            ended_at: None,
            callback_attempts: None,
            callback_outcome: None,
            snapshot: Box::default(),
            charge: None,
        };
        assert_eq!(progress(&task), "[##########..........] 50 %");
        assert_eq!(callback(&task), "-");
        task.ended_at = Some(UnixMs::new(2));
        task.callback_attempts = Some(2);
        assert_eq!(
            (progress(&task), callback(&task)),
            ("-".to_owned(), "waits, tried 2".to_owned())
        );
        task.callback_outcome = Some("given_up".into());
        assert_eq!(callback(&task), "given up, tried 2");
    }
}
