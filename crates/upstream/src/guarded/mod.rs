//! Calls URLs that clients and upstreams name.
//!
//! An attacker may use such a URL to reach private systems through the gateway. So the name of an
//! [`ExternalUrl`] is checked first, and then the [`AddressPolicy`] checks every address that it
//! resolves to. The connection goes to a checked address, and each redirect is checked again (A1,
//! A2, A3). [`Guarded`] makes the calls; URLs and policy are pure.

mod body;
mod client;
mod error;
mod external_url;
mod policy;
mod request;

pub use body::BoundedBody;
pub use client::{FetchResponse, Guarded, LOOKUPS_OF_CALLER_MAX};
pub use error::{FetchError, UrlRefusal};
pub use external_url::ExternalUrl;
pub use policy::AddressPolicy;
pub use request::{FetchLimits, Post};
