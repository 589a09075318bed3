//! `tollgate ledger report`: sums up the usage, charges and costs of calls by day, wallet, key, model and channel.

use std::collections::{BTreeMap, HashMap};

use clap::{Args, ValueEnum};
use ledger::Micro;
use serde_json::{Map, Value, json};
use store::{CostNumber, CostRow, EntryKind, EntryRow, PriceNumber, PriceRow};

use super::entry_range::{EntryRange, day_of};
use crate::cli::context::Context;
use crate::cli::terminal::{CommandError, Side, Table};

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    range: EntryRange,
    /// The columns by which entries are grouped and sorted.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "day,wallet,model"
    )]
    by: Vec<By>,
    /// The output format; --json means --format json.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Day,
    Wallet,
    Key,
    Model,
    /// The channel that answered, if its route has a cost card.
    Channel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Csv,
    Json,
}

pub(crate) async fn run(command: Report, context: &mut Context) -> Result<(), CommandError> {
    let store = context.store()?;
    let (prices, costs) = (store.prices().await?, store.costs().await?);
    let mut lines = ReportRows::new(command.by, &prices, &costs);
    command.range.each(&store, |entry| lines.add(entry)).await?;
    match command.format {
        _ if context.json => lines
            .rows()
            .try_for_each(|row| context.out.json(&row.json())),
        Format::Json => lines
            .rows()
            .try_for_each(|row| context.out.json(&row.json())),
        Format::Csv => {
            context.out.line(lines.titles().join(","))?;
            let mut rows = lines.rows();
            rows.try_for_each(|row| context.out.line(csv(&row.cells())))
        }
        Format::Table => context.out.table(&lines.table()),
    }
}

/// The sums of a report, by the values of the grouping columns.
struct ReportRows {
    by: Vec<By>,
    models: HashMap<PriceNumber, Box<str>>,
    channels: HashMap<CostNumber, Box<str>>,
    sums: BTreeMap<Vec<String>, EntrySums>,
}

/// The sums of one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct EntrySums {
    settled: u64,
    released: u64,
    abandoned: u64,
    input: u128,
    cached_input: u128,
    cache_write: u128,
    cache_write_1h: u128,
    output: u128,
    tool_calls: u128,
    charge: i128,
    /// The amount that abandoned calls had frozen. It is not charged.
    abandoned_held: i128,
    /// The entries with a known cost: their number, their charges and their costs.
    costed: u64,
    costed_charge: i128,
    cost: i128,
}

/// The names of the columns after the grouping columns, in CSV and JSON.
const COLUMNS: [&str; 14] = [
    "calls",
    "released",
    "abandoned",
    "input",
    "cached_input",
    "cache_write",
    "cache_write_1h",
    "output",
    "tool_calls",
    "charge_micro",
    "abandoned_held_micro",
    "costed_entries",
    "cost_micro",
    "margin_micro",
];

struct Row<'a> {
    by: &'a [By],
    names: &'a [String],
    sums: &'a EntrySums,
}

impl ReportRows {
    fn new(by: Vec<By>, prices: &[PriceRow], costs: &[CostRow]) -> Self {
        let models = prices.iter().map(|row| (row.version, row.model.clone()));
        let channels = costs.iter().map(|row| (row.version, row.channel.clone()));
        Self {
            by,
            models: models.collect(),
            channels: channels.collect(),
            sums: BTreeMap::new(),
        }
    }

    fn add(&mut self, entry: &EntryRow) {
        let Some(call) = &entry.call else {
            return;
        };
        let usage = call.usage.as_ref();
        let cost = usage.and_then(|usage| usage.cost);
        let names = self.by.iter().map(|by| match by {
            By::Day => day_of(entry.at),
            By::Wallet => entry.wallet.to_string(),
            By::Key => call.key.to_string(),
            // A call that was not settled has no price, and so its entry names no model.
            By::Model => usage
                .and_then(|usage| self.models.get(&usage.price_version))
                .map_or("-", |model| model)
                .to_owned(),
            By::Channel => cost
                .and_then(|cost| self.channels.get(&cost.version))
                .map_or("-", |channel| channel)
                .to_owned(),
        });
        let sums = self.sums.entry(names.collect()).or_default();
        match entry.kind {
            EntryKind::Settled => sums.settled += 1,
            EntryKind::Released => sums.released += 1,
            EntryKind::Abandoned => {
                sums.abandoned += 1;
                sums.abandoned_held += i128::from(call.held.get());
            }
            _ => {}
        }
        sums.charge += i128::from(entry.charge.get());
        if let Some(cost) = cost {
            sums.costed += 1;
            sums.costed_charge += i128::from(entry.charge.get());
            sums.cost += i128::from(cost.amount.get());
        }
        // Each entry of a session stores the usage since the session's beginning. So only the last entry counts, as in
        // the totals of the admin API.
        let is_last = entry.kind == EntryKind::Settled;
        let usage = usage.filter(|_| is_last);
        let meter = usage.and_then(|usage| usage.meter.read().ok());
        if let Some(meter) = meter {
            sums.input += u128::from(meter.input);
            sums.cached_input += u128::from(meter.cached_input);
            sums.cache_write += u128::from(meter.cache_write);
            sums.cache_write_1h += u128::from(meter.cache_write_1h);
            sums.output += u128::from(meter.output_total());
            sums.tool_calls += meter
                .tools
                .values()
                .map(|calls| u128::from(*calls))
                .sum::<u128>();
        }
    }

