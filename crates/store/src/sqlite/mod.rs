//! SQLite behind the verbs: the embedded default, one node.

mod backend;

pub(crate) use backend::Sqlite;
