//! What the command line prints with `--json` and the admin API answers, one struct for each thing.

mod audit;
mod key;
mod token;

pub(crate) use audit::AuditView;
pub(crate) use key::{KeyView, NewKeyView};
pub(crate) use token::{NewTokenView, TokenView};
