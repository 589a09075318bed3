//! JSON as bytes: found, checked and patched in place, never built into a tree.

pub mod patch;
pub mod raw;
pub mod redact;
pub mod scan;
pub mod span;
pub mod text;

pub use raw::{Integer, Raw};
pub use redact::redact;
pub use scan::{Cursor, DEPTH_MAX, KEYS_MAX, Shape, SyntaxError};
pub use span::{Members, MembersError, Spelling};
pub use text::{Text, write_string};
