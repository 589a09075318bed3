//! Shows the findings of `tollgate check --live`.

use serde_json::{Value, json};

use crate::cli::terminal::{CommandError, Output, Side, Table};
use crate::operations::live_check::{Finding, LiveReport};

pub(super) fn show(report: &LiveReport, out: &mut Output) -> Result<(), CommandError> {
    let mut table = Table::new([
        ("LIVE", Side::Left),
        ("STATE", Side::Left),
        ("FOUND", Side::Left),
    ]);
    for channel in &report.channels {
        let Finding { state, message } = &channel.finding;
        table.row([
            format!("channel {}", channel.name),
            state.as_str().to_owned(),
            message.clone(),
        ]);
        for route in &channel.missing {
            table.row([
                String::new(),
                String::new(),
                format!("{}: no model `{}`", route.model, route.upstream_model),
            ]);
        }
    }
    for (name, finding) in [("store", &report.store), ("media", &report.media)] {
        let state = finding.state.as_str().to_owned();
        table.row([name.to_owned(), state, finding.message.clone()]);
    }
    out.line("")?;
    out.table(&table)
}

pub(super) fn to_json(report: &LiveReport) -> Value {
    let channels = report.channels.iter().map(|channel| {
        let missing = channel
            .missing
            .iter()
            .map(|route| json!({ "model": route.model, "upstream_model": route.upstream_model }));
        let mut value = finding(&channel.finding);
        value["name"] = json!(channel.name);
        value["status"] = json!(channel.status);
        value["models"] = json!(channel.models);
        value["missing"] = missing.collect();
        value["total_ms"] = json!(channel.total.as_millis());
        value
    });
    json!({
        "ok": report.is_ok(),
        "channels": channels.collect::<Vec<_>>(),
        "store": finding(&report.store),
        "media": finding(&report.media),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({ "state": finding.state.as_str().replace(' ', "_"), "message": finding.message })
}
