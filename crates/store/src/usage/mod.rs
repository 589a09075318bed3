//! Usage in numbers: roll-ups of the journal, which the journal's writers keep up to date.
//!
//! A writer adds each batch of rows to the roll-ups in the transaction that writes the rows, so both always tell
//! the same. Reports read the roll-ups alone, however many rows there are. `roll_up` says what is kept, `plan`
//! which roll-ups answer a question, `report` puts the answer together. Nothing here knows a database.

mod histogram;
mod plan;
mod report;
mod roll_up;
mod series;
mod time;
mod totals;
mod varint;

pub use histogram::Histogram;
pub use plan::{Dimension, UsageQuery};
pub(crate) use report::Report;
pub use report::UsageRow;
pub(crate) use roll_up::{Grain, RollUp, minutes_kept_since, roll_up};
pub use series::Series;
pub use time::UsageStep;
pub use totals::Totals;
