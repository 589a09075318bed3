//! The nodes of a database: this node's lease and health, and the sweeper that closes what dead nodes left
//! open.

pub(super) mod health;
pub(super) mod lease;
pub(super) mod sweeper;
