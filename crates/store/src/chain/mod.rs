//! The hash chain of a wallet's entries (`docs/decisions/024`).
//!
//! The hash of an entry covers everything in the entry and the hash of the entry before it. The wallet's row
//! stores the last hash, the head. An entry that is changed, added, removed or moved afterwards leads to
//! another head.

mod fold;
mod head;

pub(crate) use fold::Chains;
pub(crate) use head::ReferencedValues;
pub use head::{Head, HeadError, WalletHead};
