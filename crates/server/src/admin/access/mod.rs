//! Access to the admin API: authentication, roles and limits.
//!
//! `check` authenticates a request by its token or the cookie of its session (`cookie`). `lockout` refuses addresses
//! that guess tokens, codes or sessions, and `rate` limits the requests of one actor. Handlers take one of the
//! extractors of `roles`.

mod check;
mod cookie;
mod lockout;
mod peer;
mod rate;
mod roles;

pub(crate) use check::{Access, Credential, authenticate};
pub(crate) use cookie::{
    SessionCookie, expired_cookie, is_same_origin, is_secure_origin, new_cookie,
};
pub(crate) use peer::Peer;
pub(crate) use roles::{Operator, Owner, Support, Viewer};
