//! Shows the result of a transfer.

use ledger::Micro;
use serde_json::{Value, json};
use store::{TransferError, TransferReport, TransferTotals};

use crate::cli::context::Context;
use crate::cli::ledger::{differences_json, differences_table};
use crate::cli::terminal::{CommandError, Side, Table, with_sources};

pub(super) fn report_json(report: &TransferReport) -> Value {
    let tables = report.tables.iter();
    let tables: serde_json::Map<String, Value> = tables
        .map(|(name, rows)| ((*name).to_owned(), json!(rows)))
        .collect();
    let heads = report.heads.iter().map(|head| {
        json!({
            "wallet": head.wallet,
            "entries": head.entries,
            "head": head.head.to_string(),
        })
    });
    let mut output = totals_json(&report.totals);
    output["ok"] = json!(true);
    output["rows"] = json!(report.rows());
    output["tables"] = json!(tables);
    output["resumed"] = json!(report.resumed);
    output["already_done"] = json!(report.already_done);
    output["abandoned"] = json!(report.abandoned);
    output["heads"] = heads.collect();
    output
}

pub(super) fn totals_json(totals: &TransferTotals) -> Value {
    json!({
        "wallets": totals.wallets,
        "keys": totals.keys,
        "entries": totals.entries,
        "balance": credits(totals.balance),
        "balance_micro": totals.balance.to_string(),
        "gift_balance": credits(totals.gift_balance),
        "gift_balance_micro": totals.gift_balance.to_string(),
        "credit_used": credits(totals.credit_used),
        "credit_used_micro": totals.credit_used.to_string(),
        "charged": credits(totals.charged),
        "charged_micro": totals.charged.to_string(),
    })
}

pub(super) fn show(report: &TransferReport, context: &mut Context) -> Result<(), CommandError> {
    let mut table = Table::new([("TABLE", Side::Left), ("ROWS", Side::Right)]);
    for (name, rows) in &report.tables {
        table.row([(*name).to_owned(), rows.to_string()]);
    }
    context.out.table(&table)?;
    context.out.line("")?;
    show_totals(&report.totals, context)?;
    if report.abandoned > 0 {
        context.out.line(format!(
            "closed {} calls that were open, at no charge",
            report.abandoned
        ))?;
    }
    Ok(())
}

pub(super) fn show_totals(
    totals: &TransferTotals,
    context: &mut Context,
) -> Result<(), CommandError> {
    let out = &mut context.out;
    out.line(format!(
        "wallets {}, keys {}, entries {}",
        totals.wallets, totals.keys, totals.entries
    ))?;
    out.line(format!(
        "balance {}, gift {}, credit used {}, charged {}",
        credits(totals.balance),
        credits(totals.gift_balance),
        credits(totals.credit_used),
        credits(totals.charged)
    ))
}

/// Converts the error of a transfer, and prints the differences that the verification found.
pub(super) fn failed(error: &TransferError, context: &mut Context) -> CommandError {
    let TransferError::Unclean { report, .. } = error else {
        return CommandError::message(with_sources(error));
    };
    let printed = if context.json {
        let differences = differences_json(report);
        let output = json!({ "ok": false, "error": error.to_string(), "differences": differences });
        context.out.json(&output)
    } else {
        context.out.table(&differences_table(report))
    };
    match printed {
        Ok(()) => CommandError::message(error.to_string()),
        Err(error) => error,
    }
}

/// A sum in credits, or in micro-credits if it exceeds the range of `Micro`.
fn credits(micro: i128) -> String {
    match i64::try_from(micro) {
        Ok(micro) => Micro::new(micro).to_string(),
        Err(_) => format!("{micro} micro-credits"),
    }
}
