//! `tollgate logs show`: explains one call, from its admission to the lines of its price.

use std::fmt::Write as _;

use engine::{NOTE_SEPARATOR, PASSED_OVER};
use ledger::Micro;
use serde_json::{Value, json};
use store::{Basis, EntryRow};

use crate::cli::context::Context;
use crate::cli::terminal::{CommandError, Side, Table, time};
use crate::operations::calls::{Explanation, Priced, RouteNotes, read_fallback};

/// The members of an explanation that the journal row does not have.
pub(super) fn members(explanation: &Explanation) -> [(&'static str, Value); 2] {
    [
        (
            "settlement",
            explanation.entry.as_ref().map_or(Value::Null, entry_json),
        ),
        (
            "price",
            explanation.price.as_ref().map_or(Value::Null, price_json),
        ),
    ]
}

pub(super) fn print(explanation: &Explanation, context: &mut Context) -> Result<(), CommandError> {
    let out = &mut context.out;
    out.line("")?;
    out.table(&steps(explanation))?;
    let Some(priced) = &explanation.price else {
        return Ok(());
    };
    out.line("")?;
    out.table(&price_table(priced))?;
    out.line("")?;
    for line in rounding(priced, explanation.entry.as_ref()) {
        out.line(line)?;
    }
    Ok(())
}

/// The events of the call, in order.
fn steps(explanation: &Explanation) -> Table {
    let row = &explanation.row;
    let mut table = Table::new([("STEP", Side::Left), ("WHAT HAPPENED", Side::Left)]);
    let ms = |us: u64| format!("{}.{:03} ms", us / 1000, us % 1000);
    let timings = &row.timings;
    let admission = match (timings.admitted_us, timings.queued_us, &row.code) {
        (Some(after), Some(queued), _) => format!(
            "admitted after {}, of which it waited {} for the ledger",
            ms(after),
            ms(queued)
        ),
        (Some(after), None, _) => format!("admitted after {}", ms(after)),
        (None, _, Some(code)) => format!("refused: {code}"),
        (None, _, None) => "none".to_owned(),
    };
    table.row(["admission".to_owned(), admission]);
    if let Some(notes) = &row.route_notes {
        for note in notes.split(NOTE_SEPARATOR) {
            // A note describes a fallback to another model, an upstream message that the caller did not see, a route
            // that failed, or a route or fallback model that was passed over.
            if let Some((before, to)) = read_fallback(note) {
                let fallback = format!("{before} has no route left, {to} may answer");
                table.row(["model".to_owned(), fallback]);
                continue;
            }
            table.row(match note.strip_prefix("said: ") {
                Some(words) => ["upstream".to_owned(), format!("said: {words}")],
                None if note.contains(&format!(": {PASSED_OVER}")) => {
                    ["route".to_owned(), note.to_owned()]
                }
                None => ["route".to_owned(), format!("left {note}")],
            });
        }
    }
    let answered = RouteNotes::of(row)
        .attempts
        .pop()
        .filter(|last| last.model.is_some());
    if let Some((channel, model)) = answered.and_then(|last| Some((last.channel, last.model?))) {
        let head = timings.upstream_us;
        let head = head.map_or_else(String::new, |after| format!(", head after {}", ms(after)));
        table.row(["route".to_owned(), format!("{channel} as {model}{head}")]);
    }
    let first = timings.first_byte_us;
    let first = first.map_or_else(String::new, |after| {
        format!("first byte after {}, ", ms(after))
    });
    let answer = format!("{} {first}ended after {}", row.status, ms(timings.total_us));
    table.row(["answer".to_owned(), answer]);
    match (&explanation.entry, row.hold) {
        (Some(entry), _) => {
            if let Some(call) = &entry.call {
                let held = format!(
                    "{} held by {} at {}",
                    call.held,
                    call.hold,
                    time::show(call.opened_at)
                );
                table.row(["hold".to_owned(), held]);
            }
            table.row(["ledger".to_owned(), settlement(entry)]);
        }
        (None, Some(hold)) => {
            table.row(["hold".to_owned(), format!("{hold}: no entry ends it (yet)")]);
        }
        (None, None) => {}
    }
    table
}

fn price_table(priced: &Priced) -> Table {
    let mut table = Table::new([
        ("PRICED", Side::Left),
        ("QUANTITY", Side::Right),
        ("UNIT PRICE", Side::Right),
        ("PER", Side::Right),
        ("AMOUNT", Side::Right),
    ]);
    for line in &priced.lines {
        table.row([
            line.component.clone(),
            line.quantity.to_string(),
            line.price
                .map_or_else(|| "no price".to_owned(), |price| price.to_string()),
            line.per.to_string(),
            line.amount
                .map_or_else(|| "-".to_owned(), |amount| amount.to_string()),
        ]);
    }
    table
}

/// The steps from the exact sum to the booked charge.
fn rounding(priced: &Priced, entry: Option<&EntryRow>) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(exact), Some(price)) = (priced.exact, priced.price) {
        lines.push(format!(
            "sum {exact}, rounded up once to {price} (price version {} of {})",
            priced.version.version.get(),
            priced.version.model
        ));
    }
    if let Some(entry) = entry
        && let Some(usage) = entry.call.as_ref().and_then(|call| call.usage.as_ref())
    {
        let basis = match usage.basis {
            Basis::Reported => "as the upstream reported",
            Basis::Counted => "as we counted, at most the hold",
        };
        let steps = entry.call.as_ref().map_or(Micro::ZERO, |call| call.booked);
        if steps > Micro::ZERO {
            lines.push(format!("{steps} was booked in steps while the session ran"));
        }
        lines.push(format!("booked {}, {basis}", entry.charge));
    }
    lines
}

