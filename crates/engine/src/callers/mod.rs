//! Who calls: keys, and what one key and its wallet may take of this node.

mod caller;
pub(crate) mod keyring;
pub(crate) mod limits;
mod shared_values;
