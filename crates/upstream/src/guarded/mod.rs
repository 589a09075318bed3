//! Fetches of addresses that callers and upstreams name.
//!
//! Whoever names an address may mean to reach through us what he cannot reach himself. So a
//! [`ExternalUrl`] is judged by its words, every address behind its name by the [`AddressPolicy`], and the
//! connection goes to the very address that was judged; each redirect begins anew
//! (A1, A2, A3). [`Guarded`] does the calls; links and policy are pure.

mod body;
mod client;
mod error;
mod external_url;
mod policy;
mod request;

pub use body::BoundedBody;
pub use client::{FetchResponse, Guarded};
pub use error::{FetchError, UrlRefusal};
pub use external_url::ExternalUrl;
pub use policy::AddressPolicy;
pub use request::{FetchLimits, Post};
