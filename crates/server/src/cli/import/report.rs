//! Shows what an import did or would do.

use serde_json::{Value, json};

use crate::cli::terminal::{CommandError, Output, Side, Table};
use crate::import::{AccountCounts, ImportPlan, ImportSums, Leftover, Outcome, SumKind};

/// The maximum number of rows in the table of objects that are not imported. The JSON report has all of them.
const LEFTOVERS_SHOWN: usize = 50;

pub(super) fn show(
    plan: &ImportPlan,
    outcome: &Outcome,
    is_dry_run: bool,
    out: &mut Output,
) -> Result<(), CommandError> {
    let created = if is_dry_run { "to create" } else { "created" };
    for (name, counts) in [("wallets", outcome.wallets), ("keys", outcome.keys)] {
        let AccountCounts {
            read,
            created: made,
            existing,
            left_out,
        } = counts;
        out.line(format!(
            "{name:<9}{read} read = {made} {created} + {existing} there before + {left_out} left out"
        ))?;
    }
    out.line(format!(
        "secrets  {} go on working, {} are new",
        outcome.adopted, outcome.reissued
    ))?;
    for (name, sums) in [("balances", outcome.money), ("limits", outcome.limits)] {
        let ImportSums {
            read,
            carried,
            left,
            rounding,
        } = sums;
        out.line(format!(
            "{name:<9}{read} read = {carried} carried + {left} left over + {rounding} rounding"
        ))?;
    }
    let reasons = plan.left_out();
    if !reasons.is_empty() {
        out.line("")?;
        for (reason, count) in reasons {
            out.line(format!("left out {count}: {reason}"))?;
        }
    }
    if !outcome.leftovers.is_empty() {
        out.line("")?;
        out.table(&leftover_table(&outcome.leftovers))?;
        let hidden = outcome.leftovers.len().saturating_sub(LEFTOVERS_SHOWN);
        if hidden > 0 {
            out.line(format!("and {hidden} more, which --json shows"))?;
        }
    }
    out.line("")?;
    for note in &plan.notes {
        out.line(format!("note: {note}"))?;
    }
    let catalog = &plan.catalog;
    if !catalog.is_empty() {
        out.line(format!(
            "channels {}, models {}",
            catalog.channels.len(),
            catalog.models.len()
        ))?;
    }
    if !catalog.variables.is_empty() {
        let mut table = Table::new([("SET", Side::Left), ("TO", Side::Left)]);
        for (name, place) in &catalog.variables {
            table.row([name.clone(), place.clone()]);
        }
        out.line("")?;
        out.table(&table)?;
    }
    Ok(())
}

fn leftover_table(leftovers: &[Leftover]) -> Table {
    let mut table = Table::new([
        ("LEFT OVER", Side::Left),
        ("OF", Side::Left),
        ("AMOUNT", Side::Right),
        ("WHY", Side::Left),
    ]);
    for leftover in leftovers.iter().take(LEFTOVERS_SHOWN) {
        let (of, amount) = match leftover.sum {
            SumKind::Nothing => ("", String::new()),
            sum => (sum_name(sum), leftover.amount.to_string()),
        };
        table.row([
            leftover.origin.clone(),
            of.to_owned(),
            amount,
            leftover.reason.clone(),
        ]);
    }
    table
}

fn sum_name(sum: SumKind) -> &'static str {
    match sum {
        SumKind::Money => "balances",
        SumKind::Limits => "limits",
        SumKind::Nothing => "nothing",
    }
}

pub(super) fn to_json(
    plan: &ImportPlan,
    outcome: &Outcome,
    source: &str,
    is_dry_run: bool,
) -> Value {
    let leftovers = outcome.leftovers.iter().map(|leftover| {
        json!({
            "origin": leftover.origin,
            "of": match leftover.sum { SumKind::Nothing => None, sum => Some(sum_name(sum)) },
            "amount": match leftover.sum { SumKind::Nothing => None, _ => Some(leftover.amount) },
            "reason": leftover.reason,
            "left_out": leftover.is_whole,
        })
    });
    let catalog = &plan.catalog;
    json!({
        "system": plan.system,
        "source": source,
        "dry_run": is_dry_run,
        "wallets": counts(outcome.wallets),
        "keys": counts(outcome.keys),
        "secrets": { "adopted": outcome.adopted, "new": outcome.reissued },
        "balances": sums(outcome.money),
        "limits": sums(outcome.limits),
        "leftovers": leftovers.collect::<Vec<_>>(),
        "notes": plan.notes,
        "channels": catalog.channels.len(),
        "models": catalog.models.len(),
        "model_ids": catalog.ids,
        "variables": catalog.variables,
    })
}

fn counts(counts: AccountCounts) -> Value {
    json!({
        "read": counts.read,
        "created": counts.created,
        "existing": counts.existing,
        "left_out": counts.left_out,
    })
}

fn sums(sums: ImportSums) -> Value {
    json!({
        "read": sums.read,
        "carried": sums.carried,
        "left": sums.left,
        "rounding": sums.rounding,
    })
}
