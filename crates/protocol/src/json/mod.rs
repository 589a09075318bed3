//! JSON as bytes: validated, searched, patched in place and read in one pass, without a tree.

mod backslashes;
mod lex;
pub mod patch;
pub mod raw;
mod raw_object;
pub mod redact;
pub mod scan;
pub mod span;
pub mod syntax;
pub mod text;
pub mod walk;
pub mod write;

pub(crate) use backslashes::Backslashes;
pub use raw::{Integer, Raw};
pub(crate) use raw_object::RawObject;
pub use redact::redact;
pub use scan::{Cursor, Shape};
pub use span::{Members, MembersError, Spelling};
pub use syntax::{DEPTH_MAX, KEYS_MAX, SyntaxError, What, utf8};
pub use text::{Text, write_string};
