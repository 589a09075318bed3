//! Explains one call: the entry that closed its hold, and the computation of its charge.

use ledger::{Exact, Line, Micro, PriceCard};
use store::{CallRow, EntryQuery, EntryRow, JournalQuery, JournalRow, PriceRow, Store, StoreError};

pub(crate) struct Explanation {
    pub(crate) row: JournalRow,
    /// The entry that closed the hold. `None` while the hold is open, or if there was no hold.
    pub(crate) entry: Option<EntryRow>,
    pub(crate) price: Option<Priced>,
}

pub(crate) struct Priced {
    pub(crate) version: PriceRow,
    pub(crate) lines: Vec<Line>,
    /// The exact sum of the lines.
    pub(crate) exact: Option<Exact>,
    /// The sum, rounded up once.
    pub(crate) price: Option<Micro>,
}

impl Explanation {
    /// Finds the call with this request id. `None` if it is not in the journal.
    pub(crate) async fn find(store: &Store, request_id: &str) -> Result<Option<Self>, StoreError> {
        let query = JournalQuery {
            request_id: Some(request_id.to_owned()),
            limit: 1,
            ..JournalQuery::default()
        };
        let Some(found) = store.journal(query).await?.into_iter().next() else {
            return Ok(None);
        };
        let row = found.row;
        let Some(hold) = row.hold else {
            return Ok(Some(Self {
                row,
                entry: None,
                price: None,
            }));
        };
        let query = EntryQuery {
            closes: Some(hold),
            ..EntryQuery::default()
        };
        let entry = store.entries(query).await?.into_iter().next();
        let price = match entry.as_ref().and_then(|entry| entry.call.as_deref()) {
            Some(call) => priced(store, call).await?,
            None => None,
        };
        Ok(Some(Self { row, entry, price }))
    }
}

async fn priced(store: &Store, call: &CallRow) -> Result<Option<Priced>, StoreError> {
    let Some(usage) = &call.usage else {
        return Ok(None);
    };
    let prices = store.prices().await?;
    let version = prices
        .into_iter()
        .find(|row| row.version == usage.price_version);
    let read = |row: &PriceRow| {
        let card: PriceCard = serde_json::from_str(&row.card).ok()?;
        let meter = usage.meter.read().ok()?;
        Some((card, meter))
    };
    let Some((version, (card, meter))) = version.and_then(|row| Some((row.clone(), read(&row)?)))
    else {
        return Ok(None);
    };
    let lines = card.lines(&meter);
    let mut amounts = lines.iter().filter_map(|line| line.amount);
    let exact = amounts.try_fold(Exact::ZERO, Exact::checked_add);
    Ok(Some(Priced {
        version,
        lines,
        exact,
        price: card.price(&meter).ok(),
    }))
}
