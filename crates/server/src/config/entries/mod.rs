//! The `[[channel]]` and `[[model]]` entries as a JSON document, and how it is written back to the file.
//!
//! The admin API and the store exchange entries as JSON. Incoming entries are first written into the text of the
//! configuration file, and [`Config`](super::Config) then reads that text. So all entries have the same reader and the
//! same error messages.

mod convert;
mod credential_policy;
mod document;
mod edit;
mod files;
mod pasted_secrets;

pub(crate) use credential_policy::CredentialPolicy;
pub(crate) use document::{Entries, EntriesError};
pub(crate) use files::{FileDraft, read_if_exists};
pub(crate) use pasted_secrets::{BadCredential, PastedSecrets, remove_unused};
