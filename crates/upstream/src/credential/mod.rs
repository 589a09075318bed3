//! Authorises the requests of channels.
//!
//! A vendor's key is the same header line in every request. Clouds require a token that expires, or a separate
//! signature in each request. [`Authorization`] implements these forms, using the credential and the [`Account`] of a
//! channel.

mod account;
mod authorization;
mod client_credentials;
mod form;
mod service_account;
mod signer;
mod token;
mod token_endpoint;
mod token_source;

pub use account::Account;
pub(crate) use account::{MODEL, fill, is_plain, is_printable, placeholders};
pub(crate) use authorization::{Authorization, RequestAuth};
pub(crate) use form::CredentialForm;
pub(crate) use service_account::names_of;
pub use token::TokenError;
pub(crate) use token_endpoint::NetworkAccess;
