//! `tollgate ledger verify`: checks balances, holds and hash chains against the entries.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use store::VerifyReport;

use super::heads;
use crate::cli::context::Context;
use crate::cli::terminal::{CommandError, Side, Table};

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A file outside of the database for the chain heads of all wallets. If the file does not exist, a verification
    /// without differences writes it. If it exists, each head in it must still be a hash of its wallet's chain, and the
    /// file is not changed.
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// Replace the heads in an existing file with the current ones if there are no differences.
    #[arg(long, requires = "heads")]
    update: bool,
}

pub(crate) async fn run(command: Verify, context: &mut Context) -> Result<(), CommandError> {
    let noted = match &command.heads {
        Some(file) => heads::read(file)?,
        None => None,
    };
    let is_new = noted.is_none();
    let store = context.store()?;
    let report = store.verify_with(noted.unwrap_or_default()).await?;
    let written = match &command.heads {
        Some(file) if report.is_clean() && is_new => {
            heads::create(file, &report.heads)?;
            true
        }
        Some(file) if report.is_clean() && command.update => {
            heads::replace(file, &report.heads)?;
            true
        }
        _ => false,
    };
    if context.json {
        context.out.json(&report_json(&report, written))?;
    } else {
        if !report.is_clean() {
            context.out.table(&differences_table(&report))?;
            context.out.line("")?;
        }
        if !report.heads.is_empty() {
            context.out.table(&heads_table(&report))?;
            context.out.line("")?;
        }
        context.out.line(summary(&report))?;
        if let Some(file) = command.heads.filter(|_| written) {
            let line = format!("heads written to {}", file.display());
            context.out.line(line)?;
        }
    }
    if report.is_clean() {
        Ok(())
    } else {
        Err(CommandError::Reported)
    }
}

fn report_json(report: &VerifyReport, heads_written: bool) -> serde_json::Value {
    let heads = report.heads.iter().map(|head| {
        json!({
            "wallet": head.wallet,
            "entries": head.entries,
            "head": head.head.to_string(),
        })
    });
    json!({
        "ok": report.is_clean(),
        "wallets": report.wallets,
        "keys": report.keys,
        "open_holds": report.open_holds,
        "entries": report.entries,
        "heads": heads.collect::<Vec<_>>(),
        "heads_written": heads_written,
        "differences": differences_json(report),
    })
}

pub(crate) fn differences_json(report: &VerifyReport) -> Vec<serde_json::Value> {
    let differences = report.differences.iter().map(|difference| {
        json!({
            "wallet": difference.wallet,
            "rule": difference.rule.to_string(),
            "what": difference.what,
            "expected": difference.expected,
            "found": difference.found,
        })
    });
    differences.collect()
}

pub(crate) fn differences_table(report: &VerifyReport) -> Table {
    let mut table = Table::new([
        ("WALLET", Side::Left),
        ("RULE", Side::Left),
        ("WHAT", Side::Left),
        ("EXPECTED", Side::Right),
        ("FOUND", Side::Right),
    ]);
    for difference in &report.differences {
        table.row([
            difference.wallet.clone(),
            difference.rule.to_string(),
            difference.what.clone(),
            difference.expected.clone(),
            difference.found.clone(),
        ]);
    }
    table
}

fn heads_table(report: &VerifyReport) -> Table {
    let mut table = Table::new([
        ("WALLET", Side::Left),
        ("ENTRIES", Side::Right),
        ("HEAD", Side::Left),
    ]);
    for head in &report.heads {
        table.row([
            head.wallet.to_string(),
            head.entries.to_string(),
            head.head.to_string(),
        ]);
    }
    table
}

fn summary(report: &VerifyReport) -> String {
    let VerifyReport {
        wallets,
        keys,
        open_holds,
        entries,
        heads: _,
        differences,
    } = report;
    let verdict = match differences.len() {
        0 => "every rule holds".to_owned(),
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    };
    format!("wallets {wallets}, keys {keys}, entries {entries}, open holds {open_holds}: {verdict}")
}

#[cfg(test)]
mod tests {
    use store::{Difference, Rule};

    use super::*;

    #[test]
    fn a_difference_is_told_in_both_forms() {
        let mut report = VerifyReport {
            wallets: 2,
            keys: 3,
            entries: 7,
            ..VerifyReport::default()
        };
        assert_eq!(
            summary(&report),
            "wallets 2, keys 3, entries 7, open holds 0: every rule holds"
        );
        assert_eq!(report_json(&report, false)["ok"], true);
        report.differences.push(Difference {
            wallet: "wal_x".to_owned(),
            rule: Rule::V1Frozen,
            what: "wallet".to_owned(),
            expected: "0".to_owned(),
            found: "5".to_owned(),
        });
        assert!(summary(&report).ends_with(": 1 difference"));
        let expected = json!([{
            "wallet": "wal_x",
            "rule": "V1 open holds = frozen",
            "what": "wallet",
            "expected": "0",
            "found": "5",
        }]);
        assert_eq!(report_json(&report, false)["differences"], expected);
        assert_eq!(report_json(&report, false)["ok"], false);
    }
}
