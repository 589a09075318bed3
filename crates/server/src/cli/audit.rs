//! `tollgate audit`: lists administrative changes.

use clap::Args;
use store::{AuditQuery, AuditRow};

use super::context::Context;
use super::terminal::{CommandError, Side, Table, TimeArg, time};
use crate::operations::views::AuditView;

#[derive(Debug, Args)]
pub(super) struct Audit {
    /// Only changes by this actor: its name, the id of a token, or `config`, `cli` or `link`.
    #[arg(long, value_name = "ID_OR_NAME")]
    actor: Option<String>,
    /// Only changes of this kind, such as wallet.create.
    #[arg(long)]
    action: Option<String>,
    /// Only changes of the wallet, key or token with this id.
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// Only changes at or after this time: 1h, 30d (30 days ago), or a time such as 2026-12-31T10:00:00Z.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    since: Option<TimeArg>,
    /// Only changes before this time.
    #[arg(long, value_name = "WHEN", value_parser = time::parse)]
    until: Option<TimeArg>,
    /// Only changes that contain this text in any column.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// The maximum number of changes; the newest are shown.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(super) async fn run(command: Audit, context: &mut Context) -> Result<(), CommandError> {
    let now = time::now();
    let before = |when: Option<TimeArg>| when.and_then(|when| when.before(now));
    let query = AuditQuery {
        from: before(command.since),
        to: before(command.until),
        actor: command.actor,
        action: command.action,
        target: command.target,
        text: command.search,
        before: None,
        limit: command.limit,
    };
    let rows = context.store()?.audit(query).await?;
    if context.json {
        let rows: Vec<_> = rows.into_iter().map(AuditView::from).collect();
        return context.out.json(&rows);
    }
    context.out.table(&table(&rows))
}

fn table(rows: &[AuditRow]) -> Table {
    let mut table = Table::new([
        ("TIME", Side::Left),
        ("ACTOR", Side::Left),
        ("ROLE", Side::Left),
        ("ACTION", Side::Left),
        ("TARGET", Side::Left),
        ("BEFORE", Side::Left),
        ("AFTER", Side::Left),
    ]);
    for row in rows {
        let shown = |json: &Option<String>| json.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            time::show(row.at),
            format!("{} ({})", row.actor.name, row.actor.id),
            row.actor.role.to_string(),
            row.action.clone(),
            row.target.clone(),
            shown(&row.before),
            shown(&row.after),
        ]);
    }
    table
}
