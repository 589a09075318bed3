//! `tollgate ledger reprice`: prices stored usage again, and checks that the charges are the same.

use std::collections::{BTreeMap, HashMap};

use clap::Args;
use ledger::{Micro, PriceCard};
use serde_json::json;
use store::{EntryRow, PriceNumber, PriceRow, SettledUsage};

use super::entry_range::{EntryRange, day_of};
use super::report::credits;
use crate::cli::context::Context;
use crate::cli::terminal::{CommandError, Side, Table};

#[derive(Debug, Args)]
pub(crate) struct Reprice {
    #[command(flatten)]
    range: EntryRange,
}

pub(crate) async fn run(command: Reprice, context: &mut Context) -> Result<(), CommandError> {
    let store = context.store()?;
    let mut proof = Proof::new(&store.prices().await?);
    command.range.each(&store, |entry| proof.add(entry)).await?;
    if context.json {
        context.out.json(&proof.json())?;
    } else {
        if !proof.differences.is_empty() {
            context.out.table(&proof.differences())?;
            context.out.line("")?;
        }
        context.out.table(&proof.days())?;
        context.out.line("")?;
        context.out.line(proof.verdict())?;
    }
    if proof.differences.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Reported)
    }
}

/// The result of pricing every entry with usage again: settlements, and the steps of sessions.
struct Proof {
    cards: HashMap<PriceNumber, PriceCard>,
    days: BTreeMap<String, Totals>,
    differences: Vec<Difference>,
}

#[derive(Debug, Default)]
struct Totals {
    calls: u64,
    booked: i128,
    repriced: i128,
}

struct Difference {
    wallet: String,
    seq: i64,
    request_id: String,
    booked: Micro,
    repriced: String,
}

impl Proof {
    fn new(prices: &[PriceRow]) -> Self {
        let read = |row: &PriceRow| Some((row.version, serde_json::from_str(&row.card).ok()?));
        Self {
            cards: prices.iter().filter_map(read).collect(),
            days: BTreeMap::new(),
            differences: Vec::new(),
        }
    }

    fn add(&mut self, entry: &EntryRow) {
        let Some((call, usage)) = entry
            .call
            .as_deref()
            .and_then(|call| Some((call, call.usage.as_ref()?)))
        else {
            return;
        };
        let repriced = self.price(usage);
        let repriced = repriced.map(|price| call.charge(entry.kind, price));
        let totals = self.days.entry(day_of(entry.at)).or_default();
        totals.calls += 1;
        totals.booked += i128::from(entry.charge.get());
        if let Ok(charge) = repriced {
            totals.repriced += i128::from(charge.get());
        }
        if repriced != Ok(entry.charge) {
            self.differences.push(Difference {
                wallet: entry.wallet.to_string(),
                seq: entry.seq,
                request_id: call.request_id.to_string(),
                booked: entry.charge,
                repriced: repriced.map_or_else(|error| error, |charge| charge.to_string()),
            });
        }
    }

    fn price(&self, usage: &SettledUsage) -> Result<Micro, String> {
        let card = self.cards.get(&usage.price_version);
        let card = card.ok_or_else(|| format!("no price {}", usage.price_version.get()))?;
        let meter = usage.meter.read().map_err(|error| error.to_string())?;
        card.price(&meter).map_err(|error| error.to_string())
    }

    fn totals(&self) -> Totals {
        self.days
            .values()
            .fold(Totals::default(), |sum, day| Totals {
                calls: sum.calls + day.calls,
                booked: sum.booked + day.booked,
                repriced: sum.repriced + day.repriced,
            })
    }

    fn verdict(&self) -> String {
        let Totals {
            calls,
            booked,
            repriced,
        } = self.totals();
        let verdict = match self.differences.len() {
            0 => "the same total".to_owned(),
            1 => "1 difference".to_owned(),
            count => format!("{count} differences"),
        };
        format!(
            "settlements {calls}, booked {}, priced again {}: {verdict}",
            credits(booked),
            credits(repriced)
        )
    }

    fn json(&self) -> serde_json::Value {
        let Totals {
            calls,
            booked,
            repriced,
        } = self.totals();
        let days = self.days.iter().map(|(day, totals)| {
            json!({
                "day": day,
                "settlements": totals.calls,
                "booked_micro": totals.booked.to_string(),
                "repriced_micro": totals.repriced.to_string(),
            })
        });
        let differences = self.differences.iter().map(|it| {
            json!({
                "wallet": it.wallet,
                "entry": it.seq,
                "request_id": it.request_id,
                "booked": it.booked.to_string(),
                "repriced": it.repriced,
            })
        });
        json!({
            "ok": self.differences.is_empty(),
            "settlements": calls,
            "booked_micro": booked.to_string(),
            "repriced_micro": repriced.to_string(),
            "days": days.collect::<Vec<_>>(),
            "differences": differences.collect::<Vec<_>>(),
        })
    }

    fn days(&self) -> Table {
        let mut table = Table::new([
            ("DAY", Side::Left),
            ("SETTLEMENTS", Side::Right),
            ("BOOKED", Side::Right),
            ("PRICED AGAIN", Side::Right),
        ]);
        for (day, totals) in &self.days {
            table.row([
                day.clone(),
                totals.calls.to_string(),
                credits(totals.booked),
                credits(totals.repriced),
            ]);
        }
        table
    }

    fn differences(&self) -> Table {
        let mut table = Table::new([
            ("WALLET", Side::Left),
            ("ENTRY", Side::Right),
            ("REQUEST", Side::Left),
            ("BOOKED", Side::Right),
            ("PRICED AGAIN", Side::Right),
        ]);
        for it in &self.differences {
            table.row([
                it.wallet.clone(),
                it.seq.to_string(),
                it.request_id.clone(),
                it.booked.to_string(),
                it.repriced.clone(),
            ]);
        }
        table
    }
}
