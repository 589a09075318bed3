//! Reads databases of other programs, from which accounts are imported: a `SQLite` file, a `PostgreSQL` server, or a
//! dump of `MySQL`. They are never written to.
//!
//! Every value is read as text, as the database prints it, because amounts must not pass through a float.

mod database;
mod dump;
mod dump_values;
mod error;
mod postgres;
mod sqlite;
mod table;

pub use database::ForeignDatabase;
pub use error::ForeignError;
pub use table::{ForeignRow, ForeignTable};