    fn titles(&self) -> Vec<&'static str> {
        self.by.iter().map(|by| by.name()).chain(COLUMNS).collect()
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.sums.iter().map(|(names, sums)| Row {
            by: &self.by,
            names,
            sums,
        })
    }

    fn table(&self) -> Table {
        let names = self.by.iter().map(|by| (by.title(), Side::Left));
        let columns = [
            "CALLS",
            "RELEASED",
            "ABANDONED",
            "INPUT",
            "CACHED",
            "WRITTEN",
            "WRITTEN 1H",
            "OUTPUT",
            "TOOLS",
            "CHARGE",
            "HELD BY ABANDONED",
            "COSTED",
            "COST",
            "MARGIN",
        ];
        let columns = names.chain(columns.map(|title| (title, Side::Right)));
        let mut table = Table::of(columns);
        let mut total = EntrySums::default();
        for row in self.rows() {
            table.row(row.shown());
            total.add(row.sums);
        }
        let mut names: Vec<String> = self.by.iter().map(|_| String::new()).collect();
        if let Some(first) = names.first_mut() {
            "total".clone_into(first);
        }
        let total = Row {
            by: &self.by,
            names: &names,
            sums: &total,
        };
        table.row(total.shown());
        table
    }
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Wallet => "wallet",
            Self::Key => "key",
            Self::Model => "model",
            Self::Channel => "channel",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Day => "DAY",
            Self::Wallet => "WALLET",
            Self::Key => "KEY",
            Self::Model => "MODEL",
            Self::Channel => "CHANNEL",
        }
    }
}

impl EntrySums {
    fn add(&mut self, other: &Self) {
        self.settled += other.settled;
        self.released += other.released;
        self.abandoned += other.abandoned;
        self.input += other.input;
        self.cached_input += other.cached_input;
        self.cache_write += other.cache_write;
        self.cache_write_1h += other.cache_write_1h;
        self.output += other.output;
        self.tool_calls += other.tool_calls;
        self.charge += other.charge;
        self.abandoned_held += other.abandoned_held;
        self.costed += other.costed;
        self.costed_charge += other.costed_charge;
        self.cost += other.cost;
    }

    /// The known costs, and the charges of the same entries minus these costs. `None` if no cost is known.
    fn cost_and_margin(&self) -> Option<(i128, i128)> {
        (self.costed > 0).then_some((self.cost, self.costed_charge - self.cost))
    }

    /// The values, in the order of [`COLUMNS`].
    fn cells(&self) -> [String; 14] {
        let known = self.cost_and_margin();
        let [cost, margin] = [known.map(|it| it.0), known.map(|it| it.1)]
            .map(|amount| amount.map_or_else(String::new, |amount| amount.to_string()));
        [
            self.settled.to_string(),
            self.released.to_string(),
            self.abandoned.to_string(),
            self.input.to_string(),
            self.cached_input.to_string(),
            self.cache_write.to_string(),
            self.cache_write_1h.to_string(),
            self.output.to_string(),
            self.tool_calls.to_string(),
            self.charge.to_string(),
            self.abandoned_held.to_string(),
            self.costed.to_string(),
            cost,
            margin,
        ]
    }
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        self.names
            .iter()
            .cloned()
            .chain(self.sums.cells())
            .collect()
    }

    /// The cells for people, with amounts in credits.
    fn shown(&self) -> Vec<String> {
        let names = self.names.iter().cloned();
        let columns = COLUMNS.iter().zip(self.sums.cells());
        let cells = columns.map(|(column, cell)| match cell.parse() {
            Ok(micro) if column.ends_with("_micro") => credits(micro),
            Err(_) => "-".to_owned(),
            Ok(_) => cell,
        });
        names.chain(cells).collect()
    }

    /// The line as JSON, with counts as numbers and amounts as strings.
    fn json(&self) -> Value {
        let mut members = Map::new();
        for (by, name) in self.by.iter().zip(self.names) {
            members.insert(by.name().to_owned(), json!(name));
        }
        for (column, cell) in COLUMNS.iter().zip(self.sums.cells()) {
            let value = match cell.parse::<u64>() {
                // The cost is not known.
                Err(_) if cell.is_empty() => Value::Null,
                Ok(count) if !column.ends_with("_micro") => json!(count),
                _ => json!(cell),
            };
            members.insert((*column).to_owned(), value);
        }
        members.insert("charge".to_owned(), json!(credits(self.sums.charge)));
        if let Some((cost, margin)) = self.sums.cost_and_margin() {
            members.insert("cost".to_owned(), json!(credits(cost)));
            members.insert("margin".to_owned(), json!(credits(margin)));
        }
        Value::Object(members)
    }
}

/// An amount in credits. A sum may exceed the range of `Micro`, so it is an `i128`.
pub(crate) fn credits(micro: i128) -> String {
    i64::try_from(micro).map_or_else(
        |_| format!("{micro} micro"),
        |micro| Micro::new(micro).to_string(),
    )
}

/// A line of CSV, with quotes around the cells that need them.
fn csv(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_need_quotes_get_them() {
        let cells = ["a/b", "x,y", "say \"hi\""].map(str::to_owned);
        assert_eq!(csv(&cells), r#"a/b,"x,y","say ""hi""""#);
    }

    #[test]
    fn sums_beyond_one_amount_are_shown_all_the_same() {
        assert_eq!(credits(1_500_000), "1.5");
        assert_eq!(
            credits(i128::from(i64::MAX) + 1),
            "9223372036854775808 micro"
        );
    }
}