fn price_json(priced: &Priced) -> Value {
    let lines = priced.lines.iter().map(|line| {
        json!({
            "component": line.component,
            "quantity": line.quantity,
            "unit_price": line.price.map(|price| price.to_string()),
            "per": line.per,
            "amount": line.amount.map(|amount| amount.to_string()),
        })
    });
    json!({
        "version": priced.version.version,
        "model": priced.version.model,
        "lines": lines.collect::<Vec<_>>(),
        "exact": priced.exact.map(|exact| exact.to_string()),
        "rounded_up": priced.price.map(|price| price.to_string()),
        "rounded_up_micro": priced.price.map(|price| price.get().to_string()),
    })
}

/// The entry in words: `settled as entry 7: charge 0.000123 (gift 0, balance -0.000123, credit line 0)`.
fn settlement(entry: &EntryRow) -> String {
    let mut text = format!("{} as entry {}", entry.kind, entry.seq);
    if entry.charge != Micro::ZERO {
        let delta = &entry.delta;
        let shown = |micro: i64| Micro::new(micro).to_string();
        let _ = write!(
            text,
            ": charge {} (gift {}, balance {}, credit line {})",
            entry.charge,
            shown(delta.gift_balance),
            shown(delta.balance),
            shown(delta.credit_used)
        );
    }
    if let Some(note) = &entry.note {
        let _ = write!(text, " ({note})");
    }
    text
}

fn entry_json(entry: &EntryRow) -> Value {
    let call = entry.call.as_deref();
    let usage = call.and_then(|call| call.usage.as_ref());
    json!({
        "kind": entry.kind.as_str(),
        "entry": entry.seq,
        "at": entry.at,
        "hold": call.map(|call| call.hold.to_string()),
        "held": call.map(|call| call.held.to_string()),
        "held_micro": call.map(|call| call.held.get().to_string()),
        "booked_before_micro": call.map(|call| call.booked.get().to_string()),
        "opened_at": call.map(|call| call.opened_at),
        "basis": usage.map(|usage| usage.basis.as_str()),
        "charge": entry.charge.to_string(),
        "charge_micro": entry.charge.get().to_string(),
        "gift_delta_micro": entry.delta.gift_balance.to_string(),
        "balance_delta_micro": entry.delta.balance.to_string(),
        "credit_delta_micro": entry.delta.credit_used.to_string(),
        "note": entry.note,
    })
}
