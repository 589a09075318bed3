//! Callers: finds API keys, and limits how much of this node one key and its wallet may use.

mod caller;
pub(crate) mod keyring;
pub(crate) mod limits;
pub(crate) mod weak_value_map;
