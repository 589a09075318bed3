//! `tollgate ledger …`: proof that the books are right.

use clap::Subcommand;
use serde_json::json;
use store::VerifyReport;

use super::context::Context;
use super::stop::Stop;
use super::table::{Side, Table};
use super::{report, reprice};

#[derive(Debug, Subcommand)]
pub(super) enum Ledger {
    /// Recompute every invariant from the entries; exit 1 on any difference.
    Verify,
    /// Add up usage and charges by day, wallet, key and model.
    Report(report::Report),
    /// Price stored usage again and prove the same total; exit 1 on any difference.
    Reprice(reprice::Reprice),
}

pub(super) async fn run(command: Ledger, context: &mut Context) -> Result<(), Stop> {
    match command {
        Ledger::Verify => verify(context).await,
        Ledger::Report(command) => report::run(command, context).await,
        Ledger::Reprice(command) => reprice::run(command, context).await,
    }
}

async fn verify(context: &mut Context) -> Result<(), Stop> {
    let report = context.store()?.verify().await?;
    if context.json {
        context.out.json(&report_json(&report))?;
    } else {
        if !report.is_clean() {
            context.out.table(&differences(&report))?;
            context.out.line("")?;
        }
        context.out.line(summary(&report))?;
    }
    if report.is_clean() {
        Ok(())
    } else {
        Err(Stop::Told)
    }
}

fn report_json(report: &VerifyReport) -> serde_json::Value {
    let differences = report.differences.iter().map(|difference| {
        json!({
            "wallet": difference.wallet,
            "rule": difference.rule.to_string(),
            "what": difference.what,
            "expected": difference.expected,
            "found": difference.found,
        })
    });
    json!({
        "ok": report.is_clean(),
        "wallets": report.wallets,
        "keys": report.keys,
        "open_holds": report.open_holds,
        "entries": report.entries,
        "differences": differences.collect::<Vec<_>>(),
    })
}

fn differences(report: &VerifyReport) -> Table {
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

fn summary(report: &VerifyReport) -> String {
    let VerifyReport {
        wallets,
        keys,
        open_holds,
        entries,
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
        assert_eq!(report_json(&report)["ok"], true);
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
        assert_eq!(report_json(&report)["differences"], expected);
        assert_eq!(report_json(&report)["ok"], false);
    }
}
