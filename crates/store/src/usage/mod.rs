//! Usage statistics: roll-ups of the journal, which the journal's writers keep up to date.
//!
//! A writer counts each batch of rows in the transaction that writes the rows, so both always agree. Reports read only
//! the counts, regardless of the number of rows. `roll_up` defines the counts, `pending` encodes those that are not yet
//! added to the roll-ups, `plan` selects the roll-ups for a query, and `report` adds them up. This module uses no
//! database.

mod histogram;
mod known_series;
mod packed;
pub(crate) mod pending;
mod plan;
mod report;
mod roll_up;
mod series;
mod time;
mod totals;
mod varint;

pub use histogram::Histogram;
pub(crate) use known_series::KnownSeries;
pub(crate) use packed::PackedTotals;
pub(crate) use plan::Segment;
pub use plan::{Dimension, UsageQuery};
pub use report::UsageRow;
pub(crate) use report::{Added, Report};
pub(crate) use roll_up::{
    Grain, NumberedCounts, SeriesNumbers, Slot, UsageCounts, minutes_kept_since, parts_of,
};
pub use series::Series;
pub use time::UsageStep;
pub use totals::Totals;
