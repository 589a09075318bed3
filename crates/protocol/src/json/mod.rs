//! Validates, searches, patches and reads JSON text in one pass, without building a tree.

mod backslashes;
mod lex;
pub(crate) mod members;
pub(crate) mod patch;
pub(crate) mod raw;
mod raw_object;
pub(crate) mod redact;
pub(crate) mod scan;
pub(crate) mod syntax;
pub(crate) mod text;
pub(crate) mod typed;
pub(crate) mod write;

pub(crate) use backslashes::Backslashes;
pub(crate) use members::{Members, MembersError, Spelling};
pub(crate) use raw::{Integer, Raw};
pub(crate) use raw_object::RawObject;
pub use redact::redact;
pub(crate) use scan::{Cursor, Shape};
pub(crate) use syntax::{SyntaxError, SyntaxErrorKind, utf8};
pub(crate) use text::{Text, write_string};
