//! Reads TOML into typed values and collects every problem with its position.

mod nearest;
mod problem;
mod secret;
mod section;
pub(super) mod setting;
mod tls;
pub(super) mod value;

pub use problem::{FilePosition, Problem};
pub use secret::SecretSource;
pub use tls::Tls;

pub(super) use nearest::nearest;
pub(crate) use secret::on_one_line;
pub(super) use secret::{Environment, SecretLookup, process_environment, read_source};
pub(super) use section::{At, Log, Section, kind_of};
pub(super) use tls::tls;
