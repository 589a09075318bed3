//! The nodes of a database: this node's lease and health, and the sweeper that closes the holds of dead nodes.

pub(super) mod health;
pub(super) mod lease;
pub(super) mod sweeper;
