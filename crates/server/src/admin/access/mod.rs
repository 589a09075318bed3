//! Who asks, and what they may do.
//!
//! `check` finds out who sent a request, by its token. `lockout` refuses addresses that guess tokens, `rate` those
//! who ask too much. Handlers take one of the extractors of `roles`.

mod check;
mod lockout;
mod peer;
mod rate;
mod roles;

pub(crate) use check::{Access, authenticate};
pub(crate) use peer::Peer;
#[allow(unused_imports, reason = "resources take these up one after the other")]
pub(crate) use roles::{Operator, Owner, Support, Viewer};
