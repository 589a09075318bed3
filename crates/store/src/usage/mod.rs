//! Usage in numbers: roll-ups of the journal, which the journal's writers keep up to date.
//!
//! A writer counts each batch of rows in the transaction that writes the rows, so both always tell the same. Reports
//! read what was counted, however many rows there are. `roll_up` says what is kept, `pending` how counts wait to be
//! added to the roll-ups, `plan` which roll-ups answer a question, and `report` puts the answer together. Nothing
//! here knows a database.

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
    BatchCounts, Grain, NumberedCounts, SeriesNumbers, Slot, minutes_kept_since, parts_of,
};
pub use series::Series;
pub use time::UsageStep;
pub use totals::Totals;
