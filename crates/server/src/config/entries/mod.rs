//! The `[[channel]]` and `[[model]]` entries as a document of their own: read as JSON, and written back.
//!
//! The admin API and the store exchange entries as JSON. Incoming entries are written into the text of the
//! configuration file first, and [`Config`](super::Config) reads that text. So there is one reader, and one list of
//! problems.

mod convert;
mod credential_policy;
mod document;
mod edit;
mod files;
mod pasted;

pub(crate) use credential_policy::CredentialPolicy;
pub(crate) use document::{Entries, EntriesError};
pub(crate) use files::{FileDraft, read_if_exists};
pub(crate) use pasted::{BadCredential, PastedSecrets, remove_unused};
